"""A study from end to end: it finds what is best, stops what is hopeless, and a break changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrant.engine.cohorts import make_tasks
from calibrant.engine.ledger import StudyTrial
from calibrant.engine.store import SqlStore, open_store
from calibrant.tune import TUNING_SEEDS
from calibrant.tune.search import Budget, Finished, search
from calibrant.tune.study import Study, make_study
from calibrant.types import CalibrantError, Record

DIAL = """
from dataclasses import dataclass
from math import log10
from typing import Annotated
from annotated_types import Gt

@dataclass(frozen=True)
class Dial:
    x: Annotated[float, Gt(0)] = 100.0
    y: Annotated[float, Gt(0)] = 100.0

    def fit(self, seed, train, facts):
        if self.x == 13:
            raise ValueError("thirteen")
        tilt = abs(log10(self.x)) + abs(log10(self.y))  # the closer both are to 1 the better
        return lambda x: [[[0.0, tilt]] * len(x)]
"""
GRID = "x=0.001|0.1|1|10|1000,y=1|100"
RANGES = "x=0.001..1000:log,y=0.001..1000:log"


@pytest.fixture(scope="module")
def dial(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("agent") / "dial.py"
    file.write_text(DIAL)
    return f"{file}:Dial"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(str(tmp_path / "results.db")) as opened:
        yield opened


class Interrupting:
    """Progress that is fed up after so many records."""

    def __init__(self, after: int) -> None:
        self.left = after

    def start(self, total: int, already: int) -> None: ...
    def stop(self) -> None: ...

    def advance(self, record: Record) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def study_of(agent: str, sampler: str = "grid", space: str = GRID, **settings: Any) -> Study:
    return make_study("testbed", agent, sampler, space, where={"train": "10", "temp": "0.1|0.5"}, **settings)


def run(study: Study, store: SqlStore, **rest: Any) -> Finished:
    return search(study, store, executor="local", **rest)


def told(trials: tuple[StudyTrial, ...]) -> list[tuple[Any, ...]]:
    """What must not depend on time or on breaks."""
    return [(one.number, one.batch, one.spec, one.state, one.objective, one.rungs, one.reason) for one in trials]


# --- what is found --------------------------------------------------------------------------------


def test_a_grid_finds_the_best_and_stops_the_rest(dial: str, store: SqlStore) -> None:
    study = study_of(dial, seeds=3)
    finished = run(study, store)
    trials = finished.trials
    assert finished.exit_code == 0 and not finished.interrupted
    assert len(trials) == 11 and {one.batch for one in trials} == {0}
    assert trials[0].spec == study.agent and trials[0].state == "complete"  # never stopped, however bad
    best = min(trials, key=lambda one: one.objective if one.objective is not None else 9)
    assert best.spec.endswith("?x=1&y=1") and best.state == "complete" and len(best.rungs) == 2
    stopped = [one for one in trials if one.state == "stopped"]
    assert len(stopped) >= 6 and all([seeds for seeds, _ in one.rungs] == [1] for one in stopped)
    assert all(one.cost > 0 for one in trials)
    assert trials == tuple(store.trials(study.name))


def test_tuning_environments_are_nobody_elses(dial: str, store: SqlStore) -> None:
    study = study_of(dial, seeds=3)
    run(study, store, budget=Budget(trials=3))
    records = list(store.records(items=True))
    assert {record.cell.seed for record in records} == {TUNING_SEEDS, TUNING_SEEDS + 1, TUNING_SEEDS + 2}
    assert all(score.items is None for record in records for score in record.scores.values())
    expected = {cell.id for one in store.trials(study.name) for cell in study.cells(one.spec, one.rungs[-1][0])}
    assert {record.cell.id for record in records} == expected


def test_without_halving_everything_is_measured(dial: str, store: SqlStore) -> None:
    trials = run(study_of(dial, seeds=2, halving=False), store, budget=Budget(trials=4)).trials
    assert [one.state for one in trials] == ["complete"] * 4
    records = {r.cell.id: r.scores["aggregate"].mean for r in store.records()}
    assert len(records) == 4 * 2 * 2
    study = study_of(dial, seeds=2, halving=False)
    for one in trials:
        values = [records[cell.id] for cell in study.cells(one.spec, 2)]
        assert one.objective == pytest.approx(sum(values) / 4, rel=1e-12)


def test_any_metric_in_its_direction(dial: str, store: SqlStore) -> None:
    trials = run(study_of(dial, seeds=1, metric="confidence"), store).trials  # higher is better: tilted is sure
    best = max(trials, key=lambda one: one.objective or 0)
    assert best.spec.endswith(("?x=0.001", "?x=1000"))  # and y as far off, at its default
    with pytest.raises(CalibrantError, match="metric 'kl_tau7' is not scored on"):
        run(study_of(dial, seeds=1, metric="kl_tau7"), store)


def test_a_failing_configuration_is_a_failed_trial_and_the_study_goes_on(dial: str, store: SqlStore) -> None:
    finished = run(study_of(dial, space="x=1|13|10", seeds=2), store)
    assert finished.exit_code == 1
    failed = next(one for one in finished.trials if one.state == "failed")
    assert failed.spec.endswith("x=13") and failed.objective is None and failed.rungs == ()
    assert failed.reason is not None and "ValueError: thirteen" in failed.reason
    assert [one.state for one in finished.trials].count("complete") == 2


@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
def test_samplers_that_learn_beat_what_was_given(dial: str, store: SqlStore, sampler: str) -> None:
    trials = run(study_of(dial, sampler, RANGES, seeds=1), store, budget=Budget(trials=25)).trials
    assert [one.batch for one in trials] == [0] + [1] * 8 + [2] * 8 + [3] * 8
    objectives = [one.objective or 9 for one in trials]
    assert min(objectives) < objectives[0] / 2


# --- breaks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sampler", "space"), [("grid", GRID), ("random", RANGES), ("tpe", RANGES), ("cmaes", RANGES)])
def test_a_break_at_any_moment_changes_nothing(dial: str, tmp_path: Path, sampler: str, space: str) -> None:
    study, budget = study_of(dial, sampler, space, seeds=2), Budget(trials=14)
    with open_store(str(tmp_path / "whole.db")) as store:
        whole = run(study, store, budget=budget)
    with open_store(str(tmp_path / "broken.db")) as store:
        breaks = 0
        while (finished := run(study, store, budget=budget, progress=Interrupting(after=7))).interrupted:
            assert finished.exit_code == 130
            breaks += 1
        assert breaks >= 4
    assert told(finished.trials) == told(whole.trials)


def test_a_larger_budget_goes_on_where_a_smaller_one_ended(dial: str, tmp_path: Path) -> None:
    """At the end of a batch: the same trials as with the larger budget from the start."""
    study = study_of(dial, "tpe", RANGES, seeds=1)
    with open_store(str(tmp_path / "whole.db")) as store:
        whole = run(study, store, budget=Budget(trials=17))
    with open_store(str(tmp_path / "steps.db")) as store:
        few = run(study, store, budget=Budget(trials=9))
        assert len(few.trials) == 9
        more = run(study, store, budget=Budget(trials=17))
        assert told(run(study, store, budget=Budget(trials=12)).trials) == told(more.trials)  # nothing is taken back
    assert told(more.trials) == told(whole.trials)


def test_minutes_are_kept_to(dial: str, store: SqlStore) -> None:
    study = study_of(dial, seeds=1)
    few = run(study, store, budget=Budget(cpu_minutes=1e-9)).trials
    assert [one.state for one in few] == ["open"] * 11  # one slice was measured, none judged
    assert sum(bool(one.rungs) for one in few) == 4
    assert told(run(study, store, budget=Budget(cpu_minutes=1e-9)).trials) == told(few)
    whole = run(study, store, budget=Budget(cpu_minutes=60)).trials
    assert len(whole) == 11 and all(one.state == "complete" for one in whole)


def test_budgets_are_checked() -> None:
    with pytest.raises(CalibrantError, match="trials=0 should be at least 1"):
        Budget(trials=0)
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(CalibrantError, match=r"cpu-minutes=.* should be more than 0"):
            Budget(cpu_minutes=wrong)


# --- studies --------------------------------------------------------------------------------------


def test_a_study_is_named_by_all_that_decides_its_numbers(dial: str) -> None:
    study = study_of(dial)
    assert study.name.startswith("testbed/") and study.name == study_of(dial).name
    others = [
        replace(study, seeds=4),
        replace(study, metric="nll"),
        replace(study, halving=False),
        replace(study, seed=1),
        replace(study, where={}),
        replace(study, space=("x=1|2",)),
        replace(study, preset="paper"),
        study_of("mlp", space="l2=1|2"),
    ]
    assert len({one.name for one in others} | {study.name}) == 9


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"suite": "testbad"}, "unknown suite 'testbad', did you mean 'testbed'"),
        ({"agent": "mpl"}, "unknown agent 'mpl', did you mean 'mlp'"),
        ({"agent": "mlp?l2=-1"}, "l2=-1 in 'mlp"),
        ({"agent": "oracle"}, "agent 'oracle' says of no parameter what it may be"),
        ({"sampler": "best"}, "unknown sampler 'best'"),
        ({"preset": "huge"}, "no preset 'huge'"),
        ({"where": {"train": "7"}}, "no problem of suite 'testbed'.* has train=7"),
        ({"metric": "kl"}, "unknown metric 'kl'"),
        ({"seeds": 0}, "seeds=0 should be at least 1"),
        ({"space": "l2=1..2"}, "a grid needs listed values"),
        ({"space": "l2=1..2", "sampler": "cmaes"}, "cmaes needs at least two ranges"),
    ],
)
def test_wrong_settings_are_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CalibrantError, match=sentence) as caught:
        make_study(**{"suite": "testbed", "agent": "mlp", **settings})
    assert "\n" not in str(caught.value)


def test_numbers_of_one_architecture_are_one_cohort() -> None:
    """A grid over weight decay and prior scale: full chunks of one program, but for the last of each padded size."""
    study = make_study("testbed", "ensemble+?size=1", space="l2=0.1|0.3|1|3|10,prior_scale=0.3|3|10", preset="quick")
    cells = [cell for spec in study.grid for cell in study.cells(spec, 1)]
    tasks = make_tasks(cells)
    assert len(study.grid) == 15 and len(cells) == 180
    assert len(tasks) <= 180 / 8 + len({task.rows for task in tasks})
    assert max(len({cell.agent for cell in task.cells}) for task in tasks) > 1
