"""Losses as curves: against the training size where that varies, else against what else does, with theory where known.

Figures 4, 5, 13 and 14 of the Neural Testbed paper (Osband et al., 2022) are losses against training size; Figure 2 of
the dyadic-sampling paper (Osband et al., UAI 2022) is losses against the dimension. A panel per value of every other
axis; the parameter `metric` chooses the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.report.charts import LIMITS, Chart, bar, headline, losses, numbers
from calibrant.report.encodings import (
    Spec,
    chart,
    colour,
    cut,
    dash,
    finite,
    quantity,
    shape,
    tooltip,
    where_known,
)
from calibrant.report.style import number

if TYPE_CHECKING:
    from calibrant.report.board import Board, Row
    from calibrant.suites.base import Expected

PANELS = {"temp": "temperature", "dim": "dimension"}
ALONG = {"train": "training size", "coins": "number of coins", "dim": "dimension"}  # what may run along a curve
UNITS = {"train": "training points", "coins": "coins in the bag", "dim": "input dimension"}
THEORY = {"type": "line", "strokeWidth": 1.5, "strokeDash": [2, 3], "opacity": 0.9}


def curve_charts(board: Board, expected: Expected | None = None) -> list[Chart]:
    """A panel per setting of the other axes; dotted lines are what theory expects, where a suite knows."""
    along = runs_along(board)
    if along is None:
        return []
    rows = [row for row in _rows(board) if row.slice.get(along)]
    agents = sorted({row.agent for row in rows})
    panels: dict[tuple[tuple[str, Any], ...], list[Row]] = {}
    for row in rows:
        rest = tuple((name, value) for name, value in row.slice.items() if name != along and (name, value) != NO_DATA)
        panels.setdefault(rest, []).append(row)
    return [_curve(panels[panel], along, dict(panel), agents, headline(board), expected) for panel in sorted(panels)]


NO_DATA = ("train", 0)  # says nothing in a title


def runs_along(board: Board) -> str | None:
    """The axis of the curves: the first of `ALONG` that takes two values or more, 0 aside: it has no logarithm."""
    rows = _rows(board)
    return next((axis for axis in ALONG if len({row.slice.get(axis) or None for row in rows} - {None}) > 1), None)


def _rows(board: Board) -> list[Row]:
    return [row for metric in losses(board) for row in numbers(board, metric) if row.slice.keys() & ALONG.keys()]


def _curve(
    rows: list[Row], along: str, panel: dict[str, Any], agents: list[str], chosen: str, expected: Expected | None
) -> Chart:
    values = []
    for metric in dict.fromkeys(row.metric for row in rows):  # not every panel need have a number for each
        values += cut([_point(row, along, expected) for row in rows if row.metric == metric])
    sizes = sorted({row.slice[along] for row in rows})
    axis = {"values": sizes, "grid": False, "format": "d", "labelOverlap": True}
    x = quantity(along, UNITS[along], scale={"type": "log", "nice": False, "padding": 8}, axis=axis)
    y = {"axis": {"tickCount": 5}, "scale": {"nice": 5}}
    low, mean = quantity("low", "loss in nats", **y), quantity("mean", "loss in nats", **y)
    band = {"mark": {"type": "area", "opacity": 0.16}, "encoding": {"y": low, "y2": {"field": "high"}}}
    theory = {"mark": THEORY, "encoding": {"y": quantity("expected", "loss in nats", **y)}}
    said = {along: UNITS[along], "value": "loss", "interval": "95 % interval"}
    said |= {"theory": "in closed form"} if any(value["expected"] is not None for value in values) else {}
    layers: list[Spec] = [
        *where_known(values, LIMITS, band),
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"y": mean, "strokeDash": dash(agents)}},
        *where_known(values, ("expected", "expected"), theory),
        {
            "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
            "encoding": {"y": mean, "shape": shape(agents), "tooltip": tooltip(**said)},
        },
    ]
    words = [f"{PANELS.get(name, name)} {value}" for name, value in panel.items()]
    title = ", ".join(words) or "all environments"
    spec = chart(values, layers, {"x": x, "color": colour(agents)}, title=title, height=290)
    spec["params"] = [*spec["params"], {"name": "metric", "value": chosen}]
    spec["transform"] = [*spec["transform"], {"filter": "datum.metric === metric"}]
    name = "-".join(["curve", *map(str, panel.values())])
    return Chart(name, f"loss against {ALONG[along]}, {title}: a line per agent", spec)


def _point(row: Row, along: str, expected: Expected | None) -> Spec:
    theory = expected(row.agent, row.metric, row.slice) if expected else None
    known = (
        {"expected": None, "theory": "–"} if theory is None else {"expected": finite(theory), "theory": number(theory)}
    )
    return bar(row, False) | {"metric": row.metric, along: row.slice[along]} | known
