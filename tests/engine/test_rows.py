"""What a record must be to become rows, and how small it gets."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from calibrant.engine.packing import unpack
from calibrant.engine.rows import encode
from calibrant.types import CalibrantError, Cell, Cost, Record, Scores


def make(**changes: Any) -> Record:
    return Record(**{"cell": Cell("testbed", "mlp", 0, "id"), "scores": {"kl": Scores(0.5)}} | changes)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (make(scores={"kl": Scores(float("nan"))}), "metric 'kl' .* is not finite"),
        (make(scores={"kl": Scores(0.0, se=float("inf"))}), "metric 'kl' .* is not finite"),
        (make(scores={"kl": Scores(0.0, items=np.float32([1, np.nan]))}), "metric 'kl' .* is not finite"),
        (make(scores={"kl": Scores(0.0, items=np.float64([1e300]))}), "metric 'kl' .* is not finite"),
        (make(cost=Cost(fit_cpu_seconds=float("nan"))), "the cost of cell"),
        (make(provenance={"x": float("inf")}), "the provenance of cell"),
        (make(provenance={"x": object()}), "the provenance of cell"),
        (make(reason="failed, and yet has scores"), "should have no scores"),
        (make(cell=Cell("p", "a", 2**63, "id")), "at most 64 bits"),
        (make(cell=Cell("p", "file\udcff.py:Agent", 0, "id")), "not plain text"),
        (make(picture={"mean": np.array([None])}), "array 'mean' cannot be packed"),
    ],
)
def test_what_cannot_be_kept_is_refused(wrong: Record, words: str) -> None:
    with pytest.raises(CalibrantError, match=words):
        encode(wrong)


def test_defaults_take_no_space() -> None:
    scores = {"exact": Scores(0.5, 0.25, 10), "bare": Scores(1.0), "asked": Scores(0.0, mc_se=0.5)}
    row = encode(make(scores=scores, cost=Cost(worlds=1000))).record
    assert row["scores"] == '{"exact":[0.5,0.25,10],"bare":[1.0],"asked":[0.0,0.0,1,0.0,0.5]}'
    assert row["cost"] == '{"worlds":1000}'


def test_numbers_of_array_libraries_are_taken() -> None:
    scores = {"kl": Scores(np.float32(0.5), np.float64(0.25), np.int64(2), items=np.float64([0.1, 0.2]))}
    new = encode(make(scores=scores, cost=Cost(np.float32(1.5), parameters=np.int32(3))))
    assert json.loads(new.record["scores"]) == {"kl": [0.5, 0.25, 2]}
    assert json.loads(new.record["cost"]) == {"compile_cpu_seconds": 1.5, "parameters": 3}
    assert new.arrays is not None and unpack(new.arrays["items"])["kl"].dtype == np.float32


def test_equal_provenance_has_one_digest_whatever_its_order() -> None:
    one, same, other = ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, {"a": 1, "b": [3]})
    digests = [encode(make(provenance=given)).provenance["digest"] for given in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]
