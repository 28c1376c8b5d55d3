"""The figures of `report.correlation` as Vega-Lite dictionaries: a scatter of two suites, a matrix of laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from calibrant.report.charts import THICK, Chart
from calibrant.report.correlation import Comparison, Side
from calibrant.report.correlation_matrix import Matrix
from calibrant.report.encodings import (
    VISIBLE,
    Spec,
    chart,
    colour,
    finite,
    interval,
    quantity,
    shape,
    tooltip,
    where_known,
)
from calibrant.report.labels import Box, Place, place_names
from calibrant.report.style import label, short_name
from calibrant.report.wording import quantity as estimate
from calibrant.stats.intervals import Interval

SHADES = ("#c8641b", "#f2f2f2", "#0b6fb8")  # of -1, 0 and 1
BELOW = 5.0  # how far a logarithmic axis goes below the smallest mean, as a factor
AROUND = 0.04  # free space around the points, as a share of the axis
HIGH, NARROW, BESIDE = 420, 480, 140  # a scatter's height, the width that names are placed for, their room at its right


def scatter_chart(found: Comparison) -> Chart:
    """A point per agent, its 95 % intervals across and upright; logarithmic axes where all means allow it."""
    sides = {name: [getattr(point, name) for point in found.points] for name in ("a", "b")}
    edges = {name: extent(points)[0] for name, points in sides.items()}
    values = [
        {"agent": point.agent, "name": short_name(point.agent)}
        | _place("a", point.a, edges["a"])
        | _place("b", point.b, edges["b"])
        | {"a_said": _said(point.a), "b_said": _said(point.b)}
        | {"dx": place.dx, "dy": place.dy, "side": place.side, "far": place.far}
        for point, place in zip(found.points, name_places(found, Box(0, 0, NARROW, HIGH)), strict=True)
    ]
    agents = [point.agent for point in found.points]
    axes = {name: _axis(points) for name, points in sides.items()}
    titles = {name: side_title(side) for name, side in (("a", found.a), ("b", found.b))}
    at: Spec = {"x": quantity("a", titles["a"], **axes["a"]), "y": quantity("b", titles["b"], **axes["b"])}
    across = {"x": quantity("a_low", titles["a"], **axes["a"]), "x2": {"field": "a_high"}}
    upright = {"y": quantity("b_low", titles["b"], **axes["b"]), "y2": {"field": "b_high"}}
    repeats: list[Spec] = [
        {"agent": one.agent, "name": short_name(one.agent)}
        | {"a": finite(max(one.a, edges["a"])), "b": finite(max(one.b, edges["b"]))}
        for one in found.repeated
    ]
    cloud: Spec = {
        "data": {"values": repeats},
        "transform": [VISIBLE],
        "mark": {"type": "point", "filled": True, "size": 26, "opacity": 0.45, "clip": True},
        "encoding": at,
    }
    layers: list[Spec] = [
        *[cloud] * bool(repeats),
        *where_known(values, ("a_low", "a_high"), {"mark": THICK, "encoding": at | across}),
        *where_known(values, ("b_low", "b_high"), {"mark": THICK, "encoding": at | upright}),
        {
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
            "encoding": at | {"shape": shape(agents), "tooltip": tooltip(a_said=titles["a"], b_said=titles["b"])},
        },
        {
            "transform": [{"filter": "datum.far"}],
            "mark": {"type": "rule", "opacity": 0.5} | {f"{axis}2Offset": _of(f"d{axis}") for axis in "xy"},
            "encoding": at | {"x2": {"field": "a"}, "y2": {"field": "b"}, "color": {"value": "currentColor"}},
        },
        {
            "mark": {"type": "text", "align": _of("side"), "dx": _of("dx"), "dy": _of("dy"), "fontWeight": 600}
            | {"baseline": "middle"},
            "encoding": at | {"text": {"field": "name"}, "color": {"value": "currentColor"}},
        },
    ]
    spec = chart(values, layers, {"color": colour(agents)}, height=HIGH)
    return Chart("correlation", f"{titles['b']} against {titles['a']}: a point per agent", spec)


def heat_chart(found: Matrix) -> Chart:
    """A square per pair of values: blue where agents score alike, orange where they score the other way round."""
    values = [
        {
            "row": row,
            "column": column,
            "value": finite(cell.value),
            "said": f"{cell.value:.2f}" if math.isfinite(cell.value) else "–",
            "interval": interval(cell.low, cell.high),
            "agents": interval(cell.agents_low, cell.agents_high),
            "strong": abs(cell.value) > 0.6,
        }
        for row, line in zip(found.values, found.cells, strict=True)
        for column, cell in zip(found.values, line, strict=True)
    ]
    side = {"type": "nominal", "sort": list(found.values), "title": None}
    shades = {"domain": [-1, 0, 1], "range": list(SHADES)}
    words = {"row": "one", "column": "other", "said": "correlation"}
    words |= {"interval": "5th to 95th percentile, environments drawn anew"}
    words |= {"agents": "5th to 95th percentile, agents drawn anew"}
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "cornerRadius": 2},
            "encoding": {
                "color": {"field": "value", "type": "quantitative", "scale": shades, "legend": None},
                "tooltip": [{"field": field, "type": "nominal", "title": title} for field, title in words.items()],
            },
        },
        {
            "mark": {"type": "text", "fontSize": 11.5},
            "encoding": {
                "text": {"field": "said"},
                "color": {"condition": {"test": "datum.strong", "value": "#fff"}, "value": "#222"},
            },
        },
    ]
    places: Spec = {
        "x": {"field": "column", **side, "axis": {"labelAngle": -40, "ticks": False, "domain": False, "title": None}},
        "y": {"field": "row", **side, "axis": {"ticks": False, "domain": False, "title": None}},
    }
    title = f"{label(found.metric)}, by {found.field}"
    spec = chart(values, layers, places, title=title, height=34 * len(found.values))
    name = f"matrix-{found.field}-{found.metric}"
    return Chart(name, f"correlation of agents' scores between values of {found.field}, {label(found.metric)}", spec)


def name_places(found: Comparison, frame: Box) -> list[Place]:
    """Where agents' names stand in a scatter whose axes span the frame; a name may reach out of it to the right."""
    across = placed([point.a for point in found.points], frame.left, frame.right)
    upright = placed([point.b for point in found.points], frame.bottom, frame.top)
    points = [(across(point.a.mean), upright(point.b.mean)) for point in found.points]
    names = [short_name(point.agent) for point in found.points]
    return place_names(points, names, Box(frame.left, frame.top, frame.right + BESIDE, frame.bottom))


