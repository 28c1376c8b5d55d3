"""Charts say what the board says, as valid JSON, and only where there is something to say."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from calibrant.report.board import Board, Row
from calibrant.report.charts import Chart, cost_charts, loss_charts, losses, parts_charts
from calibrant.report.curves import curve_charts
from calibrant.stats.intervals import Interval

LOSSES = ("kl_tau1", "kl_tau10", "kl_tau10_dyadic")
AGENTS = {"mlp": 1.0, "ensemble+": 0.5, "uniform": 3.0}
NONE = Interval(0.5, math.nan, math.nan, 1)


def row(agent: str, metric: str, mean: float, **slice_: Any) -> Row:
    ratio = Interval(AGENTS[agent], 0.9 * AGENTS[agent], 1.1 * AGENTS[agent], 9)
    return Row(agent, metric, slice_, mean, mean - 0.1, mean + 0.1, n=9, failed=0, difference=ratio, ratio=ratio)


def overall() -> Board:
    parts = {"marginal_tau10": 1.5, "dependence_tau10": -0.5, "fit_cpu_seconds": 2.0}
    rows = [row(agent, metric, loss) for agent, loss in AGENTS.items() for metric in LOSSES]
    rows += [row(agent, metric, loss * part) for agent, loss in AGENTS.items() for metric, part in parts.items()]
    return Board("testbed", "mlp", (), tuple(rows), {})


def sliced() -> Board:
    rows = [
        row(agent, metric, loss / train, train=train, temp=temp)
        for agent, loss in AGENTS.items()
        for metric in LOSSES
        for train in (1, 10, 1000)
        for temp in (0.5, 0.01)
    ]
    return Board("testbed", "mlp", ("train", "temp"), tuple(rows), {})


def every_chart() -> list[Chart]:
    return [*loss_charts(overall()), *curve_charts(sliced()), *parts_charts(overall()), *cost_charts(overall())]


def without_numbers(board: Board) -> Board:
    return replace(board, rows=tuple(replace(r, mean=math.nan, ratio=None) for r in board.rows))


def layers(spec: dict[str, Any]) -> Iterator[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Each layer's data with all that it encodes."""
    for layer in spec["layer"]:
        yield layer.get("data", spec["data"])["values"], spec["encoding"] | layer["encoding"]


def values(chart: Chart) -> dict[str, dict[str, Any]]:
    return {value["agent"]: value for value in chart.spec["data"]["values"]}


@pytest.mark.parametrize("chart", every_chart(), ids=lambda chart: chart.name)
def test_every_chart_is_strict_json_that_draws_what_it_holds(chart: Chart) -> None:
    assert json.loads(json.dumps(chart.spec, allow_nan=False)) == chart.spec
    assert chart.spec["params"][0] == {"name": "hidden", "value": []}
    assert any("hidden" in step["filter"] for step in chart.spec["transform"])
    for data, encoding in layers(chart.spec):
        shown = [
            part
            for channel in encoding.values()
            if channel
            for part in (channel if isinstance(channel, list) else [channel])
        ]
        fields = {part["field"] for part in shown if "field" in part}
        assert data == [{}] or all(fields <= value.keys() for value in data)


def test_losses_are_relative_to_the_baseline_in_one_order() -> None:
    charts = loss_charts(overall())
    assert (
        [chart.name for chart in charts]
        == [f"loss-{metric}" for metric in LOSSES]
        == [f"loss-{m}" for m in losses(overall())]
    )
    for chart in charts:
        assert {agent: value["mean"] for agent, value in values(chart).items()} == AGENTS
        assert values(chart)["ensemble+"]["low"] == 0.45
        assert chart.spec["encoding"]["y"]["sort"] == ["ensemble+", "mlp", "uniform"]


def test_losses_without_a_baseline_are_in_nats() -> None:
    board = replace(overall(), baseline=None, rows=tuple(replace(r, ratio=None, mean=7.0) for r in overall().rows))
    assert {value["mean"] for chart in loss_charts(board) for value in values(chart).values()} == {7.0}
    assert "nats" in loss_charts(board)[0].alt and cost_charts(board) == []


