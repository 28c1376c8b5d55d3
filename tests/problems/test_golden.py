"""What a seed draws, byte for byte. A record of last year and one of today must be about the same problem.

`python tests/problems/test_golden.py` writes the checksums anew; do that only together with a raised `version`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from calibrant import registry
from calibrant.types import Arena, Array

GOLDEN = Path(__file__).parents[1] / "golden" / "problems.json"
CASES = (
    ("testbed?tuples=50", 0),
    ("testbed?tuples=50", 1),
    ("testbed?train=1&temp=0.01&tuples=50", 0),
    ("testbed?train=1000&temp=0.5&tuples=50", 9),
    ("testbed?dim=10&tuples=50&activation=tanh&init=xavier&tau=1x5&kappa=1x3", 3),
    ("testbed?dim=100&train=30&tuples=20&activation=selu&hidden=20x20x20", 4),
    ("testbed?classes=3&activation=gelu&init=normal&tuples=50&hidden=5", 5),
    ("testbed?classes=10&activation=swish&temp=0.02&tuples=20&tau=1x10x100", 6),
    ("testbed?activation=leaky_relu&tuples=20", 7),
    ("testbed?activation=sigmoid&tuples=20", 8),
    ("coins?coins=20&train=30&tuples=50&tau=3x20", 0),
    ("logistic?dim=3&train=5&tuples=50&tau=3x1200", 0),
    ("active?per_dim=30&labels=10&tuples=20", 2),
    ("bandit?dim=10", 0),
    ("bandit?per_dim=7&activation=tanh&hidden=20x20", 3),
    ("coin_bandit?coins=5", 1),
    ("contextual?steps=400", 0),
)
ADVICE = (
    "the problem stream changed: '{}' with seed {} no longer draws the same {}. If that is intended, raise `version` "
    "of the problem, so that cells get new ids, and write the checksums anew; otherwise undo the change."
)


@pytest.mark.parametrize(("spec", "seed"), CASES)
def test_problem_stream(spec: str, seed: int) -> None:
    expected, found = json.loads(GOLDEN.read_text())[f"{spec}#{seed}"], checksums(spec, seed)
    different = [part for part in expected if found.get(part) != expected[part]]
    assert not different, ADVICE.format(spec, seed, ", ".join(different))
    assert found.keys() == expected.keys()


def checksums(spec: str, seed: int) -> dict[str, str]:
    """Of every array that a problem gives. True log-probabilities to 1e-4: sums may round differently elsewhere."""
    problem = registry.resolve("problems", spec)
    instance = problem.sample(seed)
    if isinstance(instance, Arena):
        return {"version": str(problem.version)} | arena_checksums(instance)
    question = instance.question
    arrays = {
        "train x": instance.train.x,
        "train y": instance.train.y,
        "question x": question.x,
        "marginal rows": question.marginal,
        "labels": instance.truth.labels,
        "true probabilities": np.round(1e4 * instance.truth.logp).astype(np.int64),
    }
    for family in question.tuples:
        arrays[f"anchors of tau{family.tau}{family.name}"] = family.anchors
        arrays[f"repeats of tau{family.tau}{family.name}"] = family.repeats
    if question.long is not None:
        arrays["long inputs"], _, arrays["long labels"] = question.long.draw(0)
    return {"version": str(problem.version)} | {name: checksum(array) for name, array in arrays.items()}


def arena_checksums(arena: Arena) -> dict[str, str]:
    arrays = {
        "table": np.round(1e4 * arena.table).astype(np.int64),
        "reward": np.round(1e4 * arena.reward).astype(np.int64),
    }
    arrays |= {} if arena.order is None else {"order": arena.order}
    return {name: checksum(array) for name, array in arrays.items()}


def checksum(array: Array) -> str:
    kind = "<f4" if array.dtype.kind == "f" else "<i8"
    assert array.dtype.kind != "f" or array.dtype == np.float32
    content = f"{kind}{array.shape}".encode() + np.ascontiguousarray(array, kind).tobytes()
    return hashlib.sha256(content).hexdigest()[:32]


if __name__ == "__main__":
    golden = {f"{spec}#{seed}": checksums(spec, seed) for spec, seed in CASES}
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")
