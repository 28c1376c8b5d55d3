"""Samplers propose inside the space, learn, and go on after a break as if there had been none."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from calibrant.tune import samplers
from calibrant.tune.samplers import BATCH, Judged, Proposer, check_name, check_sampler, inside
from calibrant.tune.spaces import Point, parse_space
from calibrant.types import CalibrantError

AGENT = "ensemble+"
SPACE = parse_space("l2=0.001..1000:log,prior_scale=0.01..100:log,size=1..20,bootstrap=none|bernoulli", AGENT)
START = {"l2": "100", "prior_scale": "50", "size": "10", "bootstrap": "none"}


def bowl(point: Point) -> float:
    """Smallest, 0, at l2 = prior_scale = 0.1."""
    return sum((math.log10(float(point[name])) + 1) ** 2 for name in ("l2", "prior_scale"))


def search(sampler: str, batches: int, value: Callable[[Point], float | None] = bowl, seed: int = 0) -> list[Judged]:
    """As a study does it: trial 0 alone, then batch after batch."""
    proposer = Proposer(sampler, SPACE, True, seed)
    past = [Judged(0, 0, START, value(START))]
    for batch in range(1, batches + 1):
        points = proposer.propose(past, range(len(past), len(past) + BATCH))
        past += [Judged(len(past) + place, batch, point, value(point)) for place, point in enumerate(points)]
    return past


@pytest.mark.parametrize("sampler", ["random", "tpe", "cmaes"])
def test_proposals_lie_in_the_space_and_differ(sampler: str) -> None:
    past = search(sampler, 3)
    assert all(inside(trial.point, SPACE) for trial in past)
    assert len({tuple(trial.point.values()) for trial in past}) == len(past) == 25
    assert {trial.point["bootstrap"] for trial in past} == {"none", "bernoulli"}


@pytest.mark.parametrize("sampler", ["random", "tpe", "cmaes"])
def test_the_past_decides_and_nothing_else(sampler: str) -> None:
    """A proposer made anew from what is stored goes on exactly; another seed goes elsewhere."""
    whole = search(sampler, 4)
    again = Proposer(sampler, SPACE, True, 0)
    for batch in range(1, 5):
        first = 1 + BATCH * (batch - 1)
        expected = [dict(trial.point) for trial in whole[first : first + BATCH]]
        assert again.propose(whole[:first], range(first, first + BATCH)) == expected
    assert search(sampler, 1, seed=1)[1:] != whole[1:9]


@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
def test_samplers_learn(sampler: str) -> None:
    """Late proposals are better than the first ones. Seeds are fixed: no false alarm, whatever the weather."""
    past = search(sampler, 10)
    early, late = ([bowl(trial.point) for trial in part] for part in (past[1:17], past[-16:]))
    assert sum(late) < sum(early) / 3


@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
def test_failed_trials_teach_nothing_but_do_not_stop_a_search(sampler: str) -> None:
    def some_fail(point: Point) -> float | None:
        return None if float(point["l2"]) > 30 else bowl(point)

    past = search(sampler, 6, some_fail)
    failed = sum(trial.objective is None for trial in past)
    assert 1 < failed < 30
    assert min(trial.objective for trial in past if trial.objective is not None) < 0.5


def test_maximising_is_not_minimising() -> None:
    up, down = (Proposer("tpe", SPACE, minimise, 0) for minimise in (False, True))
    past = search("random", 3)
    assert up.propose(past, [25]) != down.propose(past, [25])


def test_a_start_outside_of_the_space_is_passed_over() -> None:
    past = search("tpe", 2)
    outside = [replace(past[0], point=START | {"size": "100"}), *past[1:]]
    assert Proposer("tpe", SPACE, True, 0).propose(outside, [17]) == Proposer("tpe", SPACE, True, 0).propose(
        outside[1:], [17]
    )


def test_cmaes_refuses_a_past_that_is_not_its_own() -> None:
    past = search("cmaes", 2)
    foreign = [*past[:5], replace(past[5], point=START), *past[6:]]
    with pytest.raises(CalibrantError, match="trial 5 was proposed by another version of Optuna"):
        Proposer("cmaes", SPACE, True, 0).propose(foreign, [17])


def test_names_and_spaces_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CalibrantError, match=r"unknown sampler 'tpa', did you mean 'tpe'\?; there are grid, random"):
        check_name("tpa")
    check_sampler("cmaes", SPACE)
    with pytest.raises(CalibrantError, match=r"cmaes needs at least two ranges.*here it has 1"):
        check_sampler("cmaes", parse_space("l2=1..2,bootstrap=none|bernoulli", AGENT))
    monkeypatch.setattr(samplers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CalibrantError, match=r"needs torch, which is not installed: install it, or choose") as caught:
        check_name("gp")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="Gaussian processes need torch")
def test_gaussian_processes() -> None:
    assert all(inside(trial.point, SPACE) for trial in search("gp", 3))
