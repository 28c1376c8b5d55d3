"""Games in the engine: checkpoints, resumption to the bit, who may play, and what is left behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy.dialects import postgresql

from calibrant import registry
from calibrant.engine import checkpoints, played, refitting
from calibrant.engine.cohorts import Task, make_tasks
from calibrant.engine.plan import make_cell
from calibrant.engine.played import run_played
from calibrant.engine.refitting import last_fit
from calibrant.engine.run import run_plan
from calibrant.engine.store import keep_checkpoint, open_store
from calibrant.engine.work import run_task
from calibrant.metrics.catalogue import PLAYED
from calibrant.types import Cell, Record

GAME = "bandit?steps=200&capacity=50&batch=8&per_dim=5"
POOL = "active?per_dim=20&labels=20&updates=2&tuples=20&worlds=10"


def cells(problem: str, agent: str, seeds: int = 2) -> list[Cell]:
    names = registry.canonical("problems", problem), registry.canonical("agents", agent)
    return [make_cell(*names, seed) for seed in range(seeds)]


def task(problem: str, agent: str, store: Path | None = None) -> Task:
    return make_tasks(cells(problem, agent), store=None if store is None else f"sqlite:///{store}")[0]


def numbers(records: list[Record]) -> list[dict[str, Any]]:
    return [
        {name: (one.mean, None if one.items is None else one.items.tolist()) for name, one in record.scores.items()}
        for record in records
    ]


class Killed(Exception):
    pass


@pytest.mark.parametrize("problem, agent", [(GAME, "mlp"), (GAME, "ensemble+?size=3"), (POOL, "epinet"), (POOL, "knn")])
def test_a_killed_game_goes_on_to_the_same_numbers(
    problem: str, agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_played(task(problem, agent))
    monkeypatch.setattr(checkpoints, "EVERY_SECONDS", 0.0)
    given = task(problem, agent, tmp_path / "s.db")
    kind = type(played.make_games(given))
    advance, calls = kind.advance, []

    def dies(self: Any, *args: Any) -> Any:
        if len(calls) == 3:
            raise Killed
        calls.append(args[1])
        return advance(self, *args)

    monkeypatch.setattr(kind, "advance", dies)
    with pytest.raises(Killed):
        run_played(given)
    monkeypatch.setattr(kind, "advance", lambda self, *args: (calls.append(args[1]), advance(self, *args))[1])
    resumed = run_played(given)
    assert calls[3] > calls[2] > 0  # it went on after the last stretch that was played
    assert numbers(resumed) == numbers(whole)


def test_the_checkpoint_goes_when_the_game_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "EVERY_SECONDS", 0.0)
    plan = cells(GAME, "mlp")
    with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        outcome = run_plan(plan, store, executor="local")
        assert outcome.done == 2
        with store._base.reading() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM calibrant_checkpoints").scalar() == 0


def test_other_cells_do_not_take_up_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "EVERY_SECONDS", 0.0)
    given = task(GAME, "mlp", tmp_path / "s.db")
    with checkpoints.Checkpoints(given) as kept:
        kept.offer(40, np.arange(3.0))
        assert kept.load(np.zeros(3))[0] == 40  # type: ignore[index]
        assert kept.load(np.zeros(4)) is None  # another shape
    with checkpoints.Checkpoints(replace(given, cells=given.cells[1:])) as other:
        assert other.load(np.zeros(3)) is None


def test_what_is_left_behind() -> None:
    record = run_played(task(GAME, "ensemble?size=2"))[0]
    assert set(record.scores) == {metric.name for metric in PLAYED}
    assert record.scores["average_regret"].items.shape == (100,)
    assert record.cost.fit_cpu_seconds > 0 and record.cost.parameters == 2 * (2 * 50 + 50 + 2500 + 50 + 102)


def test_curves_of_active_learning() -> None:
    record = run_played(task(POOL, "ensemble+?size=3"))[0]
    curve = record.scores["curve_accuracy"]
    assert curve.items.shape == (5,)  # 1, 2, 5, 10 and 20 labels
    assert curve.mean == pytest.approx(curve.items.mean())
    assert record.scores["accuracy"].mean == curve.items[-1]


def test_the_oracle_plays_without_regret_and_learns_without_error() -> None:
    assert run_played(task(GAME, "oracle"))[0].scores["regret"].mean < 1e-4
    assert run_played(task(POOL, "oracle"))[0].scores["curve_kl_tau1"].mean == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("agent", ["knn", "sgmcmc?burn_in=20&samples=5&thin=2", "laplace?steps=20"])
@pytest.mark.parametrize("problem", ["bandit?steps=60&per_dim=5", POOL.replace("labels=20", "labels=10")])
def test_who_learns_all_at_once_is_fitted_anew(problem: str, agent: str) -> None:
    record = run_task(task(problem, agent))[0]
    assert not record.failed, record.reason
    assert record.cost.cohort == 1 and ("regret" in record.scores or "curve_accuracy" in record.scores)


def test_fits_become_rare_as_data_grow() -> None:
    sizes = sorted({last_fit(seen) for seen in range(1, 50_001)})
    assert sizes[:12] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] and len(sizes) < 110
    assert all(last_fit(seen) <= seen < 1.11 * last_fit(seen) + 1 for seen in range(1, 2000))


def test_a_miss_among_many_classes_is_no_label() -> None:
    record = run_task(task("contextual?steps=20", "knn"))[0]
    assert "says of a miss only that it was one" in str(record.reason)


def test_exact_thompson_sampling_is_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins: learning step by step and fitting anew after every toss have the same regret, within 4.5 errors."""
    problem = "coin_bandit?coins=3&steps=30"
    stepwise = [run_task(Task((cell,), 1, 10))[0] for cell in cells(problem, "coins_posterior", 60)]
    monkeypatch.setattr(refitting, "GROWTH", 1.0)
    monkeypatch.setattr(played, "learns_by_step", lambda cell: False)
    anew = [run_task(Task((cell,), 1, 10))[0] for cell in cells(problem, "coins_posterior", 60)]
    totals = np.array([[record.scores["regret"].mean for record in some] for some in (stepwise, anew)])
    difference = totals[0] - totals[1]
    assert abs(difference.mean()) < 4.5 * difference.std() / np.sqrt(60)


def test_a_bootstrap_is_refused_while_playing() -> None:
    record = run_task(task(GAME, "ensemble+?size=2&bootstrap=bernoulli"))[0]
    assert "has no bootstrap=bernoulli" in str(record.reason)


def test_a_game_that_runs_away_is_a_failed_cell() -> None:
    record = run_task(task("bandit?steps=200&per_dim=5&lr=1e30", "mlp"))[0]
    assert record.failed and "not finite" in str(record.reason)


def test_rules_play_the_same_environments() -> None:
    greedy, thompson = (
        registry.resolve("problems", f"bandit?rule={rule}").sample(3) for rule in ("greedy", "thompson")
    )
    assert (greedy.table == thompson.table).all() and (greedy.reward == thompson.reward).all()


def test_checkpoints_are_replaced_on_postgresql_too() -> None:
    written = str(keep_checkpoint("postgresql").compile(dialect=postgresql.dialect()))
    assert "ON CONFLICT (cell) DO UPDATE SET chunk = excluded.chunk, step = excluded.step" in written
