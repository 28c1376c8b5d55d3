"""The charts of a board as plain Vega-Lite dictionaries: they can be embedded, saved or drawn by other tools.

Every chart takes a parameter `hidden`, the agents that are not to be drawn. A function returns an empty list where
the board holds too little to draw. The figures follow the Neural Testbed paper (Osband et al., 2022): normalised
losses (its Figure 2), cost against quality (15); `report.curves` has its losses against training size. The split of
the joint loss into a marginal and a dependence part is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant.report.encodings import (
    VISIBLE,
    Spec,
    by_agent,
    chart,
    colour,
    cut,
    finite,
    interval,
    point,
    quantity,
    reference,
    shape,
    tooltip,
    where_known,
)
from calibrant.report.style import label, short_name

if TYPE_CHECKING:
    from calibrant.report.board import Board, Row
    from calibrant.stats.intervals import Interval

COST = "fit_cpu_seconds"
LOSSES = ("kl_tau", "nll", "joint_nll_", "regret", "simple_regret", "curve_kl_")  # how the names of losses begin
WHOLE = "kl_tau10"  # what the two parts add up to
PARTS = {"marginal": "marginal_tau10", "dependence": "dependence_tau10"}
PART_COLOURS = {"marginal": "#6b8fb5", "dependence": "#d9a441"}
LABEL_PLACE = {"expr": "datum.label === 'below' ? 14 : -10"}
LIMITS = ("low", "high")
DIAMOND = {"type": "point", "shape": "diamond", "filled": True, "size": 80, "opacity": 1, "fill": "currentColor"}
THIN, THICK = {"type": "rule", "strokeWidth": 1.5}, {"type": "rule", "strokeWidth": 2, "opacity": 0.6}


@dataclass(frozen=True)
class Chart:
    """A chart and what it shows in a few words, for those who cannot see it."""

    name: str
    alt: str
    spec: Spec


def loss_charts(board: Board) -> list[Chart]:
    """Figure 2: a panel of bars per loss, relative to the baseline where there is one; all panels in one order."""
    metrics = losses(board)
    relative = is_relative(board)
    order = ranking(board, headline(board)) if metrics else []
    charts = []
    for metric in metrics:
        shown = [row for row in numbers(board, metric) if _ratio(row) or not relative]
        if not shown:
            continue
        title = f"relative to {short_name(board.baseline or '')}" if relative else _unit(metric)
        values = cut([bar(row, relative) for row in shown])
        layers: list[Spec] = [
            {
                "mark": {"type": "bar", "cornerRadiusEnd": 2, "height": {"band": 0.62}, "opacity": 0.88},
                "encoding": {
                    "x": quantity("mean", title, axis={"tickCount": 5}),
                    "color": colour(order),
                    "tooltip": tooltip(value=title, interval="95 % interval"),
                },
            },
            *where_known(values, LIMITS, {"mark": THIN, "encoding": _whisker(title)}),
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "fontSize": 11.5},
                "encoding": {"x": {"value": "width"}, "text": {"field": "value"}},
            },
        ]
        layers += [reference("x")] * relative
        spec = chart(values, layers, {"y": by_agent(order)}, title=label(metric), height=27 * len(values))
        charts.append(Chart(f"loss-{metric}", f"{label(metric)}, {title}: a bar per agent", spec))
    return charts


def parts_charts(board: Board) -> list[Chart]:
    """The joint loss split in two: what single predictions lose, and what modelling their dependence adds or saves."""
    rows = {(row.agent, part): row for part, metric in PARTS.items() for row in numbers(board, metric)}
    agents = [agent for agent in ranking(board, WHOLE) if all((agent, part) in rows for part in PARTS)]
    if not agents:
        return []
    values = [bar(row, False) | {"part": part} for (agent, part), row in rows.items() if agent in agents]
    sums = cut([bar(row, False) for row in numbers(board, WHOLE) if row.agent in agents])
    totals: Spec = {"data": {"values": sums}, "transform": [VISIBLE]}
    title = "nats at τ=10"
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": {"band": 0.6}},
            "encoding": {
                "x": quantity("mean", title, stack="zero", axis={"tickCount": 8}),
                "color": {
                    "field": "part",
                    "type": "nominal",
                    "scale": {"domain": list(PARTS), "range": [PART_COLOURS[part] for part in PARTS]},
                    "legend": {"title": None, "orient": "top"},
                },
                "tooltip": tooltip(part="part", value="nats", interval="95 % interval"),
            },
        },
        *where_known(sums, LIMITS, totals | {"mark": THIN, "encoding": _whisker(title)}),
        totals
        | {
            "mark": DIAMOND,
            "encoding": {
                "x": quantity("mean", title),
                "tooltip": tooltip(value="sum of both parts", interval="95 % interval"),
            },
        },
    ]
    spec = chart(values, layers, {"y": by_agent(agents)}, height=30 * len(agents))
    return [Chart("parts", "the joint loss of each agent split into a marginal and a dependence part", spec)]


def cost_charts(board: Board) -> list[Chart]:
    """Figure 15: fitting cost against joint loss, both relative to the baseline, both with intervals."""
    costs = {row.agent: ratio for row in numbers(board, COST) if (ratio := _ratio(row)) and ratio.mean > 0}
    joint = {row.agent: ratio for row in numbers(board, headline(board)) if (ratio := _ratio(row))}
    agents = sorted(costs.keys() & joint.keys())
    if len(agents) < 2:
        return []
    values = []
    for agent in agents:
        cost, loss = costs[agent], joint[agent]
        edge = max(cost.low, cost.mean / 100)  # a logarithmic axis has no place for 0 and below
        place = {"cost": cost.mean, "cost_low": edge, "cost_high": cost.high}
        place |= {"loss": loss.mean, "loss_low": loss.low, "loss_high": loss.high}
        said = {"costs": interval(cost.low, cost.high), "losses": interval(loss.low, loss.high)}
        values.append({name: finite(value) for name, value in place.items()} | said | _names(agent))
    values = _labelled(cut(values, ("loss", "loss_low", "loss_high")))
    baseline = short_name(board.baseline or "")
    axis = {"format": "~g", "tickCount": 5}
    x = {"scale": {"type": "log", "nice": False, "padding": 40}, "axis": axis}
    x_title = f"fitting time relative to {baseline} (log scale)"
    y_title = f"{label(headline(board))}, relative to {baseline}"
    at: Spec = {"x": quantity("cost", x_title, **x), "y": quantity("loss", y_title)}
    across = {"x": quantity("cost_low", x_title, **x), "x2": {"field": "cost_high"}}
    upright = {"y": quantity("loss_low", y_title), "y2": {"field": "loss_high"}}
    layers: list[Spec] = [
        reference("x"),
        reference("y"),
        *where_known(values, ("cost_low", "cost_high"), {"mark": THICK, "encoding": at | across}),
        *where_known(values, ("loss_low", "loss_high"), {"mark": THICK, "encoding": at | upright}),
        {
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
            "encoding": at
            | {
                "shape": shape(agents),
                "tooltip": tooltip(costs="fitting time, 95 %", losses="joint loss, 95 %"),
            },
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 10, "dy": LABEL_PLACE, "fontWeight": 600},
            "encoding": at | {"text": {"field": "name"}, "color": {"value": "currentColor"}},
        },
    ]
    spec = chart(values, layers, {"color": colour(agents)}, height=360)
    return [Chart("cost", "joint loss against fitting time: a point per agent", spec)]


def losses(board: Board) -> list[str]:
    """The losses of a board, single predictions first."""
    found = {row.metric for row in board.rows if row.metric.startswith(LOSSES)}
    return sorted(found, key=lambda metric: (len(metric), metric))


def headline(board: Board) -> str:
    """The loss that ranks agents: the suite's, or where it was not asked the first there is."""
    found = losses(board)
    return found[0] if found and board.headline not in found else board.headline


