"""What counts as an environment: problems of a suite that draw the same must count once."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from calibrant import registry
from calibrant.suites.base import Suite
from calibrant.types import Array

DRAWN = ("testbed", "robustness", "bandit", "bandit-rules", "bandit-laws", "active")


def arrays(problem: str) -> list[Array]:
    drawn = registry.resolve("problems", problem).sample(0)
    return [drawn.table, drawn.reward] if hasattr(drawn, "table") else [drawn.train.x, drawn.train.y]


@pytest.mark.parametrize("name", DRAWN)
def test_problems_that_draw_the_same_are_one_environment_and_no_others(name: str) -> None:
    suite: Suite = registry.load("suites", name)
    for preset in suite.presets.values():
        found = {problem: arrays(problem) for problem in preset.problems}
        for one, other in combinations(found, 2):
            same = all(
                a.shape == b.shape and np.array_equal(a, b) for a, b in zip(found[one], found[other], strict=True)
            )
            assert same == (suite.drawn(one) == suite.drawn(other)), (one, other)


def test_how_an_environment_is_met_is_left_out_of_what_is_drawn() -> None:
    suite: Suite = registry.load("suites", "active")
    assert suite.drawn("active?dim=10&per_dim=20&labels=200&priority=joint") == "active?dim=10&per_dim=20&labels=200"
    assert suite.drawn("active?priority=joint") == suite.drawn("active") == "active"
