"""The suites of generated problems: their sizes, their specs, and what makes them the papers' sweeps."""

from __future__ import annotations

import pytest

from calibrant import registry
from calibrant.engine.cohorts import make_tasks
from calibrant.engine.plan import make_plan
from calibrant.rules.priorities import PRIORITIES
from calibrant.suites import active, bandit, contextual, hd, robustness, testbed
from calibrant.suites.base import Suite

GENERATED = (testbed.SUITE, hd.SUITE, robustness.SUITE)
PLAYED = (bandit.SUITE, bandit.BY_RULE, bandit.BY_LAW, contextual.SUITE, active.SUITE)


@pytest.mark.parametrize("suite", GENERATED + PLAYED, ids=lambda suite: suite.name)
def test_every_spec_is_written_in_the_one_way(suite: Suite) -> None:
    assert registry.load("suites", suite.name) is suite
    for preset in suite.presets.values():
        assert [registry.canonical("problems", problem) for problem in preset.problems] == list(preset.problems)
        assert [registry.canonical("agents", agent) for agent in preset.agents] == list(preset.agents)
        assert len(set(preset.problems)) == len(preset.problems)
        assert suite.baseline in preset.agents
        built = [registry.resolve("problems", problem) for problem in preset.problems]
        assert all(hasattr(problem, axis) for problem in built for axis in (*suite.axes, *suite.compared))


def test_no_problem_belongs_to_two_suites() -> None:
    """Else a store of one suite would show a fragment of another."""
    owned = [
        {problem for preset in suite.presets.values() for problem in preset.problems} for suite in GENERATED + PLAYED
    ]
    assert len(set.union(*owned)) == sum(map(len, owned))


def test_the_high_dimensional_sweep_is_the_papers() -> None:
    paper = hd.SUITE.preset("paper")
    built = [registry.resolve("problems", problem) for problem in paper.problems]
    assert len(built) * paper.seeds == 180
    assert {(one.dim, one.train // one.dim) for one in built} == {
        (d, r) for d in (2, 10, 100) for r in (1, 10, 100, 1000)
    }
    assert {one.temp for one in built} == {0.01, 0.1, 0.5} and max(one.train for one in built) == 100_000
    assert {(one.tau, one.kappa) for one in built} == {((1, 10), (2,))}  # tau=10 i.i.d. and dyadic, of one belief


def test_robustness_varies_one_thing_at_a_time() -> None:
    paper = robustness.SUITE.preset("paper")
    built = [registry.resolve("problems", problem) for problem in paper.problems]
    laws = {(one.activation, one.hidden) for one in built}
    wide = {(activation, (50, 50)) for activation in ("tanh", "swish", "sigmoid", "selu", "relu", "leaky_relu", "gelu")}
    assert laws == wide | {("relu", (width, width)) for width in (5, 10, 20, 50, 100)} and len(laws) == 11
    assert len(built) * paper.seeds == 11 * 210


def test_all_laws_share_one_program_per_training_size() -> None:
    """Agents know nothing of the law, so that eleven of them compile no more than one."""
    tasks = make_tasks(make_plan(robustness.SUITE, "quick", ["mlp"], 1, {"train": 10}))
    assert [len(task.cells) for task in tasks] == [8, 3]  # a chunk has eight lanes


def test_the_bandit_is_the_papers() -> None:
    paper = bandit.SUITE.preset("paper")
    built = [registry.resolve("problems", problem) for problem in paper.problems]
    assert paper.seeds == 20
    assert [(one.dim, len(one.sample(0).table)) for one in built] == [(2, 40), (10, 200), (50, 1000)]
    assert {(one.steps, one.temp, one.rule, one.capacity, one.batch, one.updates, one.lr) for one in built} == {
        (50_000, 0.1, "thompson", 10_000, 128, 1, 1e-3)
    }


def test_rules_and_priorities_are_all_played() -> None:
    rules = [registry.resolve("problems", problem) for problem in bandit.BY_RULE.preset("paper").problems]
    assert {one.rule for one in rules} == {"thompson", "greedy", "epsilon", "ucb", "uniform"}
    asked = [registry.resolve("problems", problem) for problem in active.SUITE.preset("paper").problems]
    assert {one.priority for one in asked} == set(PRIORITIES)
