"""The board: means, pairing, slices, tiers and its JSON, from records to rows."""

from __future__ import annotations

import json
import math
import random
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibrant.metrics.catalogue import OWN, Metric
from calibrant.report.board import DIRECTIONS, Board, Row, better, make_board
from calibrant.stats.intervals import interval
from calibrant.suites.base import Preset, Suite
from calibrant.types import CalibrantError, Cell, Cost, Record, Scores

TOY = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Toy:
    train: int = 10
    temp: float = 0.1
    hidden: tuple[int, ...] = (50, 50)
"""
METRICS = ("kl_tau1", "kl_tau10", "aggregate", "accuracy", "fit_cpu_seconds")


@pytest.fixture
def problems(tmp_path: Path) -> tuple[str, ...]:
    file = tmp_path / "toy.py"
    file.write_text(TOY)
    return tuple(f"{file}:Toy?train={train}&temp={temp}" for train in (1, 30, 4) for temp in (0.1, 0.01))


@pytest.fixture
def suite(problems: tuple[str, ...]) -> Suite:
    return Suite("toy", "A toy", {"quick": Preset(problems, ("mlp",), 2)}, METRICS, "mlp", ("train", "temp"))


def record(problem: str, agent: str, seed: int, loss: float, mc_bias: float = 0.0) -> Record:
    scores = {
        "kl_tau1": Scores(loss),
        "kl_tau10": Scores(10 * loss, mc_bias=mc_bias, mc_se=0.1),
        "accuracy": Scores(1 - loss / 10),
    }
    return Record(Cell(problem, agent, seed, f"{problem}/{agent}/{seed}"), scores, Cost(fit_cpu_seconds=2.0))


def failure(problem: str, agent: str, seed: int) -> Record:
    return Record(Cell(problem, agent, seed, f"{problem}/{agent}/{seed}"), reason="TimeoutError: 60 s")


def simulated(problems: tuple[str, ...], offsets: dict[str, float], seeds: int = 5) -> list[Record]:
    stream = np.random.default_rng(0)
    records = []
    for level, problem in enumerate(problems):
        for seed in range(seeds):
            hard = level + stream.uniform()
            records += [
                record(problem, agent, seed, hard + offset + 0.01 * stream.normal(), mc_bias=0.5)
                for agent, offset in offsets.items()
            ]
    return records


def row(board: Board, agent: str, metric: str = "kl_tau1", **where: object) -> Row:
    (found,) = [r for r in board.rows if (r.agent, r.metric, r.slice) == (agent, metric, where)]
    return found


def test_means_are_over_environments_with_stratified_intervals(suite: Suite, problems: tuple[str, ...]) -> None:
    records = simulated(problems, {"mlp": 0.0})
    found = row(make_board(records, suite), "mlp")
    values = [r.scores["kl_tau1"].mean for r in records]
    expected = interval(values, [r.cell.problem for r in records])
    assert (found.mean, found.low, found.high) == pytest.approx((expected.mean, expected.low, expected.high))
    assert found.n == len(records)


def test_the_best_agent_comes_first_and_metrics_keep_the_suites_order(suite: Suite, problems: tuple[str, ...]) -> None:
    board = make_board(simulated(problems, {"mlp": 0.2, "poor": 0.7, "good": 0.0}), suite)
    assert board.agents == ("good", "mlp", "poor")
    assert board.metrics == METRICS and board.leading == "aggregate"
    turned = make_board(simulated(problems, {"mlp": 0.2, "good": 0.0}), suite, metrics=("accuracy",))
    assert turned.agents == ("good", "mlp") and turned.leading == "accuracy"


def test_tiers_know_the_direction(suite: Suite, problems: tuple[str, ...]) -> None:
    # Gaps of 0.3 at a standard error of 0.003; twins differ by noise, so a false split has chance < 0.05 per stream.
    board = make_board(simulated(problems, {"mlp": 0.3, "good": 0.0, "twin": 0.0}), suite)
    assert {frozenset(tier) for tier in board.tiers["kl_tau1"]} == {frozenset({"good", "twin"}), frozenset({"mlp"})}
    assert board.tiers["accuracy"][-1] == ("mlp",)
    assert len(board.tiers["fit_cpu_seconds"]) == 1
    assert [row(board, agent).tier for agent in ("good", "twin", "mlp")] == [1, 1, 2]


def test_differences_are_paired_against_the_baseline(suite: Suite, problems: tuple[str, ...]) -> None:
    board = make_board(simulated(problems, {"mlp": 0.0, "poor": 0.5}), suite)
    assert board.baseline == "mlp"
    found = row(board, "poor")
    assert found.difference is not None and found.ratio is not None
    assert found.difference.mean == pytest.approx(0.5, abs=0.02) and found.difference.excludes(0.4)
    assert found.ratio.mean == pytest.approx(found.mean / row(board, "mlp").mean)
    assert found.high - found.low > 5 * (found.difference.high - found.difference.low)
    itself = row(board, "mlp")
    assert itself.difference is not None and itself.ratio is not None
    assert (itself.difference.mean, itself.difference.low, itself.ratio.mean, itself.ratio.high) == (0, 0, 1, 1)


def test_another_baseline_can_be_named_but_must_be_there(suite: Suite, problems: tuple[str, ...]) -> None:
    records = simulated(problems, {"mlp": 0.0, "poor": 0.5})
    found = row(make_board(records, suite, baseline="poor"), "mlp").difference
    assert found is not None and found.mean == pytest.approx(-0.5, abs=0.02)
    with pytest.raises(CalibrantError, match=r"baseline 'pour' has no record.*did you mean 'poor'"):
        make_board(records, suite, baseline="pour")
    without = make_board([r for r in records if r.cell.agent != "mlp"], suite)
    assert without.baseline is None and row(without, "poor").difference is None


def with_floor(
    records: list[Record], unfinished: int = 0, floor: str = "bayes", share: float = 0.5, said: bool = True
) -> list[Record]:
    """Records beside those of a floor that has a share of the baseline's loss; some of its seeds did not converge."""
    floors = []
    for own in (r for r in records if r.cell.agent == "mlp"):
        loss = own.scores["kl_tau1"].mean * (share if own.cell.seed >= unfinished else 100)
        found = record(own.cell.problem, floor, own.cell.seed, loss)
        mark = {"converged": Scores(float(own.cell.seed >= unfinished))} if said else {}
        floors.append(replace(found, scores={**found.scores, **mark}))
    return [*records, *floors]


