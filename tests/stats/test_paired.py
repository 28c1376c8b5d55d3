"""Paired differences and ratios. Simulations draw from fixed streams; comments give the chance of a false alarm."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibrant.stats.intervals import estimates, interval, quantile
from calibrant.stats.paired import difference, differences, ratio, ratios

ONE = ["one"] * 6
AGENT = np.array([0.9, 2.2, 0.4, 1.9, 3.1, 1.0])
BASELINE = np.array([1.0, 2.0, 0.7, 2.4, 3.3, 1.5])


def test_difference_is_the_paired_t_interval() -> None:
    found = difference(AGENT, BASELINE, ONE)
    expected = stats.ttest_rel(AGENT, BASELINE).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.mean == pytest.approx((AGENT - BASELINE).mean())


def test_only_shared_environments_count() -> None:
    agent = np.array([*AGENT, 50.0, math.nan])
    baseline = np.array([*BASELINE, math.nan, -50.0])
    assert difference(agent, baseline, ["one"] * 8) == difference(AGENT, BASELINE, ONE)
    assert ratio(agent, baseline, ["one"] * 8) == ratio(AGENT, BASELINE, ONE)
    nothing = difference([1.0, math.nan], [math.nan, 1.0], ["one"] * 2)
    assert nothing.n == 0 and math.isnan(nothing.mean)


def test_pairing_removes_what_environments_share() -> None:
    random = np.random.default_rng(0)
    shared, strata = 100 * random.normal(size=40), np.repeat(np.arange(4), 10)
    agent, baseline = shared - 1 + 0.1 * random.normal(size=40), shared + 0.1 * random.normal(size=40)
    found = difference(agent, baseline, strata)
    assert found.excludes(0) and found.mean == pytest.approx(-1, abs=0.2)
    assert interval(agent, strata).high - interval(agent, strata).low > 100 * (found.high - found.low)


def test_rounding_is_not_a_difference() -> None:
    agent = np.full(5, 0.1 + 0.2)
    assert not difference(agent, np.full(5, 0.3), ["one"] * 5).excludes(0)


def test_single_precision_is_not_a_difference() -> None:
    """Two ways to the same score in single precision: the same few digits off in every environment."""
    score = np.array([0.8434137, 0.9434137, 1.1434137])
    assert not difference(score + 6e-8, score, ["one"] * 3).excludes(0)
    assert difference(score + 6e-6, score, ["one"] * 3).excludes(0)


def test_fieller_solves_its_own_definition() -> None:
    """At either limit r the mean of agent - r * baseline lies exactly t standard errors from 0."""
    found = ratio(AGENT, BASELINE, ONE)
    assert found.mean == pytest.approx(AGENT.mean() / BASELINE.mean())
    for limit in (found.low, found.high):
        gap = AGENT - limit * BASELINE
        assert abs(gap.mean()) == pytest.approx(stats.t.ppf(0.975, 5) * stats.sem(gap))
    assert found.low < found.mean < found.high


def test_fieller_is_the_delta_method_when_the_baseline_is_sharp() -> None:
    random = np.random.default_rng(1)
    baseline = 5 + 0.01 * random.normal(size=200)
    agent = 4 + 0.5 * random.normal(size=200)
    found = ratio(agent, baseline, ["one"] * 200)
    z = (agent - found.mean * baseline) / baseline.mean()
    half = stats.t.ppf(0.975, 199) * stats.sem(z)
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half), rel=1e-4)


def test_ratio_to_itself_is_one() -> None:
    found = ratio(BASELINE + 10, BASELINE + 10, ONE)
    assert (found.mean, found.low, found.high) == (1.0, 1.0, 1.0)


def test_no_bounded_ratio_when_the_baseline_may_be_zero() -> None:
    found = ratio(AGENT, [1.0, -2.0, 0.7, -2.4, 3.3, 0.5], ONE)
    assert math.isfinite(found.mean) and math.isnan(found.low) and math.isnan(found.high)
    assert math.isnan(ratio([1.0, 2.0], [1.0, -1.0], ["one"] * 2).mean)
    alone = ratio([1.0], [4.0], ["one"])
    assert (alone.mean, alone.n) == (0.25, 1) and math.isnan(alone.low)


numbers = st.floats(0.1, 10).map(lambda value: round(value, 3))
triples = st.tuples(numbers, numbers, st.integers(0, 2))


@given(st.lists(triples, min_size=3, max_size=20))
def test_ratio_and_difference_never_contradict_each_other(draws: list[tuple[float, float, int]]) -> None:
    agent, baseline, strata = (np.array(part) for part in zip(*draws, strict=True))
    gap, quotient = difference(agent, baseline, strata), ratio(agent, baseline, strata)
    near = min(abs(gap.low), abs(gap.high), abs(quotient.low - 1), abs(quotient.high - 1)) < 1e-6
    if not near and math.isfinite(quotient.low):
        assert gap.excludes(0) == quotient.excludes(1)


def test_coverage_of_both_intervals() -> None:
    # 2000 repetitions: standard error 0.0049; below 0.93 or above 0.97 with chance < 1e-4 at a coverage of 0.95.
    random, strata = np.random.default_rng(2), np.repeat(np.arange(3), 6)
    shared = np.array([2.0, 4.0, 6.0])[strata] + 1.5 * random.normal(size=(2000, 18))
    agent = 0.7 * shared + random.normal(size=(2000, 18))
    baseline = shared + 0.5 * random.normal(size=(2000, 18))
    gaps = [difference(a, b, strata) for a, b in zip(agent, baseline, strict=True)]
    quotients = [ratio(a, b, strata) for a, b in zip(agent, baseline, strict=True)]
    assert 0.93 < np.mean([not gap.excludes(-0.3 * 4) for gap in gaps]) < 0.97
    assert 0.93 < np.mean([not quotient.excludes(0.7) for quotient in quotients]) < 0.97


def test_fieller_misses_on_both_sides_where_the_delta_method_misses_on_one() -> None:
    # A baseline as noisy as its mean. The truth lies above the limits at a rate of 0.026 (Fieller) or 0.044 (delta) and
    # below them at 0.015 or 0.001. With 2000 repetitions each bound lies 3 standard errors off: chance < 5e-3.
    random, strata, truth = np.random.default_rng(4), np.repeat(np.arange(3), 6), 0.7
    shared = 1 + random.normal(size=(2000, 18))
    agent, baseline = (
        truth * shared + 0.2 * random.normal(size=(2000, 18)),
        shared + 0.7 * random.normal(size=(2000, 18)),
    )
    fieller = [ratio(a, b, strata) for a, b in zip(agent, baseline, strict=True)]
    means = np.array([found.mean for found in fieller])[:, None]
    delta = estimates(agent - means * baseline, strata)
    half = quantile(delta.df, 0.95) * delta.se / np.abs(baseline.mean(1))
    assert np.mean(means[:, 0] + half < truth) > 0.03 and np.mean(means[:, 0] - half > truth) < 0.004
    assert np.mean([found.high < truth for found in fieller]) < 0.037
    assert np.mean([found.low > truth for found in fieller]) > 0.007


def test_batches_agree_with_single_comparisons() -> None:
    random, strata = np.random.default_rng(3), np.repeat(np.arange(4), 3)
    agents = random.gamma(2.0, size=(5, 12))
    agents[1, :4] = math.nan
    baseline = random.gamma(2.0, size=12)
    for row, (gap, quotient) in enumerate(
        zip(differences(agents, baseline, strata).intervals(), ratios(agents, baseline, strata), strict=True)
    ):
        assert gap == difference(agents[row], baseline, strata)
        assert quotient == ratio(agents[row], baseline, strata)