def side_title(side: Side) -> str:
    return f"{side_name(side)}: {label(side.metric)}"


def side_name(side: Side) -> str:
    """The suite, and which part of it."""
    return f"{side.suite}, {side.part}" if side.part else side.suite


def _place(name: str, one: Interval, edge: float) -> Spec:
    return {name: finite(one.mean), f"{name}_low": finite(max(one.low, edge)), f"{name}_high": finite(one.high)}


def _said(one: Interval) -> str:
    return estimate(one.mean, one.low, one.high)


def extent(points: Sequence[Interval]) -> tuple[float, float, bool]:
    """From where to where an axis goes, and whether it is logarithmic: it is where every mean is positive.

    It then goes down to a fifth of the smallest mean; an interval that reaches further ends at the edge.
    """
    ends = [end for one in points for end in (one.mean, one.low, one.high) if math.isfinite(end)]
    low, high = min(ends), max(ends)
    smallest = min(one.mean for one in points if math.isfinite(one.mean))
    if smallest > 0:
        low = max(low, smallest / BELOW)
        reach = max((high / low) ** AROUND, 1.01)
        return low / reach, high * reach, True
    reach = AROUND * (high - low) or 1.0
    return low - reach, high + reach, False


def placed(points: Sequence[Interval], start: float, end: float) -> Callable[[float], float]:
    """From a number to its place on an axis between two ends."""
    low, high, logarithmic = extent(points)
    bend: Callable[[float], float] = math.log if logarithmic else float
    first, last = bend(low), bend(high)

    def place(value: float) -> float:
        return start + (end - start) * (bend(min(max(value, low), high)) - first) / ((last - first) or 1.0)

    return place


def _of(field: str) -> Spec:
    """A mark's property that every row has its own value of."""
    return {"expr": f"datum.{field}"}


def _axis(points: Sequence[Interval]) -> Spec:
    low, high, logarithmic = extent(points)
    kind = {"type": "log"} if logarithmic else {"type": "linear", "zero": False}
    return {"scale": kind | {"nice": False, "domain": [low, high]}}