def test_a_baseline_without_loss_divides_nothing() -> None:
    nothing = Interval(math.nan, math.nan, math.nan, 9)
    board = replace(overall(), rows=tuple(replace(r, ratio=nothing) for r in overall().rows))
    assert {agent: value["mean"] for agent, value in values(loss_charts(board)[0]).items()} == AGENTS
    assert "nats" in loss_charts(board)[0].alt and cost_charts(board) == []


def test_one_wild_interval_is_cut_but_keeps_its_words() -> None:
    rows = [replace(r, low=-900.0, high=900.0) if r.agent == "mlp" else r for r in sliced().rows]
    for chart in curve_charts(replace(sliced(), rows=tuple(rows))):
        wild = [value for value in chart.spec["data"]["values"] if value["agent"] == "mlp"]
        assert {(value["low"], value["high"]) for value in wild} == {(0.0, 6.0)}
        assert {value["interval"] for value in wild} == {"−900 to 900"}


def test_names_of_close_points_do_not_cover_each_other() -> None:
    close = {"mlp": (1.0, 1.0), "ensemble+": (1.05, 0.98), "uniform": (0.001, 3.0)}
    rows = [
        replace(r, ratio=Interval(close[r.agent][r.metric == "kl_tau10"], math.nan, math.nan, 9))
        for r in overall().rows
    ]
    (chart,) = cost_charts(replace(overall(), rows=tuple(rows)))
    assert {agent: value["label"] for agent, value in values(chart).items()} == {
        "mlp": "above",
        "ensemble+": "below",
        "uniform": "above",
    }


def test_curves_have_a_panel_per_temperature_and_every_size() -> None:
    cold, hot = curve_charts(sliced())
    assert (cold.spec["title"], hot.spec["title"]) == ("temperature 0.01", "temperature 0.5")
    assert {value["train"] for value in cold.spec["data"]["values"]} == {1, 10, 1000}
    assert {value["metric"] for value in cold.spec["data"]["values"]} == set(LOSSES)
    assert cold.spec["params"][1] == {"name": "metric", "value": "kl_tau10"}
    assert len(cold.spec["data"]["values"]) == 3 * 3 * 3


def test_parts_add_up_to_the_joint_loss() -> None:
    (chart,) = parts_charts(overall())
    for agent, loss in AGENTS.items():
        parts = {v["part"]: v["mean"] for v in chart.spec["data"]["values"] if v["agent"] == agent}
        assert parts == {"marginal": 1.5 * loss, "dependence": -0.5 * loss}
        totals = [v["mean"] for v in chart.spec["layer"][-1]["data"]["values"] if v["agent"] == agent]
        assert totals == [sum(parts.values())]


def test_cost_keeps_a_logarithmic_axis_above_zero() -> None:
    rows = [
        replace(r, ratio=Interval(2.0, -1.0, 5.0, 9)) if r.metric == "fit_cpu_seconds" else r for r in overall().rows
    ]
    (chart,) = cost_charts(replace(overall(), rows=tuple(rows)))
    assert {v["cost_low"] for v in chart.spec["data"]["values"]} == {0.02}
    assert {v["agent"]: v["loss"] for v in chart.spec["data"]["values"]} == AGENTS


def test_rows_without_limits_are_drawn_without_whiskers() -> None:
    rows = tuple(replace(r, low=math.nan, high=math.nan, ratio=NONE) for r in overall().rows)
    board = replace(overall(), rows=rows)
    for bare, full in zip(loss_charts(board), loss_charts(overall()), strict=True):
        assert len(bare.spec["layer"]) == len(full.spec["layer"]) - 1
        assert values(bare)["mlp"]["interval"] == "none"
    assert len(cost_charts(board)[0].spec["layer"]) == len(cost_charts(overall())[0].spec["layer"]) - 2


def test_boards_with_too_little_to_draw_give_no_charts() -> None:
    empty = Board("testbed", None, (), (), {})
    for draw in (loss_charts, curve_charts, parts_charts, cost_charts):
        assert draw(empty) == draw(without_numbers(overall())) == []
    one_size = tuple(r for r in sliced().rows if r.slice["train"] == 10)
    assert curve_charts(replace(sliced(), rows=one_size)) == []
