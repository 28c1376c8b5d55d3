"""From records to tables: what is averaged, what is counted, what is derived."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from calibrant.stats.panel import make_panel, measure
from calibrant.types import Cell, Cost, Record, Scores


def record(
    agent: str, seed: int, loss: float | None, problem: str = "p", replicate: int = 0, **scores: float
) -> Record:
    cell = Cell(problem, agent, seed, f"{agent}/{problem}/{seed}/{replicate}")
    if loss is None:
        return Record(cell, reason="out of memory")
    return Record(
        cell, {"loss": Scores(loss, mc_bias=0.1 * loss, mc_se=0.3)} | {k: Scores(v) for k, v in scores.items()}
    )


def test_replicates_of_an_environment_are_averaged() -> None:
    panel = make_panel([record("a", 0, 1.0), record("a", 0, 2.0, replicate=1), record("a", 1, 5.0)], ["loss"])
    column = panel.columns["loss"]
    np.testing.assert_allclose(column.values, [[1.5, 5.0]])
    np.testing.assert_allclose(column.mc_bias, [[0.15, 0.5]])
    np.testing.assert_allclose(column.mc_se, [[0.3 / math.sqrt(2), 0.3]])


def test_failures_are_counted_and_never_averaged() -> None:
    records = [record("a", 0, 1.0), record("a", 0, None, replicate=1), record("a", 1, None), record("b", 1, math.inf)]
    panel = make_panel(records, ["loss", "fit_cpu_seconds"])
    np.testing.assert_array_equal(panel.columns["loss"].values, [[1.0, math.nan], [math.nan, math.nan]])
    np.testing.assert_array_equal(panel.columns["loss"].failed, [[1, 1], [0, 1]])
    np.testing.assert_array_equal(panel.columns["fit_cpu_seconds"].failed, [[1, 1], [0, 0]])
    np.testing.assert_array_equal(panel.seen, [[True, True], [False, True]])


def test_a_metric_that_was_not_asked_is_missing_and_not_failed() -> None:
    column = make_panel([record("a", 0, 1.0)], ["other"]).columns["other"]
    assert math.isnan(column.values[0, 0]) and column.failed[0, 0] == 0


def test_the_same_seed_of_two_problems_is_two_environments() -> None:
    panel = make_panel([record("a", 0, 1.0, "p"), record("a", 0, 3.0, "q"), record("a", 1, 2.0, "p")], ["loss"])
    assert (panel.problems, panel.seeds) == (("p", "p", "q"), (0, 1, 0))
    assert panel.strata.tolist() == [0, 0, 1]
    only = panel.inside(np.array([False, True, True]))
    assert (only.problems, only.seeds, only.columns["loss"].values.tolist()) == (("p", "q"), (1, 0), [[2.0, 3.0]])


def test_the_order_of_records_does_not_matter() -> None:
    records = [record(a, s, 0.1 * s + 0.7**r, replicate=r) for a in "ba" for s in range(4) for r in range(5)]
    shuffled = random.Random(0).sample(records, len(records))
    first, second = make_panel(records, ["loss"]), make_panel(iter(shuffled), ["loss"])
    assert first.agents == second.agents == ("a", "b")
    np.testing.assert_array_equal(first.columns["loss"].values, second.columns["loss"].values)


def test_the_aggregate_is_derived_unless_it_was_scored() -> None:
    scores = {"kl_tau1": Scores(0.2, mc_bias=0.01, mc_se=0.02), "kl_tau10": Scores(1.5, mc_bias=0.3, mc_se=0.1)}
    cell = Cell("p", "a", 0, "id")
    derived = measure(Record(cell, scores), "aggregate")
    assert derived is not None
    assert (derived.mean, derived.mc_bias, derived.mc_se) == pytest.approx((0.35, 0.04, 0.03))
    assert measure(Record(cell, {"kl_tau1": scores["kl_tau1"]}), "aggregate") is None
    assert measure(Record(cell, scores | {"aggregate": Scores(9.0)}), "aggregate") == Scores(9.0)


def test_costs_come_from_the_cost_of_a_record() -> None:
    done = Record(Cell("p", "a", 0, "id"), cost=Cost(fit_cpu_seconds=2.5, parameters=2802))
    assert measure(done, "fit_cpu_seconds") == Scores(2.5)
    assert measure(done, "parameters") == Scores(2802.0)


def test_no_records_make_an_empty_panel() -> None:
    panel = make_panel([], ["loss"])
    assert panel.agents == () and panel.columns["loss"].values.shape == (0, 0)


def test_problems_that_draw_the_same_are_one_environment_whose_mean_counts() -> None:
    records = [record("x", seed, 1.0 + seed, "p?rule=a") for seed in range(3)]
    records += [record("x", seed, 3.0 + seed, "p?rule=b") for seed in range(3)]
    records += [record("x", 0, 7.0, "q"), record("y", 0, 5.0, "p?rule=a")]
    panel = make_panel(records, ["loss"]).clustered(lambda problem: problem.partition("?")[0])
    assert list(zip(panel.problems, panel.seeds, strict=True)) == [("p", 0), ("p", 1), ("p", 2), ("q", 0)]
    assert len(set(panel.strata[:3].tolist())) == 1 and panel.strata[3] != panel.strata[0]
    np.testing.assert_array_equal(panel.columns["loss"].values[0], [2.0, 3.0, 4.0, 7.0])
    # y has met only one of the two: it is seen, but has no mean that could be held against x's
    assert panel.seen[1].tolist() == [True, False, False, False]
    assert np.isnan(panel.columns["loss"].values[1]).all()


def test_clustering_is_nothing_where_all_problems_draw_their_own() -> None:
    panel = make_panel([record("x", 0, 1.0, "p"), record("x", 0, 2.0, "q")], ["loss"])
    assert panel.clustered(lambda problem: problem) is panel
