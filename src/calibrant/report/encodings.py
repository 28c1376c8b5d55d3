"""The vocabulary that charts are written in: Vega-Lite fragments and the rows they read.

Data rows carry `agent` (the full spec, which `hidden` and colours refer to), `name` (what is shown) and numbers that
are finite or null, so that every chart is valid JSON.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from calibrant.report.style import CONTROLS, THEME, base_name, colours, number, shapes, short_name

if TYPE_CHECKING:
    from calibrant.report.board import Row

Spec: TypeAlias = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
VISIBLE: Spec = {"filter": "indexof(hidden, datum.agent) < 0"}
AGENT_AXIS: Spec = {
    "title": None,
    "ticks": False,
    "domain": False,
    "labelPadding": 8,
    "labelExpr": "replace(datum.label, regexp('@[0-9a-f]{12}'), '')",
}


def chart(values: Sequence[Spec], layers: Sequence[Spec], encoding: Spec, **rest: Any) -> Spec:
    """A layered chart that is as wide as its container and leaves hidden agents out."""
    return {
        "$schema": SCHEMA,
        "width": "container",
        "params": [{"name": "hidden", "value": []}],
        "data": {"values": list(values)},
        "transform": [VISIBLE],
        "encoding": encoding,
        "layer": list(layers),
        "config": dict(THEME),
    } | rest


def point(row: Row, mean: float, low: float, high: float) -> Spec:
    """A board's row as a data row: a number with its interval, and the same in words."""
    return {
        "agent": row.agent,
        "name": short_name(row.agent),
        "mean": finite(mean),
        "low": finite(low),
        "high": finite(high),
        "value": number(mean),
        "interval": interval(low, high),
    }


def cut(values: Sequence[Spec], fields: tuple[str, str, str] = ("mean", "low", "high")) -> list[Spec]:
    """Limits cut to twice the range of the means: one wild interval would squash all else. The words keep it whole."""
    middle, low, high = fields
    means = [value[middle] for value in values]
    bottom, top = 2 * min(0.0, *means), 2 * max(0.0, *means)

    def inside(limit: float | None) -> float | None:
        return None if limit is None else min(max(limit, bottom), top)

    return [value | {low: inside(value[low]), high: inside(value[high])} for value in values]


def where_known(values: Sequence[Spec], fields: tuple[str, str], layer: Spec) -> list[Spec]:
    """A layer of intervals, for the rows that have one; no layer at all where none has."""
    if all(None in (value[field] for field in fields) for value in values):
        return []
    known = " && ".join(f"isValid(datum.{field})" for field in fields)
    return [layer | {"transform": [*layer.get("transform", ()), {"filter": known}]}]


def interval(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}" if math.isfinite(low) and math.isfinite(high) else "none"


def finite(value: float) -> float | None:
    """Five significant digits keep the page small; infinities and NaN have no place in JSON."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


def quantity(field: str, title: str | None, **rest: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title} | rest


def by_agent(order: Sequence[str]) -> Spec:
    """A row per agent, in the given order."""
    return {"field": "agent", "type": "nominal", "sort": list(order), "axis": AGENT_AXIS}


def colour(agents: Sequence[str]) -> Spec:
    return _per_agent(colours(agents))


def shape(agents: Sequence[str]) -> Spec:
    return _per_agent(shapes(agents))


def dash(agents: Sequence[str]) -> Spec:
    """Controls are dashed: they bound the scale and do not compete."""
    return _per_agent({agent: [5, 4] if base_name(agent) in CONTROLS else [1, 0] for agent in agents})


def tooltip(**titles: str) -> list[Spec]:
    shown = {"name": "agent"} | titles
    return [{"field": field, "type": "nominal", "title": title} for field, title in shown.items()]


def reference(axis: str) -> Spec:
    """A dashed line at 1, where the baseline stands."""
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "strokeOpacity": 0.55},
        "encoding": {axis: {"datum": 1}, "y" if axis == "x" else "x": None, "color": None},
    }


def _per_agent(chosen: dict[str, Any]) -> Spec:
    agents = sorted(chosen)
    scale = {"domain": agents, "range": [chosen[agent] for agent in agents]}
    return {"field": "agent", "type": "nominal", "scale": scale, "legend": None}
