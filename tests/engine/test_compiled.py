"""A cell's numbers are its own: the same alone, beside others, in another lane, and when run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from calibrant import metrics, registry, seeds
from calibrant.engine import machine
from calibrant.engine.cohorts import Task, make_tasks
from calibrant.engine.plan import make_cell, make_plan
from calibrant.engine.scoring import all_inputs, sample_instance
from calibrant.engine.work import run_task
from calibrant.types import Answers, Array, Cell, Data, Record, Scores

MLP, ENSEMBLE = "mlp?steps=20", "ensemble?size=3&steps=20"
RTOL, ATOL = 2e-4, 2e-5  # single precision, in another order of summation, through 20 steps of training
COUNTED = ("ece", "ece_expected")  # a confidence on the edge of a bin may fall to either side of it


def cells(agent: str) -> list[Cell]:
    return make_plan(registry.load("suites", "testbed"), "quick", [agent], 1, {"train": "1|10"})


def run(cells: list[Cell]) -> list[Record]:
    return [record for task in make_tasks(cells) for record in run_task(task)]


@pytest.fixture(scope="module")
def mlp() -> dict[str, Record]:
    """All six cells of a cohort, run together."""
    return {record.cell.id: record for record in run(cells(MLP))}


def numbers(record: Record) -> dict[str, tuple[object, ...]]:
    """Everything that was measured, bit by bit, but for what it cost."""
    assert record.reason is None
    parts: dict[str, tuple[object, ...]] = {
        name: (*(value for key, value in vars(one).items() if key != "items"), _bytes(one.items))
        for name, one in record.scores.items()
    }
    return parts | {f"picture {name}": (_bytes(array),) for name, array in record.picture.items()}


def _bytes(array: Array | None) -> bytes:
    return b"" if array is None else np.asarray(array).tobytes()


def assert_close(found: Mapping[str, Scores], expected: Mapping[str, Scores]) -> None:
    assert found.keys() == expected.keys()
    for name in found:
        if name not in COUNTED:
            np.testing.assert_allclose(found[name].mean, expected[name].mean, RTOL, ATOL, err_msg=name)


# --- alone and beside others ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def ensemble() -> Record:
    """Seven training points, padded to ten rows, in a cohort with another cell before it."""
    return run([make_cell("testbed", ENSEMBLE, 0), make_cell("testbed?train=7", ENSEMBLE, 0)])[1]


def test_a_cohort_agrees_with_fitting_one_cell_by_hand(ensemble: Record) -> None:
    """The same agent called as anyone would call it: one key, one training set, one belief."""
    import jax

    machine.settle()
    cell, instance = ensemble.cell, sample_instance(ensemble.cell)
    agent = registry.resolve("agents", ENSEMBLE)
    x, y = np.zeros((10, 2), np.float32), np.zeros(10, np.int32)
    x[:7], y[:7] = instance.train.x, instance.train.y

    def fit_and_ask(x: Array, y: Array) -> Array:
        belief = agent.fit(seeds.jax_key(*cell.chance, "agent"), Data(x, y), instance.facts)
        logits = belief.worlds(seeds.jax_key(*cell.chance, "worlds"), 1000)(all_inputs(cell, instance))
        return jax.nn.log_softmax(logits, axis=-1)

    by_hand = jax.jit(fit_and_ask)
    logp = np.asarray(by_hand(x, y))
    answers = Answers(logp[:, : len(instance.question.x)], None, exact=True)
    expected = metrics.score(answers, instance.question, instance.truth, key=f"{cell.problem}/{cell.seed}")
    assert_close(ensemble.scores, expected)
    assert ensemble.cost.worlds == len(logp) == 3

    x[7:], y[7:] = 1e3, 1  # padding must not be read, whatever it holds
    assert np.asarray(by_hand(x, y)).tobytes() == logp.tobytes()


def test_the_width_changes_no_more_than_rounding(mlp: Mapping[str, Record]) -> None:
    cell = cells(MLP)[4]
    (alone,) = run_task(Task((cell,), width=1, rows=10))
    assert_close(alone.scores, mlp[cell.id].scores)
    assert (alone.cost.cohort, mlp[cell.id].cost.cohort) == (1, 8)


def test_neighbours_and_lanes_change_no_bit(mlp: Mapping[str, Record]) -> None:
    """A resumed run puts a cell into another lane, beside other cells, also of other hyperparameters."""
    plan = cells(MLP)
    strangers = cells("mlp?steps=20&l2=30&lr=0.1")
    for record in run([strangers[0], plan[5], strangers[3], plan[0], *strangers[4:]]) + run([plan[2]]):
        if record.cell.id in mlp:
            assert numbers(record) == numbers(mlp[record.cell.id])


def test_running_again_changes_no_bit(mlp: Mapping[str, Record]) -> None:
    again = run(cells(MLP))
    assert len(again) == len(mlp) == 6
    assert all(numbers(record) == numbers(mlp[record.cell.id]) for record in again)


def test_cells_differ(mlp: Mapping[str, Record]) -> None:
    """What makes the tests above worth anything: no two cells have the same numbers."""
    assert len({record.scores["kl_tau10"].mean for record in mlp.values()}) == 6
    (other,) = run([make_cell("testbed", MLP, 1)])
    assert other.scores["kl_tau10"].mean not in {record.scores["kl_tau10"].mean for record in mlp.values()}


# --- what a record holds --------------------------------------------------------------------------


def test_every_metric_is_scored(mlp: Mapping[str, Record]) -> None:
    suite = registry.load("suites", "testbed")
    for record in mlp.values():
        assert set(suite.metrics) - {"fit_cpu_seconds"} <= set(record.scores)
        for name, score in record.scores.items():
            assert np.isfinite([score.mean, score.se, score.mc_bias, score.mc_se]).all(), name
        assert record.scores["kl_tau10"].mean > 0.0
        assert record.scores["kl_tau10"].mc_bias == 0.0  # one network is its own support
        assert record.picture["mean"].shape == (1024,) and record.picture["worlds"].shape == (1, 1024)


def test_costs_are_filled_in(mlp: Mapping[str, Record]) -> None:
    for record in mlp.values():
        cost = record.cost
        assert cost.fit_cpu_seconds > 0 and cost.fit_wall_seconds > 0
        assert cost.ask_cpu_seconds > 0 and cost.ask_wall_seconds > 0
        assert cost.peak_memory_mb > 10
        assert cost.parameters == 2 * 50 + 50 + 50 * 50 + 50 + 50 * 2 + 2
        assert (cost.worlds, cost.cohort) == (1, 8)
    (again, *_) = run(cells(MLP))
    assert again.cost.compile_cpu_seconds == again.cost.compile_wall_seconds == 0  # the program is already here


def test_provenance_says_where_a_number_comes_from(mlp: Mapping[str, Record]) -> None:
    for record in mlp.values():
        assert {"calibrant", "python", "cpu", "libraries", "commit", "date"} <= set(record.provenance)
        assert record.provenance["libraries"]["jax"].count(".") == 2


def test_predictions_that_are_not_numbers_fail_and_leave_their_neighbours_alone(mlp: Mapping[str, Record]) -> None:
    sound, *_ = cells(MLP)
    exploded, *_ = cells("mlp?steps=20&lr=1e30")
    good, bad = run([sound, exploded])
    assert bad.failed and not bad.scores and not bad.picture
    assert bad.reason == "predictions are not finite in 1 of 1 worlds, first in world 0"
    assert bad.cost.fit_cpu_seconds > 0  # a failure has its price too
    assert numbers(good) == numbers(mlp[sound.id])


def test_the_oracle_scores_zero_and_the_uniform_agent_log_two() -> None:
    oracle, uniform = run([make_cell("testbed", "oracle", 0), make_cell("testbed", "uniform", 0)])
    assert oracle.scores["kl_tau1"].mean == pytest.approx(0, abs=1e-9)
    assert oracle.scores["kl_tau10_dyadic"].mean == pytest.approx(0, abs=1e-9)
    assert uniform.scores["nll"].mean == pytest.approx(np.log(2))
    assert uniform.scores["joint_nll_tau10"].mean == pytest.approx(10 * np.log(2), rel=1e-6)
    assert oracle.cost.ask_cpu_seconds > 0 and oracle.cost.worlds == uniform.cost.worlds == 1


def test_an_agents_luck_does_not_depend_on_which_metrics_there_are() -> None:
    """The id holds the metrics' versions; random numbers come from problem, agent and seed alone."""
    cell = make_cell("testbed?tuples=10", "mlp?steps=5&hidden=4", 0)
    renamed = replace(cell, id="another metric")
    one, two = (run_task(Task((c,), 1, 10))[0].scores["kl_tau1"].mean for c in (cell, renamed))
    assert one == two