def test_the_gap_closed_lies_between_baseline_and_floor(suite: Suite, problems: tuple[str, ...]) -> None:
    records = with_floor(simulated(problems, {"mlp": 0.0, "good": -0.3}))
    board = make_board(records, suite)
    assert board.floor == "bayes"
    shares = {agent: row(board, agent).gap for agent in board.agents}
    good, base, floor = shares["good"], shares["mlp"], shares["bayes"]
    assert good is not None and base is not None and floor is not None
    assert (base.mean, floor.mean) == pytest.approx((0, 1))
    assert good.mean == pytest.approx(0.3 / (0.5 * row(board, "mlp").mean), rel=0.02)
    assert good.low < good.mean < good.high and good.n == 30
    assert all((r.gap is None) == (not r.metric.startswith("kl_")) for r in board.rows), "of divergences only"


def test_only_converged_environments_count_for_the_gap(suite: Suite, problems: tuple[str, ...]) -> None:
    records = simulated(problems, {"mlp": 0.0, "good": -0.3})
    found = row(make_board(with_floor(records, unfinished=2), suite), "good").gap
    kept = [r for r in with_floor(records) if r.cell.seed >= 2]
    expected = row(make_board(kept, suite), "good").gap
    assert found is not None and expected is not None and found.n == 18
    assert (found.mean, found.low, found.high) == pytest.approx((expected.mean, expected.low, expected.high))
    assert row(make_board(with_floor(records, unfinished=5), suite), "good").gap is None, "it never converged"


def test_gaps_are_measured_inside_each_slice(suite: Suite, problems: tuple[str, ...]) -> None:
    board = make_board(with_floor(simulated(problems, {"mlp": 0.0, "good": -0.3})), suite, by=("train",))
    shares = [row(board, "good", train=train).gap for train in (1, 4, 30)]
    assert [share.n for share in shares if share] == [10, 10, 10]
    assert len({share.mean for share in shares if share}) == 3


