"""Distances and verdicts, by hand."""

from __future__ import annotations

import json
import math

import pytest

from calibrant.papers.format import Paper
from calibrant.papers.receipts import Estimate, Receipt, Row, Verdict, judge


def at(mean: float, se: float, reach: float = 2.0) -> Estimate:
    return Estimate(mean, mean - reach * se, mean + reach * se, se, 210)


@pytest.mark.parametrize(
    ("mean", "se", "published", "error", "hidden", "z", "alike", "verdict"),
    [
        (1.25, 0.125, 1.0, None, 0.0, 2.0, math.sqrt(2), "differs"),  # 2 is not below 2
        (1.19, 0.1, 1.0, None, 0.0, 1.9, 1.9 / math.sqrt(2), "agrees"),
        (0.7, 0.1, 1.0, None, 0.0, -3.0, -3 / math.sqrt(2), "differs"),
        (1.5, 0.3, 1.0, 0.4, 0.0, 1.0, None, "agrees"),  # √(0.3² + 0.4²) = 0.5
        (1.0, 0.0, 1.0, None, 0.0, 0.0, 0.0, "agrees"),
        (0.5, 0.0, 0.4, None, 0.0, math.inf, math.inf, "differs"),
        (0.5, 0.0, 0.4, None, math.sqrt(3) / 10, 1.0, 1.0, "agrees"),  # an even chance over ± h has deviation h / √3
        (1.5, 0.4, 1.0, None, 0.3 * math.sqrt(3), 1.0, 0.5 / math.sqrt(0.41), "agrees"),
    ],
)
def test_distances_by_hand(
    mean: float,
    se: float,
    published: float,
    error: float | None,
    hidden: float,
    z: float,
    alike: float | None,
    verdict: Verdict,
) -> None:
    made = judge(at(mean, se), "value", published, error, hidden)
    assert made.z == pytest.approx(z)
    assert made.z_alike == (None if alike is None else pytest.approx(alike))
    assert made.verdict == verdict


@pytest.mark.parametrize(
    ("mean", "above", "similar"),
    [
        (3.0, "agrees", "differs"),
        (1.0, "undecided", "agrees"),
        (-1.0, "undecided", "agrees"),
        (-3.0, "differs", "differs"),
    ],
)
def test_a_direction_goes_by_the_interval(mean: float, above: Verdict, similar: Verdict) -> None:
    assert judge(at(mean, 1.0), "above", 0.0, None, 0.0).verdict == above
    assert judge(at(mean, 1.0), "similar", 0.0, None, 0.0).verdict == similar
    assert judge(at(mean, 1.0), "above", 0.0, None, 0.0).z_alike is None
    assert judge(at(mean, 1.0, reach=4.3), "above", 0.0, None, 0.0).verdict == "undecided"  # few environments


@pytest.mark.parametrize("expected", ["value", "above", "similar"])
def test_one_environment_decides_nothing(expected: str) -> None:
    lone = Estimate(0.5, math.nan, math.nan, math.nan, 1)
    assert judge(lone, expected, 0.5, None, 0.0).verdict == "undecided"  # type: ignore[arg-type]


def test_json_is_strict_and_complete() -> None:
    plan = {"problems": ["testbed"], "seeds": 2}
    row = {"label": "A", "agent": "mlp", "published": {"ece": 0.1}}
    item = {"title": "T", "plan": plan, "values": [row], "facts": ["a fact"]}
    paper = Paper.model_validate({"name": "p", "title": "P", "citation": "C", "items": {"t": item}})
    certain = judge(at(0.5, 0.0), "value", 0.4, None, 0.0)
    rows = (
        Row("value", "A", "mlp", "ece", "value", 0.4, ours=certain, of=2),
        Row("value", "B", "x", "ece", "value", 1),
    )
    made = Receipt(paper, "t", rows, 2, 4, 2, 0, 1.5, {"x": "unknown"}, whole=False)
    text = json.dumps(made.to_json(), allow_nan=False)
    found = json.loads(text)
    assert found["verdicts"] == {"agrees": 0, "differs": 1, "undecided": 0, "not run": 1}
    first, second = found["rows"]
    assert (first["ours"]["z"], first["verdict"], first["n"]) == (None, "differs", 210)  # infinite
    assert (second["ours"], second["verdict"], second["n"]) == (None, "not run", 0)
    assert found["facts"] == ["a fact"] and found["cpu_seconds"] == 1.5 and found["absent"] == {"x": "unknown"}
