"""How scores develop while games are played: means over environments with intervals, point by point in time.

A record of a game keeps its course as the items of a score: the regret of a hundred stretches, or the losses after
given numbers of labels. Here courses of one panel are put side by side: a line is an agent, or a value of a field such
as the rule by which labels are asked for, with a panel per agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import registry
from calibrant.report.charts import Chart
from calibrant.report.encodings import Spec, chart, cut, finite, interval, quantity, where_known
from calibrant.report.style import AGENT_COLOURS, SPARE_COLOURS, colours, label, number, short_name
from calibrant.stats.intervals import Interval, estimates
from calibrant.suites.base import Suite, Timed
from calibrant.types import Array, Record

SHOWN = 30  # points of a line, evenly spaced on a logarithmic axis


@dataclass(frozen=True)
class Course:
    """One line of one panel: an interval per point in time."""

    line: str
    agent: str
    times: tuple[float, ...]
    points: tuple[Interval, ...]


@dataclass(frozen=True)
class Timeline:
    """One panel: what its lines share."""

    metric: str
    panel: tuple[tuple[str, str], ...]  # (field, value) of what sets it apart from other panels
    axis: str
    courses: tuple[Course, ...]


def timelines(records: Iterable[Record], suite: Suite) -> list[Timeline]:
    """Every panel of every timed score of a suite; records without items are passed over."""
    kept = [record for record in records if not record.failed]
    return [panel for timed in suite.timed for panel in _panels(kept, suite, timed)]


def timeline_charts(found: Sequence[Timeline]) -> list[Chart]:
    return [_chart(one, place) for place, one in enumerate(found)]


def _panels(records: Sequence[Record], suite: Suite, timed: Timed) -> list[Timeline]:
    given = [one for one in records if timed.metric in one.scores and one.scores[timed.metric].items is not None]
    fields = [axis for axis in suite.axes if axis != timed.lines]
    groups: dict[tuple[str, ...], dict[str, list[Record]]] = {}
    for record in given:
        problem = registry.resolve("problems", record.cell.problem)
        line = record.cell.agent if timed.lines == "agent" else registry.show(getattr(problem, timed.lines))
        where = tuple(registry.show(getattr(problem, field)) for field in fields)
        panel = where if timed.lines == "agent" else (*where, record.cell.agent)
        groups.setdefault(panel, {}).setdefault(line, []).append(record)
    names = fields if timed.lines == "agent" else [*fields, "agent"]
    differing = [place for place in range(len(names)) if len({panel[place] for panel in groups}) > 1]
    return [
        Timeline(
            timed.metric,
            tuple((names[place], panel[place]) for place in differing),
            timed.axis,
            tuple(_course(line, some, timed) for line, some in sorted(groups[panel].items())),
        )
        for panel in sorted(groups, key=_order)
    ]


def _course(line: str, records: Sequence[Record], timed: Timed) -> Course:
    problem: Any = registry.resolve("problems", records[0].cell.problem)
    values = np.stack([np.asarray(record.scores[timed.metric].items, float) for record in records], axis=1)
    times = np.asarray(problem.marks if hasattr(problem, "marks") else _ends(problem.steps, len(values)), float)
    if timed.running:
        values = np.cumsum(values, axis=0) / np.arange(1, len(values) + 1)[:, None]
    shown = np.unique(np.geomspace(1, len(times), SHOWN).round().astype(int)) - 1
    found = estimates(values[shown], [record.cell.problem for record in records]).intervals()
    return Course(line, records[0].cell.agent, tuple(times[shown].tolist()), tuple(found))


def _ends(steps: int, stretches: int) -> Array:
    """The last step of every stretch."""
    return np.cumsum([len(part) for part in np.array_split(np.arange(steps), stretches)])


def _chart(timeline: Timeline, place: int) -> Chart:
    values: list[Spec] = [
        {
            "agent": course.agent,
            "line": course.line,
            "name": short_name(course.line),
            "time": time,
            "mean": finite(point.mean),
            "low": finite(point.low),
            "high": finite(point.high),
            "value": number(point.mean),
            "interval": interval(point.low, point.high),
        }
        for course in timeline.courses
        for time, point in zip(course.times, course.points, strict=True)
    ]
    values = cut(values)
    lines = [course.line for course in timeline.courses]
    paint = colours(lines) if _are_agents(timeline) else dict(zip(lines, _palette(), strict=False))
    hue = {
        "field": "line",
        "type": "nominal",
        "scale": {"domain": lines, "range": [paint[line] for line in lines]},
        "legend": None if _are_agents(timeline) else {"title": None, "orient": "top", "columns": 4},
    }
    title = label(timeline.metric)
    y = {"axis": {"tickCount": 5}, "scale": {"nice": 5}}
    x = quantity(
        "time",
        timeline.axis,
        scale={"type": "log", "nice": False},
        axis={"format": "~s", "grid": False, "tickCount": 4},
    )
    low, mean = quantity("low", title, **y), quantity("mean", title, **y)
    band = {"mark": {"type": "area", "opacity": 0.13}, "encoding": {"y": low, "y2": {"field": "high"}}}
    shown = {"name": "line", "time": timeline.axis, "value": title, "interval": "95 % interval"}
    layers: list[Spec] = [
        *where_known(values, ("low", "high"), band),
        {
            "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 18, "filled": True}},
            "encoding": {
                "y": mean,
                "tooltip": [{"field": name, "type": "nominal", "title": words} for name, words in shown.items()],
            },
        },
    ]
    words = ", ".join(f"{name} {short_name(value)}" for name, value in timeline.panel) or "all environments"
    spec = chart(values, layers, {"x": x, "color": hue}, title=f"{title}: {words}", height=290)
    return Chart(f"time-{place}", f"{title} against {timeline.axis}, {words}: a line per {_line(timeline)}", spec)


def _are_agents(timeline: Timeline) -> bool:
    return all(course.line == course.agent for course in timeline.courses)


def _line(timeline: Timeline) -> str:
    return "agent" if _are_agents(timeline) else "rule"


def _palette() -> list[str]:
    return ["currentColor", *SPARE_COLOURS, *AGENT_COLOURS.values()]


def _order(panel: tuple[str, ...]) -> list[tuple[bool, float, str]]:
    """Numbers as numbers, words as words."""
    return [(not part.replace(".", "", 1).isdigit(), float(part) if part.isdigit() else 0.0, part) for part in panel]
