"""The share of the gap closed: by hand, at its ends, with missing environments, and how often its interval is right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from calibrant.stats.gap import gap, gaps
from calibrant.stats.paired import difference
from calibrant.types import Array

ONE = np.zeros(12, int)


def losses(seed: int = 0, n: int = 12) -> tuple[Array, Array, Array]:
    """An agent, a baseline and a floor on n environments of very different difficulty."""
    stream = np.random.default_rng(seed)
    hard = stream.exponential(2.0, n)
    floor, baseline = 0.5 * hard + 0.1 * stream.normal(size=n), 1.5 * hard + 0.1 * stream.normal(size=n)
    return 0.3 * baseline + 0.7 * floor + 0.1 * stream.normal(size=n), baseline, floor


def test_closed_form_in_one_stratum() -> None:
    """Fieller's theorem as textbooks have it, for the means of x = baseline - agent and y = baseline - floor."""
    agent, baseline, floor = losses()
    found = gap(agent, baseline, floor, ONE)
    x, y = baseline - agent, baseline - floor
    (xx, xy), (_, yy) = np.cov(x, y) / len(x)
    t = stats.t.ppf(0.975, len(x) - 1)
    lead = y.mean() ** 2 - t**2 * yy
    middle = x.mean() * y.mean() - t**2 * xy
    root = math.sqrt(middle**2 - lead * (x.mean() ** 2 - t**2 * xx))
    assert found.mean == pytest.approx(x.mean() / y.mean())
    assert (found.low, found.high) == pytest.approx(((middle - root) / lead, (middle + root) / lead))
    assert found.n == 12


def test_the_baseline_has_closed_nothing_and_the_floor_all() -> None:
    _, baseline, floor = losses()
    start, end = gaps(np.stack([baseline, floor]), baseline, floor, ONE)
    assert (start.mean, start.low, start.high) == pytest.approx((0, 0, 0), abs=1e-12)
    assert (end.mean, end.low, end.high) == (1, 1, 1)


def test_a_worse_agent_is_negative() -> None:
    agent, baseline, floor = losses()
    found = gap(2 * baseline - agent, baseline, floor, ONE)
    assert found.mean == pytest.approx(-gap(agent, baseline, floor, ONE).mean) and found.high < 0


def test_it_excludes_one_exactly_when_the_agent_differs_from_the_floor() -> None:
    agent, baseline, floor = losses()
    for shift in np.linspace(-0.2, 0.2, 41):
        near = floor + 0.1 * (agent - agent.mean()) + shift
        differs = difference(near, floor, ONE).excludes(0)
        assert gap(near, baseline, floor, ONE).excludes(1) == differs


def test_environments_without_a_floor_are_left_out() -> None:
    agent, baseline, floor = losses()
    some = np.arange(12) < 8
    found = gap(agent, baseline, np.where(some, floor, np.nan), ONE)
    assert found == gap(agent[some], baseline[some], floor[some], ONE[some]) and found.n == 8
    partial = gap(np.where(np.arange(12) == 3, np.nan, agent), baseline, np.where(some, floor, np.nan), ONE)
    assert partial.n == 7
    none = gap(agent, baseline, np.full(12, np.nan), ONE)
    assert none.n == 0 and math.isnan(none.mean)


def test_no_way_to_go_is_no_share() -> None:
    agent, baseline, floor = losses()
    for below in (baseline, baseline + (baseline - floor)):
        found = gap(agent, baseline, below, ONE)
        assert all(map(math.isnan, (found.mean, found.low, found.high))) and found.n == 12
    hardly = baseline - np.where(np.arange(12) % 2, 1.0, -0.9)  # below the baseline, but not significantly
    found = gap(agent, baseline, hardly, ONE)
    assert math.isfinite(found.mean) and math.isnan(found.low) and math.isnan(found.high)


@pytest.mark.parametrize("skewed", [False, True])
def test_coverage(skewed: bool) -> None:
    """The 95 % interval of 2000 simulated boards: six strata of ten environments, whose gaps differ in size and noise.

    Normal values: the count of hits is binomial; a band of five standard deviations has a false-alarm rate below 1e-6.
    Skewed values, such as divergences are, may cost coverage; it should still be above 90 %.
    """
    stream = np.random.default_rng(1)
    strata = np.repeat(np.arange(6), 10)
    size = np.array([0.2, 0.5, 1.0, 1.5, 2.0, 3.0])[strata]  # mean way from the baseline to the floor
    closed = np.array([0.9, 0.8, 0.7, 0.7, 0.6, 0.5])[strata]  # share of it that the agent goes
    truth = (closed * size).sum() / size.sum()
    runs, hits = 2000, 0
    for _ in range(runs):
        luck = stream.exponential(1.0, 60) if skewed else 1 + 0.5 * stream.normal(size=60)
        way = size * luck
        baseline = 5 + stream.normal(size=60)
        agent = baseline - closed * way + 0.3 * size * stream.normal(size=60)
        hits += not gap(agent, baseline, baseline - way, strata).excludes(truth)
    assert hits / runs > (0.90 if skewed else 0.95 - 5 * math.sqrt(0.95 * 0.05 / runs))
    assert hits / runs < 0.95 + 5 * math.sqrt(0.95 * 0.05 / runs)
