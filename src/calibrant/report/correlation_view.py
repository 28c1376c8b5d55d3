"""Correlations in words and tables: for a terminal, and for a page of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from calibrant.report.correlation import Comparison, Series
from calibrant.report.correlation_charts import heat_chart, scatter_chart, side_name, side_title
from calibrant.report.correlation_matrix import Matrix
from calibrant.report.style import label, short_name
from calibrant.report.wording import heading, quantity
from calibrant.stats.correlation import Correlation

KIND_WORDS = {"pearson": "linear (Pearson)", "log": "of logarithms", "rank": "of ranks (Spearman)"}
PERCENTILES_SAID = "intervals of correlations: 5th to 95th percentile"

Table = list[list[str]]  # the heading first


def plain(found: Comparison | Series | Matrix) -> str:
    """For a terminal."""
    if isinstance(found, Series):
        parts = list(found.comparisons.values())
        notes = dict.fromkeys(note for part in parts for note in _notes(part))
        return "\n".join(
            [
                *(f"{_series_heading(found)}; correlations of logarithms.", "", *_columns(_series_table(found)), ""),
                *(line for part in parts for line in _body(part)),
                *(notes | dict.fromkeys(_passed_over(found))),
            ]
        )
    return "\n".join([*_body(found), *_notes(found)])


def _body(found: Comparison | Matrix) -> list[str]:
    tables = [_columns(table) for _, table in _tables(found)]
    return [_lead(found), "", *(line for table in tables for line in (*table, ""))]


def correlation_views(found: Comparison | Series | Matrix) -> list[dict[str, Any]]:
    """A section each for the template; those of a series follow a summary without a chart."""
    if not isinstance(found, Series):
        return [correlation_view(found)]
    table = _series_table(found)
    summary: dict[str, Any] = {
        "id": "summary",
        "heading": _series_heading(found),
        "lead": f"Over agents, at every value of {found.field}; the figures follow.",
        "chart": None,
        "tables": [{"title": "Correlations of logarithms", "head": table[0], "rows": table[1:]}],
        "notes": [PERCENTILES_SAID, *_passed_over(found)],
        "specs": {},
    }
    parts = enumerate(found.comparisons.values(), start=1)
    return [summary, *(correlation_view(part) | {"id": f"part-{place}"} for place, part in parts)]


def correlation_view(found: Comparison | Matrix) -> dict[str, Any]:
    """For the template: a heading, a chart, tables, notes."""
    chart = scatter_chart(found) if isinstance(found, Comparison) else heat_chart(found)
    return {
        "id": "correlation",
        "heading": _heading(found),
        "lead": _lead(found),
        "chart": chart,
        "caption": f"{chart.alt}. Bars are 95 % intervals." if isinstance(found, Comparison) else f"{chart.alt}.",
        "tables": [{"title": title, "head": table[0], "rows": table[1:]} for title, table in _tables(found)],
        "notes": _notes(found),
        "specs": {chart.name: chart.spec | {"description": chart.alt}},
    }


def _heading(found: Comparison | Matrix) -> str:
    if isinstance(found, Comparison):
        return f"{side_title(found.a)} against {side_title(found.b)}"
    return f"{found.suite}: {heading(found.metric)} by {found.field}"


def _lead(found: Comparison | Matrix) -> str:
    if isinstance(found, Comparison):
        sides = " and ".join(f"{side.environments} environments of {side_name(side)}" for side in (found.a, found.b))
        return f"{len(found.points)} agents on {sides}; means with 95 % intervals."
    agents = ", ".join(map(short_name, found.agents))
    return (
        f"{heading(found.metric)}: correlation {KIND_WORDS[found.kind]} of the mean scores of {agents} between values "
        f"of {found.field} in suite {found.suite}; environments drawn anew."
    )


def _tables(found: Comparison | Matrix) -> list[tuple[str, Table]]:
    if isinstance(found, Matrix):
        return [("Correlations", _triangle(found))]
    head = ["agent", *(f"{side.suite}: {heading(side.metric)}" for side in (found.a, found.b))]
    scores = [
        [short_name(point.agent), *(quantity(one.mean, one.low, one.high) for one in (point.a, point.b))]
        for point in found.points
    ]
    coefficients = [
        [KIND_WORDS[one.kind], _number(one.value), _limits(one.low, one.high), _limits(one.agents_low, one.agents_high)]
        for one in found.correlations
    ]
    titles = ["correlation", "value", "environments drawn anew", "agents drawn anew"]
    tables = [("Scores", [head, *scores]), ("Correlations", [titles, *coefficients])]
    if found.block_correlations:
        lines = [
            [KIND_WORDS[one.kind], _number(one.value), _limits(one.low, one.high)] for one in found.block_correlations
        ]
        within = f"within blocks of seeds, {len(found.repeated)} pairs"
        tables.append(("Blocks of seeds", [[within, "value", "blocks drawn anew"], *lines]))
    return tables


def _series_heading(found: Series) -> str:
    one = next(iter(found.comparisons.values()))
    return f"{side_title(one.a)} against {one.b.suite}: {label(one.b.metric)}, by {found.field}"


def _series_table(found: Series) -> Table:
    """A line for every value of the field; within blocks by ranks, as a game without regret has no logarithm."""
    head = [found.field, "agents", "environments", "value", "environments drawn anew", "agents drawn anew"]
    blocks = any(one.block_correlations for one in found.comparisons.values())
    table = [head + ["ranks within blocks of seeds"] * blocks]
    for value, one in found.comparisons.items():
        log = next(part for part in one.correlations if part.kind == "log")
        line = [value, str(len(one.points)), str(one.b.environments), _number(log.value)]
        line += [_limits(log.low, log.high), _limits(log.agents_low, log.agents_high)]
        line += [_with_interval(part) for part in one.block_correlations if part.kind == "rank"]
        table.append(line)
    return table


def _passed_over(found: Series) -> list[str]:
    return [f"passed over: {found.field}={value} ({reason})" for value, reason in found.passed_over.items()]


def _triangle(found: Matrix) -> Table:
    """Each pair once, with its interval of environments drawn anew."""
    lines = [
        [name, *map(_with_interval, line[:place])]
        for place, (name, line) in enumerate(zip(found.values, found.cells, strict=True))
        if place
    ]
    return [[found.field, *found.values[:-1]], *lines]


def _with_interval(one: Correlation) -> str:
    return f"{_number(one.value)} {_limits(one.low, one.high)}"


def _number(value: float) -> str:
    return f"{value:z.2f}" if math.isfinite(value) else "–"


def _limits(low: float, high: float) -> str:
    return f"[{_number(low)}, {_number(high)}]" if math.isfinite(low) and math.isfinite(high) else "–"


def _columns(grid: Sequence[Sequence[str]]) -> list[str]:
    wide = [max(map(len, column)) for column in zip_longest(*grid, fillvalue="")]
    lines = [[cell.ljust(width) for cell, width in zip(line, wide, strict=False)] for line in grid]
    return ["  ".join(line).rstrip() for line in lines]


def _notes(found: Comparison | Matrix) -> list[str]:
    points = found.points if isinstance(found, Comparison) else ()
    apart = [f"{point.agent} is {' here and '.join(point.specs)} there" for point in points if len({*point.specs}) > 1]
    return [PERCENTILES_SAID, *apart, *_left_out(found.left_out)]


def _left_out(reasons: Mapping[str, str]) -> list[str]:
    listed: dict[str, list[str]] = {}
    for agent, reason in reasons.items():
        listed.setdefault(reason, []).append(short_name(agent))
    return [f"left out: {', '.join(agents)} ({reason})" for reason, agents in listed.items()]
