"""The figures of `report.correlation` as Vega-Lite dictionaries: a scatter of two suites, a matrix of laws."""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibrant.report.charts import THICK, Chart
from calibrant.report.correlation import Comparison, Matrix, Side
from calibrant.report.encodings import Spec, chart, colour, finite, interval, quantity, shape, tooltip, where_known
from calibrant.report.style import label, short_name
from calibrant.report.wording import quantity as estimate
from calibrant.stats.intervals import Interval

SHADES = ("#c8641b", "#f2f2f2", "#0b6fb8")  # of -1, 0 and 1
AROUND = 0.04  # free space around the points, as a share of the axis


def scatter_chart(found: Comparison) -> Chart:
    """A point per agent, its 95 % intervals across and upright; logarithmic axes where all numbers allow it."""
    values = [
        {"agent": point.agent, "name": short_name(point.agent)}
        | _place("a", point.a)
        | _place("b", point.b)
        | {"a_said": _said(point.a), "b_said": _said(point.b)}
        for point in found.points
    ]
    agents = [point.agent for point in found.points]
    axes = {name: _axis([getattr(point, name) for point in found.points]) for name in ("a", "b")}
    titles = {name: side_title(side) for name, side in (("a", found.a), ("b", found.b))}
    at: Spec = {"x": quantity("a", titles["a"], **axes["a"]), "y": quantity("b", titles["b"], **axes["b"])}
    across = {"x": quantity("a_low", titles["a"], **axes["a"]), "x2": {"field": "a_high"}}
    upright = {"y": quantity("b_low", titles["b"], **axes["b"]), "y2": {"field": "b_high"}}
    layers: list[Spec] = [
        *where_known(values, ("a_low", "a_high"), {"mark": THICK, "encoding": at | across}),
        *where_known(values, ("b_low", "b_high"), {"mark": THICK, "encoding": at | upright}),
        {
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
            "encoding": at | {"shape": shape(agents), "tooltip": tooltip(a_said=titles["a"], b_said=titles["b"])},
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 10, "dy": -10, "fontWeight": 600},
            "encoding": at | {"text": {"field": "name"}, "color": {"value": "currentColor"}},
        },
    ]
    spec = chart(values, layers, {"color": colour(agents)}, height=420)
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


def side_title(side: Side) -> str:
    return f"{side.suite}: {label(side.metric)}"


def _place(name: str, one: Interval) -> Spec:
    return {name: finite(one.mean), f"{name}_low": finite(one.low), f"{name}_high": finite(one.high)}


def _said(one: Interval) -> str:
    return estimate(one.mean, one.low, one.high)


def extent(points: Sequence[Interval]) -> tuple[float, float, bool]:
    """From where to where an axis goes, and whether it is logarithmic: it is where every number is positive."""
    ends = [end for one in points for end in (one.mean, one.low, one.high) if math.isfinite(end)]
    low, high = min(ends), max(ends)
    if low > 0:
        reach = max((high / low) ** AROUND, 1.01)
        return low / reach, high * reach, True
    reach = AROUND * (high - low) or 1.0
    return low - reach, high + reach, False


def _axis(points: Sequence[Interval]) -> Spec:
    low, high, logarithmic = extent(points)
    kind = {"type": "log"} if logarithmic else {"type": "linear", "zero": False}
    return {"scale": kind | {"nice": False, "domain": [low, high]}}