def is_relative(board: Board) -> bool:
    """Whether losses can be shown relative to the baseline: there is one, and its loss is not 0."""
    return any(_ratio(row) for metric in losses(board) for row in numbers(board, metric))


def ranking(board: Board, metric: str) -> list[str]:
    """Agents with a number for a metric, smallest first."""
    return [row.agent for row in sorted(numbers(board, metric), key=lambda row: (row.mean, row.agent))]


def numbers(board: Board, metric: str) -> list[Row]:
    """A metric's rows that hold a number: an agent whose every cell failed has none."""
    return [row for row in board.rows if row.metric == metric and math.isfinite(row.mean)]


def bar(row: Row, relative: bool) -> Spec:
    """A board's row as a data row: its mean, or the ratio to the baseline."""
    shown = (_ratio(row) if relative else None) or row
    return point(row, shown.mean, shown.low, shown.high)


def _ratio(row: Row) -> Interval | None:
    return row.ratio if row.ratio and math.isfinite(row.ratio.mean) else None


def _labelled(values: list[Spec]) -> list[Spec]:
    """Where each point's name stands: above, unless the name of a point close by and higher stands there."""
    wide = math.log(max(v["cost"] for v in values) / min(v["cost"] for v in values)) or 1.0
    tall = max(v["loss"] for v in values) or 1.0

    def crowded(one: Spec, other: Spec) -> bool:
        near = abs(math.log(one["cost"] / other["cost"])) < wide / 8 and abs(one["loss"] - other["loss"]) < tall / 14
        return near and (one["loss"], one["agent"]) < (other["loss"], other["agent"])

    return [v | {"label": "below" if any(crowded(v, other) for other in values) else "above"} for v in values]


def _unit(metric: str) -> str:
    return "regret" if "regret" in metric else "nats"


def _whisker(title: str) -> Spec:
    return {"x": quantity("low", title), "x2": {"field": "high"}}


def _names(agent: str) -> Spec:
    return {"agent": agent, "name": short_name(agent)}
