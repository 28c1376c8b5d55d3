"""Intervals: closed forms, the treatment of small strata, and coverage by simulation.

Simulations draw from fixed streams, so they do not flicker. Each comment gives the chance that a correct program would
fail on another stream.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibrant.stats.intervals import Estimates, Interval, estimates, interval, quantile
from calibrant.types import Array, CalibrantError


def covered(found: Estimates, truth: float) -> float:
    return float(np.mean(np.abs(found.mean - truth) <= quantile(found.df, 0.95) * found.se))


def naive(values: Array) -> Estimates:
    """The interval that ignores the design: every number is taken for an independent draw of one population."""
    n = values.shape[1]
    full = np.full(len(values), n)
    return Estimates(values.mean(1), values.std(1, ddof=1) / math.sqrt(n), full - 1, full)


def test_one_stratum_is_the_textbook_t_interval() -> None:
    values = np.array([0.3, 1.2, 0.7, 2.1, 0.9])
    found = interval(values, ["a"] * 5)
    expected = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.mean == pytest.approx(values.mean()) and found.n == 5


def test_two_equal_strata_are_welch_with_satterthwaite_freedom() -> None:
    left, right = np.array([1.0, 2.0, 4.0, 3.5]), np.array([-10.0, -20.0, -45.0, -11.0])
    found = estimates(np.concatenate([left, right])[None], [0] * 4 + [1] * 4)
    # The mean of two stratum means has half the standard error, and the freedom, of Welch's difference.
    welch = stats.ttest_ind(left, right, equal_var=False)
    assert found.mean[0] == pytest.approx((left.mean() + right.mean()) / 2)
    assert found.se[0] == pytest.approx(abs((left.mean() - right.mean()) / welch.statistic) / 2)
    assert found.df[0] == pytest.approx(welch.df)


def test_unequal_strata_weigh_by_their_environments() -> None:
    values, strata = np.array([1.0, 2.0, 3.0, 4.0, 20.0, 26.0]), np.array([0, 0, 0, 0, 1, 1])
    found = estimates(values[None], strata)
    within = (4 * values[:4].var(ddof=1) + 2 * values[4:].var(ddof=1)) / 36
    assert found.mean[0] == pytest.approx(values.mean())
    assert found.se[0] == pytest.approx(math.sqrt(within))


def test_differences_between_settings_do_not_widen_the_interval() -> None:
    values, strata = np.array([1.0, 2.0, 1.5, 1.0, 2.0, 1.5]), np.array([0, 0, 0, 1, 1, 1])
    near, far = interval(values, strata), interval(values + 1000.0 * strata, strata)
    assert far.high - far.low == pytest.approx(near.high - near.low)
    assert naive((values + 1000.0 * strata)[None]).se[0] > 100 * (near.high - near.low)


def test_single_environment_strata_are_collapsed_into_one() -> None:
    found = estimates(np.array([[1.0, 3.0, 10.0, 20.0, 60.0]]), ["a", "a", "b", "c", "d"])
    singles = np.array([10.0, 20.0, 60.0]).var(ddof=1)
    assert found.se[0] == pytest.approx(math.sqrt((2 * 2.0 + 3 * singles) / 25))


def test_a_lone_single_joins_the_largest_stratum() -> None:
    values = np.array([[1.0, 3.0, 5.0, 7.0, 9.5, 30.0]])
    found = estimates(values, ["a", "a", "b", "b", "b", "c"])
    joined = estimates(values, ["a", "a", "b", "b", "b", "b"])
    assert (found.se[0], found.df[0]) == (joined.se[0], joined.df[0])


def test_one_environment_has_no_interval_and_none_has_no_mean() -> None:
    one, none = interval([3.0, math.nan], ["a", "b"]), interval([math.nan], ["a"])
    assert (one.mean, one.n, none.n) == (3.0, 1, 0)
    assert all(map(math.isnan, (one.low, one.high, none.mean, none.low, none.high)))
    assert not one.excludes(0.0)


def test_constant_values_have_an_interval_of_no_width() -> None:
    assert interval([7.0] * 4, ["a", "a", "b", "b"]) == Interval(7.0, 7.0, 7.0, 4)


def test_infinite_values_are_refused() -> None:
    with pytest.raises(CalibrantError, match="finite"):
        interval([1.0, math.inf], ["a", "a"])


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 5)), min_size=2, max_size=30))
def test_order_and_absent_environments_change_nothing(draws: list[tuple[float, int]]) -> None:
    values, strata = (np.array(part, float) for part in zip(*draws, strict=True))
    found = interval(values, strata)
    shuffled = np.random.default_rng(len(draws)).permutation(len(draws))
    again = interval(values[shuffled], strata[shuffled])
    padded = interval([*values, math.nan, math.nan], [*strata, 0, 99])
    for other in (again, padded):
        assert other.n == found.n
        np.testing.assert_allclose([other.mean, other.low, other.high], [found.mean, found.low, found.high], atol=1e-6)
    assert found.mean == pytest.approx(values.mean(), abs=1e-6)


def test_rows_of_a_batch_do_not_mix() -> None:
    random = np.random.default_rng(5)
    values, strata = random.normal(size=(6, 20)), random.integers(0, 8, 20)
    values[random.random(values.shape) < 0.3] = math.nan
    alone = [interval(row, strata) for row in values]
    for together, single in zip(estimates(values, strata).intervals(), alone, strict=True):
        assert together.n == single.n
        assert (together.mean, together.low, together.high) == pytest.approx((single.mean, single.low, single.high))


def test_coverage_with_settings_that_differ_in_mean_and_spread() -> None:
    # 4000 repetitions: a coverage of 0.95 has standard error 0.0034; below 0.936 or above 0.964 with chance < 1e-4.
    # Satterthwaite's freedom errs on the wide side here by less than 0.005.
    random, strata = np.random.default_rng(1), np.repeat(np.arange(7), 6)
    centre, spread = np.linspace(0, 30, 7)[strata], np.linspace(0.5, 2, 7)[strata]
    values = centre + spread * random.normal(size=(4000, len(strata)))
    assert 0.936 < covered(estimates(values, strata), centre.mean()) < 0.969
    assert covered(naive(values), centre.mean()) > 0.9999  # and is an order of magnitude too wide
    assert np.median(naive(values).se) > 7 * np.median(estimates(values, strata).se)


def test_coverage_with_replicates_that_share_an_environment() -> None:
    # As above: chance < 1e-4 for the honest interval. The naive one takes 5 replicates for 5 environments.
    random, strata, replicates = np.random.default_rng(2), np.repeat(np.arange(4), 5), 5
    environment = strata + random.normal(size=(4000, len(strata)))
    records = environment[..., None] + 0.3 * random.normal(size=(4000, len(strata), replicates))
    assert 0.936 < covered(estimates(records.mean(2), strata), strata.mean()) < 0.969
    split = estimates(records.reshape(4000, -1), np.repeat(strata, replicates))
    assert covered(split, strata.mean()) < 0.70


def test_coverage_with_one_environment_per_setting_errs_on_the_wide_side() -> None:
    # The settings' own differences are in the variance, so coverage is at least nominal; 4000 repetitions, < 1e-4.
    random, strata = np.random.default_rng(3), np.arange(12)
    values = 0.5 * strata + random.normal(size=(4000, 12))
    assert covered(estimates(values, strata), 0.5 * strata.mean()) > 0.936
    lone = np.array([0] * 5 + [1] * 5 + [2])
    values = 3.0 * lone + random.normal(size=(4000, 11)) * np.where(lone == 2, 3.0, 1.0)
    assert covered(estimates(values, lone), 3.0 * lone.mean()) > 0.936


def test_coverage_of_skewed_values_falls_short_by_little() -> None:
    # Exponential values, as skewed as divergences are: the t interval covers 0.926 with 30 environments.
    # The bound lies 5 standard errors lower: chance < 1e-6.
    random, strata = np.random.default_rng(4), np.repeat(np.arange(6), 5)
    values = (1.0 + strata) * random.exponential(size=(4000, len(strata)))
    assert covered(estimates(values, strata), float((1.0 + strata).mean())) > 0.905
