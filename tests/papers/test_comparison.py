"""Claims against records whose means, errors and ratios are worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from calibrant.papers.comparison import Asked, make_receipt
from calibrant.papers.format import Paper
from calibrant.papers.receipts import Receipt, Row
from calibrant.types import Cell, Cost, Record, Scores

PROBLEM, OTHER = "testbed?train=1", "testbed?train=3"


def paper(**item: Any) -> Paper:
    plan = {"problems": [PROBLEM, OTHER], "seeds": 3}
    made = {"title": "T", "plan": plan} | item
    return Paper.model_validate({"name": "p", "title": "P", "citation": "C", "items": {"t": made}})


def record(agent: str, seed: int, problem: str = PROBLEM, reason: str | None = None, **scores: float) -> Record:
    cell = Cell(problem, agent, seed, f"{agent}/{problem}/{seed}")
    found = {} if reason else {name: Scores(value, mc_bias=0.01) for name, value in scores.items()}
    return Record(cell, found, Cost(1.0, 0, 2.0, 0, 3.0), reason=reason)


def series(agent: str, problem: str = PROBLEM, **scores: list[float]) -> list[Record]:
    count = len(next(iter(scores.values())))
    return [record(agent, i, problem, **{name: values[i] for name, values in scores.items()}) for i in range(count)]


def receipt(made: Paper, records: list[Record], **changes: Any) -> Receipt:
    item = made.items["t"]
    asked: dict[str, Any] = {
        "cast": {agent: agent for agent in item.agents},
        "problems": tuple((PROBLEM,) for _ in item.claims),
        "seeds": 3,
        "cells": len(records),
    }
    return make_receipt(made, "t", Asked(**asked | changes), records)


def by(rows: tuple[Row, ...], kind: str) -> dict[tuple[str, str], Row]:
    return {(row.agent, row.metric): row for row in rows if row.kind == kind}


# --- values ------------------------------------------------------------------------------------------


def test_a_mean_its_interval_its_error_and_its_distance() -> None:
    """1, 2, 3: mean 2, standard error 1/√3, t with 2 degrees of freedom 4.3027."""
    made = paper(values=[{"label": "MLP", "agent": "mlp", "published": {"kl_tau1": 1.0}}])
    (row,) = receipt(made, series("mlp", kl_tau1=[1.0, 2.0, 3.0])).rows
    assert row.ours is not None and row.ours.n == 3 and row.of == 3
    assert row.ours.mean == 2 and row.ours.se == pytest.approx(1 / math.sqrt(3))
    assert row.ours.high == pytest.approx(2 + 4.30265 / math.sqrt(3), abs=1e-4)
    assert row.ours.z == pytest.approx(math.sqrt(3))
    assert row.ours.z_alike == pytest.approx(math.sqrt(1.5))
    assert (row.label, row.metric, row.published, row.verdict) == ("MLP", "kl_tau1", 1.0, "agrees")
    assert row.ours.mc_bias == pytest.approx(0.01) and row.as_published is None


def test_a_published_error_counts() -> None:
    value = {"label": "MLP", "agent": "mlp", "published": {"ece": 0.0}, "errors": {"ece": 1.0}}
    (row,) = receipt(paper(values=[value]), series("mlp", ece=[1.0, 2.0, 3.0])).rows
    assert row.error == 1.0 and row.ours is not None
    assert row.ours.z == pytest.approx(2 / math.sqrt(1 + 1 / 3)) and row.ours.z_alike is None


def test_the_published_estimator_stands_beside_ours_where_records_have_it() -> None:
    value = {"label": "MLP", "agent": "mlp", "published": {"kl_tau10": 4.0}}
    made = paper(values=[value], estimators={"kl_tau10": "drawn_kl_tau10"})
    with_it = series("mlp", kl_tau10=[1.0, 2.0, 3.0], drawn_kl_tau10=[3.0, 4.0, 5.0])
    (row,) = receipt(made, with_it).rows
    assert row.as_published is not None and row.as_published.mean == 4
    assert (row.verdict, row.as_published.verdict) == ("differs", "agrees")
    (row,) = receipt(made, series("mlp", kl_tau10=[1.0, 2.0, 3.0])).rows
    assert row.as_published is None and row.verdict == "differs"


def test_a_claim_about_some_problems_is_compared_there() -> None:
    values = [
        {"label": "all", "agent": "mlp", "published": {"ece": 2.0}},
        {"label": "some", "agent": "mlp", "published": {"ece": 10.0}, "where": {"train": 3}},
    ]
    records = series("mlp", ece=[1.0, 2.0, 3.0]) + series("mlp", OTHER, ece=[9.0, 10.0, 11.0])
    made = receipt(paper(values=values), records, problems=((PROBLEM, OTHER), (OTHER,)))
    everywhere, some = made.rows
    assert everywhere.ours and some.ours
    assert (everywhere.ours.mean, everywhere.n, everywhere.of) == (6, 6, 6)
    assert (some.ours.mean, some.n, some.of) == (10, 3, 3)
    assert everywhere.ours.se == pytest.approx(math.sqrt(1 / 6))  # only the spread inside settings


def test_failed_missing_and_absent_cells_are_told() -> None:
    agents = ("mlp", "ensemble", "dropout")
    made = paper(values=[{"label": one.upper(), "agent": one, "published": {"ece": 2.0}} for one in agents])
    records = [*series("mlp", ece=[1.0, 2.0, 3.0]), record("mlp", 3, reason="it broke")]
    found = receipt(made, records, cells=9, cast={"mlp": "mlp", "ensemble": "ensemble"}, absent={"dropout": "unknown"})
    mlp, ensemble, dropout = found.rows
    assert (mlp.n, mlp.failed, mlp.cpu_seconds) == (3, 1, 24.0)
    assert (ensemble.verdict, dropout.verdict) == ("not run", "not run")
    assert (found.cells, found.missing, found.failed, found.cpu_seconds) == (9, 5, 1, 24.0)
    assert not found.whole and found.verdicts["not run"] == 2


def test_whole_is_what_was_asked_for_as_published_and_tried() -> None:
    made = paper(values=[{"label": "MLP", "agent": "mlp", "published": {"ece": 2.0}}])
    records = [*series("mlp", ece=[1.0, 2.0]), record("mlp", 2, reason="it broke")]
    assert receipt(made, records).whole
    assert not receipt(made, records, as_published=False).whole
    assert not receipt(made, records, cells=4).whole


def test_agents_that_were_not_asked_for_have_no_row() -> None:
    made = paper(values=[{"label": one, "agent": one, "published": {"ece": 2.0}} for one in ("mlp", "ensemble")])
    found = receipt(made, series("mlp?l2=3", ece=[1.0, 2.0]), cast={"mlp": "mlp?l2=3"})
    assert [(row.label, row.agent, row.n) for row in found.rows] == [("mlp", "mlp?l2=3", 2)]


def test_no_record_at_all_is_a_receipt_of_nothing() -> None:
    made = paper(values=[{"label": "MLP", "agent": "mlp", "published": {"ece": 2.0}}])
    found = receipt(made, [], cells=3)
    assert [row.verdict for row in found.rows] == ["not run"] and found.missing == 3


# --- ratios ------------------------------------------------------------------------------------------


def test_ratios_are_paired_so_that_hard_environments_cancel() -> None:
    """Always half of the baseline: 0.5 without any error, however much environments differ; rounding remains."""
    values = [
        {"label": "MLP", "agent": "mlp", "published": {"kl_tau1": 2.0}},
        {"label": "ENS", "agent": "ensemble", "published": {"kl_tau1": 1.2}},
    ]
    made = paper(values=values, relative_to="mlp", ratios=["kl_tau1"], within=0.1)
    records = series("mlp", kl_tau1=[20.0, 24.0, 28.0]) + series("ensemble", kl_tau1=[10.0, 12.0, 14.0])
    found = receipt(made, records)
    assert [row.kind for row in found.rows] == ["value", "value", "ratio"]
    row = found.rows[-1]
    assert row.metric == "kl_tau1 / MLP" and row.published == pytest.approx(0.6)
    assert row.ours is not None and row.ours.mean == pytest.approx(0.5)
    assert row.ours.se == pytest.approx(0, abs=1e-12) and row.ours.high == pytest.approx(0.5)
    hidden = 0.1 * math.hypot(1, 0.6) / 2
    assert row.ours.z == pytest.approx(-0.1 / (hidden / math.sqrt(3)))


def test_the_error_of_a_ratio_by_hand() -> None:
    """a = 1, 3 over b = 2, 2: ratio 1, and (a - b) / 2 = -0.5, 0.5 has the standard error 0.5."""
    values = [{"label": one, "agent": one, "published": {"ece": 1.0}} for one in ("mlp", "ensemble")]
    made = paper(values=values, relative_to="mlp", ratios=["ece"])
    records = series("mlp", ece=[2.0, 2.0, 7.0]) + series("ensemble", ece=[1.0, 3.0])  # the third is not shared
    row = by(receipt(made, records).rows, "ratio")["ensemble", "ece / mlp"]
    assert row.ours is not None and row.n == 2
    assert row.ours.mean == pytest.approx(1.0) and row.ours.se == pytest.approx(0.5)


# --- trends ------------------------------------------------------------------------------------------

TREND = {"claim": "c", "better": "ensemble+", "worse": "ensemble", "metrics": ["kl_tau1", "kl_tau10"]}


def test_a_benefit_and_its_growth_by_hand() -> None:
    """Differences 1, 2, 3 at τ=1 and 11, 13, 15 at τ=10; growth 10, 11, 12 has the error 1/√3."""
    made = paper(trends=[TREND])
    records = series("ensemble", kl_tau1=[5.0, 5.0, 5.0], kl_tau10=[20.0, 20.0, 20.0])
    records += series("ensemble+", kl_tau1=[4.0, 3.0, 2.0], kl_tau10=[9.0, 7.0, 5.0])
    found = receipt(made, records)
    assert [(row.kind, row.metric) for row in found.rows] == [
        ("benefit", "kl_tau1"), ("benefit", "kl_tau10"), ("growth", "kl_tau1 → kl_tau10"),
    ]  # fmt: skip
    means = [row.ours.mean for row in found.rows if row.ours]
    assert means == pytest.approx([2, 13, 11])
    growth = found.rows[-1]
    assert growth.ours is not None and growth.ours.se == pytest.approx(1 / math.sqrt(3))
    assert [row.verdict for row in found.rows] == ["undecided", "agrees", "agrees"]  # 2 ± 4.3 / √3 holds 0
    assert growth.cpu_seconds == 36 and growth.agent == "ensemble+ over ensemble" and growth.published is None


def test_a_share_is_one_minus_the_ratio_of_means() -> None:
    made = paper(trends=[TREND | {"measure": "share", "similar_at": ["kl_tau1"]}])
    records = series("ensemble", kl_tau1=[1.0, 3.0, 2.0], kl_tau10=[10.0, 30.0, 20.0])
    records += series("ensemble+", kl_tau1=[1.1, 2.9, 2.0], kl_tau10=[5.0, 15.0, 10.0])
    one, ten, growth = receipt(made, records).rows
    assert one.ours and ten.ours and growth.ours
    assert one.ours.mean == pytest.approx(0) and one.expected == "similar" and one.verdict == "agrees"
    assert ten.ours.mean == pytest.approx(0.5) and ten.ours.se == pytest.approx(0, abs=1e-12)
    assert growth.ours.mean == pytest.approx(0.5) and growth.ours.se == pytest.approx(one.ours.se)


def test_the_opposite_direction_differs_and_a_missing_agent_is_not_run() -> None:
    records = series("ensemble", kl_tau1=[1.0, 1.0, 1.0], kl_tau10=[1.0, 1.0, 1.0])
    worse = records + series("ensemble+", kl_tau1=[1.0, 1.1, 0.9], kl_tau10=[9.0, 9.1, 9.2])
    assert [row.verdict for row in receipt(paper(trends=[TREND]), worse).rows] == ["undecided", "differs", "differs"]
    assert {row.verdict for row in receipt(paper(trends=[TREND]), records).rows} == {"not run"}
    assert receipt(paper(trends=[TREND]), records, cast={"ensemble": "ensemble"}).rows == ()