def test_another_floor_can_be_named_but_must_be_there(suite: Suite, problems: tuple[str, ...]) -> None:
    records = with_floor(simulated(problems, {"mlp": 0.0, "good": -0.3}), floor="best", said=False)
    assert make_board(records, suite).floor is None
    assert all(r.gap is None for r in make_board(records, suite).rows)
    found = row(make_board(records, suite, floor="best"), "good").gap
    assert found is not None and found.n == 30, "an agent that does not say whether it converged is taken at its word"
    with pytest.raises(CalibrantError, match=r"floor 'bost' has no record.*did you mean 'best'"):
        make_board(records, suite, floor="bost")


def test_a_floor_above_the_baseline_measures_nothing(suite: Suite, problems: tuple[str, ...]) -> None:
    records = with_floor(simulated(problems, {"mlp": 0.0, "good": -0.3}), share=2.0)
    assert row(make_board(records, suite), "good").gap is None
    assert row(make_board([r for r in records if r.cell.agent != "mlp"], suite), "good").gap is None


def test_missing_environments_shrink_n_and_pairs_only(suite: Suite, problems: tuple[str, ...]) -> None:
    records = simulated(problems, {"mlp": 0.0, "partial": 0.5})
    board = make_board([r for r in records if r.cell.agent == "mlp" or r.cell.problem != problems[-1]], suite)
    found = row(board, "partial")
    assert (found.n, found.failed, row(board, "mlp").n) == (25, 0, 30)
    assert found.mean < row(board, "mlp").mean, "it missed the hardest problem"
    assert found.difference is not None and found.difference.n == 25
    assert found.difference.mean == pytest.approx(0.5, abs=0.02)


def test_failures_are_counted_and_never_averaged(suite: Suite, problems: tuple[str, ...]) -> None:
    records = simulated(problems, {"mlp": 0.0, "frail": 0.5})
    records = [r for r in records if r.cell.agent == "mlp" or r.cell.seed > 0]
    expected = row(make_board(records, suite), "frail")
    records += [failure(problem, "frail", 0) for problem in problems] + [failure(problems[0], "broken", 0)]
    board = make_board(records, suite)
    assert row(board, "frail") == replace(expected, failed=6)
    broken = row(board, "broken")
    assert (broken.n, broken.failed, broken.tier, broken.difference) == (0, 1, None, None)
    assert math.isnan(broken.mean) and board.agents[-1] == "broken"
    assert all("broken" not in tier for tier in board.tiers["aggregate"])


def test_a_single_environment_has_no_interval(suite: Suite, problems: tuple[str, ...]) -> None:
    board = make_board([record(problems[0], "mlp", 0, 0.4)], suite)
    (found,) = [r for r in board.to_json()["rows"] if r["metric"] == "kl_tau1"]
    assert (found["mean"], found["low"], found["high"], found["n"]) == (0.4, None, None, 1)


def test_monte_carlo_errors_reach_the_mean(suite: Suite, problems: tuple[str, ...]) -> None:
    found = row(make_board(simulated(problems, {"mlp": 0.0}), suite), "mlp", "kl_tau10")
    assert found.mc_bias == pytest.approx(0.5)
    assert found.mc_se == pytest.approx(0.1 / math.sqrt(30))


def test_slices_are_by_the_problems_fields_in_ascending_order(suite: Suite, problems: tuple[str, ...]) -> None:
    records = simulated(problems, {"mlp": 0.0, "poor": 0.5})
    board = make_board(records, suite, by=("train",))
    assert list(dict.fromkeys(r.slice["train"] for r in board.rows)) == [1, 4, 30]
    values = [r.scores["kl_tau1"].mean for r in records if r.cell.agent == "mlp" and "train=30&" in r.cell.problem]
    assert row(board, "mlp", train=30).mean == pytest.approx(np.mean(values))
    assert row(board, "mlp", train=30).n == 10
    assert board.tiers == make_board(records, suite).tiers, "the tiers are over all environments"
    both = make_board(records, suite, by=("temp", "train"))
    assert both.rows[0].slice == {"temp": 0.01, "train": 1} and both.rows[-1].slice == {"temp": 0.1, "train": 30}
    assert make_board(records, suite, by=("hidden",)).rows[0].slice == {"hidden": "50x50"}


