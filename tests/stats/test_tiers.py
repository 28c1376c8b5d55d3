"""Tiers of simulated agents. Simulations draw from fixed streams; comments give the chance of a false alarm."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from calibrant.stats.tiers import levels, significantly_worse, tiers
from calibrant.types import Array

NAMES = list("abcdefgh")
STRATA = np.repeat(np.arange(6), 5)


def simulated(random: np.random.Generator, offsets: Array, noise: float = 0.2) -> Array:
    """Agents that share hard and easy environments and differ by their offsets."""
    shared = STRATA + random.normal(size=len(STRATA))
    return shared + np.asarray(offsets)[:, None] + noise * random.normal(size=(len(offsets), len(STRATA)))


def test_equal_agents_share_one_tier() -> None:
    # 500 boards of 8 equal agents: at a rate of 0.95 fewer than 455 whole tiers have chance < 1e-4.
    random = np.random.default_rng(0)
    whole = [len(tiers(NAMES, simulated(random, np.zeros(8)), STRATA)) == 1 for _ in range(500)]
    assert np.mean(whole) > 0.91


def test_correcting_only_for_the_leader_would_break_that_promise() -> None:
    """Why all pairs are corrected for: the leader is picked by its noise. False alarm: chance < 1e-3."""
    random = np.random.default_rng(1)
    split = 0
    for _ in range(400):
        values = simulated(random, np.zeros(8))
        best = values.mean(1).argmin()
        p = [stats.ttest_rel(values[best], row).pvalue for index, row in enumerate(values) if index != best]
        split += min(p) < 0.05 / 7
    assert split / 400 > 0.06  # its rate is 0.12, where 0.05 was promised


def test_no_false_claim_among_equals_when_others_differ() -> None:
    # Four equal agents beside four clearly worse, equal ones: any claim inside a group is false, 0.05 at most.
    # 300 boards: more than 30 false ones have chance < 1e-3.
    random, offsets = np.random.default_rng(2), np.array([0, 0, 0, 0, 3, 3, 3, 3.0])
    groups = [tiers(NAMES, simulated(random, offsets), STRATA) for _ in range(300)]
    right = [[set(tier) for tier in board] == [set("abcd"), set("efgh")] for board in groups]
    assert np.mean(right) > 0.90


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_separated_agents_get_tiers_of_their_own(better: str) -> None:
    # Gaps of 1 at a standard error of 0.05: a missed or false separation has chance < 1e-6.
    values = simulated(np.random.default_rng(3), np.array([3.0, 1.0, 2.0, 0.0]))
    found = tiers("wxyz", values, STRATA, "lower" if better == "lower" else "higher")
    assert found == ((("z",), ("x",), ("y",), ("w",)) if better == "lower" else (("w",), ("y",), ("x",), ("z",)))


def test_direction_only_turns_the_order() -> None:
    values = simulated(np.random.default_rng(4), np.array([0.0, 0.0, 0.5, 0.6]))
    assert tiers("abcd", values, STRATA, "lower") == tiers("abcd", -values, STRATA, "higher")


def test_holm_against_a_plain_implementation() -> None:
    values, one = simulated(np.random.default_rng(5), np.array([0, 0.05, 0.1, 0.2, 0.3])), np.zeros(len(STRATA))
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    p = {pair: stats.ttest_rel(values[pair[0]], values[pair[1]], alternative="greater").pvalue for pair in pairs}
    expected = set()
    for left, pair in zip(range(len(pairs), 0, -1), sorted(pairs, key=p.__getitem__), strict=True):
        if p[pair] > 0.05 / left:
            break
        expected.add(pair)
    assert 0 < len(expected) < 10
    assert set(map(tuple, np.argwhere(significantly_worse(values, one)).tolist())) == expected


def test_an_agent_that_was_only_asked_the_easy_ones_does_not_lead() -> None:
    values = simulated(np.random.default_rng(6), np.array([0.0, 1.0]), noise=0.05)
    values[1, STRATA > 0] = math.nan
    assert np.nanmean(values[1]) < np.nanmean(values[0])
    assert tiers(["thorough", "choosy"], values, STRATA) == (("thorough",), ("choosy",))


def test_levels_are_means_when_nothing_is_missing() -> None:
    values = np.random.default_rng(7).normal(size=(4, 9))
    found = levels(values)
    np.testing.assert_allclose(found - found.mean(), values.mean(1) - values.mean())


def test_agents_that_share_too_little_are_not_told_apart() -> None:
    nan = math.nan
    assert tiers("ab", [[1.0, 1.1, nan], [nan, 9.0, 9.1]], [0, 0, 0]) == (("a", "b"),)
    assert tiers("abc", [[1.0, 1.1], [nan, nan], [9.0, 9.1]], [0, 0]) == (("a",), ("c",))
    assert tiers("a", [[1.0]], [0]) == (("a",),)
    assert tiers("a", [[nan]], [0]) == ()


def test_identical_agents_are_not_told_apart_and_constants_are() -> None:
    assert tiers("ab", [[1.0, 2.0], [1.0, 2.0]], [0, 0]) == (("a", "b"),)
    assert tiers("ab", [[5.0, 5.0], [3.0, 3.0]], [0, 0]) == (("b",), ("a",))