def test_an_unknown_field_gets_the_nearest_one(suite: Suite, problems: tuple[str, ...]) -> None:
    with pytest.raises(CalibrantError, match="no field 'tmp' to slice by, did you mean 'temp'"):
        make_board(simulated(problems, {"mlp": 0.0}), suite, by=("tmp",))


def test_an_unknown_metric_gets_the_nearest_one(suite: Suite, problems: tuple[str, ...]) -> None:
    with pytest.raises(CalibrantError, match="metric 'kl_tau_1', did you mean 'kl_tau1"):
        make_board(simulated(problems, {"mlp": 0.0}), suite, metrics=("kl_tau_1",))


def test_only_the_suites_own_records_count(suite: Suite, problems: tuple[str, ...]) -> None:
    records = simulated(problems, {"mlp": 0.0})
    stranger = record("elsewhere?train=1", "mlp", 0, 1e9)
    assert make_board([*records, stranger], suite) == make_board(records, suite)
    with pytest.raises(CalibrantError, match="no records of suite 'toy'"):
        make_board([stranger], suite)


def test_the_order_of_records_does_not_matter(suite: Suite, problems: tuple[str, ...]) -> None:
    records = simulated(problems, {"mlp": 0.0, "poor": 0.5})
    assert make_board(random.Random(1).sample(records, len(records)), suite) == make_board(records, suite)


def test_json_is_strict_and_has_the_promised_shape(suite: Suite, problems: tuple[str, ...]) -> None:
    records = [*simulated(problems, {"mlp": 0.0, "poor": 0.5}, seeds=1), failure(problems[0], "broken", 0)]
    board = make_board(records, suite, by=("temp",))
    loaded = json.loads(json.dumps(board.to_json(), allow_nan=False))
    assert (loaded["suite"], loaded["baseline"]) == ("toy", "mlp")
    assert {"agent", "metric", "slice", "mean", "low", "high", "n", "failed"} <= set(loaded["rows"][0])
    assert loaded["tiers"]["kl_tau1"] == [list(tier) for tier in board.tiers["kl_tau1"]]
    broken = [r for r in loaded["rows"] if r["agent"] == "broken"]
    assert broken and all(r["mean"] is None and r["failed"] == 1 for r in broken)
    assert set(loaded["rows"][0]["difference"]) == {"mean", "low", "high", "n"}
    assert loaded["floor"] is None and loaded["rows"][0]["gap"] is None
    floored = json.loads(json.dumps(make_board(with_floor(records), suite).to_json(), allow_nan=False))
    (gap,) = [r["gap"] for r in floored["rows"] if (r["agent"], r["metric"]) == ("poor", "kl_tau10")]
    assert floored["floor"] == "bayes" and set(gap) == {"mean", "low", "high", "n"} and gap["mean"] < 0


def test_directions() -> None:
    higher = {"accuracy", "hit_rate", "confidence", "cr10"}
    assert {name for name in DIRECTIONS if better(name) == "higher"} == higher
    assert better("accuracy_dyadic") == "higher"
    assert better("kl_tau10_dyadic") == better("joint_nll_tau10_kappa3") == better("something_new") == "lower"


@pytest.mark.parametrize("metric", OWN, ids=lambda metric: str(metric.name))
def test_directions_are_those_that_the_metrics_declare(metric: Metric) -> None:
    assert better(metric.name.format("tau10_dyadic")) == better(metric.name.format("tau3")) == metric.better


def test_ten_thousand_records_take_less_than_two_seconds(suite: Suite, problems: tuple[str, ...]) -> None:
    """About 0.4 s on one core of a laptop; the bound is on this thread's own time, as others may share the machine."""
    agents = {f"agent{k}": k / 10 for k in range(9)} | {"mlp": 0.0}
    records = simulated(problems, agents, seeds=170)
    assert len(records) > 10_000
    start = time.thread_time()
    board = make_board(records, suite, by=("temp",))
    assert time.thread_time() - start < 2
    assert len(board.rows) == 2 * 10 * len(METRICS)
