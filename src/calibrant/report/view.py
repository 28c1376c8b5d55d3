"""From a suite's page to what the template prints: every number a string, every agent with its colour and shape."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from calibrant import registry
from calibrant.report.board import COSTS, Board, Row, better
from calibrant.report.charts import (
    cost_charts,
    headline,
    is_relative,
    loss_charts,
    losses,
    numbers,
    parts_charts,
)
from calibrant.report.correlation_charts import heat_chart
from calibrant.report.curves import ALONG, curve_charts, runs_along
from calibrant.report.page import Published, SuitePage, sentences
from calibrant.report.pictures import Gallery
from calibrant.report.style import CONTROLS, SHAPES, base_name, colours, label, number, shapes, short_name
from calibrant.report.timelines import timeline_charts

DOTS = (("#0a2f57", "#fff"), ("#ffd9a8", "#3d1700"))  # fill and ring of training points of class 0 and of class 1
AXES = {"train": ("{} training point", "{} training points"), "temp": ("temperature {}",) * 2}
CROWDED = 50  # more training points than this would hide a small map
SHOWN_VALUES = 4

View = dict[str, Any]


@dataclass(frozen=True)
class Look:
    """An agent as the page shows it."""

    spec: str
    name: str
    colour: str
    shape: str
    control: bool


def page_views(pages: Sequence[SuitePage]) -> list[View]:
    """One view per page, with ids that are unique in the document."""
    slugs = [re.sub(r"[^a-z0-9]+", "-", page.suite.name.lower()).strip("-") or "suite" for page in pages]
    return [
        page_view(page, slug if slugs.count(slug) == 1 else f"{slug}-{place}")
        for place, (page, slug) in enumerate(zip(pages, slugs, strict=True), start=1)
    ]


def page_view(page: SuitePage, identity: str) -> View:
    board, provenance = page.overall, page.provenance
    looks = _looks({*board.agents, *(strip.agent for gallery in page.pictures for strip in gallery.strips)})
    drawn = {
        "losses": loss_charts(board),
        "curves": curve_charts(page.sliced, page.suite.expected) if page.sliced else [],
        "parts": parts_charts(board),
        "costs": cost_charts(board),
        "timelines": timeline_charts(page.timelines),
        "matrices": [heat_chart(matrix) for matrix in page.matrices],
    }
    every = [chart for group in drawn.values() for chart in group]
    view: View = drawn | {
        "id": identity,
        "title": page.suite.title,
        "summary": sentences(page),
        "tiles": _tiles(page),
        "baseline": board.baseline,
        "floor": board.floor if _gaps(page) else None,
        "relative": is_relative(board),
        "joint": any("tau10" in metric for metric in losses(board)),
        "losses_title": "Marginal and joint predictions" if page.suite.unit else "Decisions",
        "agents": [looks[agent] for agent in board.agents],
        "columns": _columns(page),
        "table": _table(page, looks),
        "failed": provenance.failed,
        "failures": provenance.failures,
        "has_charts": bool(every),
        "specs": {chart.name: chart.spec | {"description": chart.alt} for chart in every},
        "curve_metrics": _curve_metrics(page.sliced),
        "along": ALONG[(page.sliced and runs_along(page.sliced)) or "train"],
        "theory": page.suite.expected is not None,
        "galleries": _galleries(page, identity, looks),
        "published": _published(page.published, board) if page.published else None,
        "command": page.command,
        "provenance": [(name, _listed(values)) for name, values in provenance.facts.items()],
    }
    return view | {"contents": _contents(view)}


def _looks(agents: Iterable[str]) -> dict[str, Look]:
    names = sorted(agents)
    paint, form = colours(names), shapes(names)
    return {
        agent: Look(agent, short_name(agent), paint[agent], SHAPES[form[agent]], base_name(agent) in CONTROLS)
        for agent in names
    }


# --- the header and the table -------------------------------------------------------------------


def _tiles(page: SuitePage) -> list[tuple[str, str, bool]]:
    """Name, value, and whether it calls for attention."""
    facts = page.provenance
    tiles = [
        ("Environments", str(facts.environments), False),
        ("Agents", str(len(page.overall.agents)), False),
        ("Cells", str(facts.cells), False),
        ("Failed cells", str(facts.failed), facts.failed > 0),
    ]
    tiles += [("Newest record", _date(facts.newest), False)] if facts.newest else []
    tiles += [("Calibrant", ", ".join(facts.facts["calibrant"]), False)] if "calibrant" in facts.facts else []
    return tiles


def _metrics(page: SuitePage) -> list[str]:
    """The suite's metrics that hold any number."""
    return [metric for metric in page.suite.metrics if numbers(page.overall, metric)]


def _gaps(page: SuitePage) -> list[str]:
    """The suite's metrics of which it is known how much of the gap to the floor agents close."""
    known = {row.metric for row in page.overall.rows if row.gap}
    return [metric for metric in page.suite.metrics if metric in known]


def _columns(page: SuitePage) -> list[View]:
    """Metrics, then the gaps closed."""

    def column(metric: str, title: str, direction: str) -> View:
        return {"metric": metric, "label": title.replace(" τ", "\N{NO-BREAK SPACE}τ"), "better": direction}

    shown = [column(metric, label(metric), better(metric)) for metric in _metrics(page)]
    closed = [column(f"gap in {metric}", f"Gap closed, {label(metric)}", "higher") for metric in _gaps(page)]
    return shown + closed


def _table(page: SuitePage, looks: Mapping[str, Look]) -> list[View]:
    rows = {(row.agent, row.metric): row for row in page.overall.rows}
    columns = _metrics(page)
    decimals = {metric: _decimals(metric, [row.mean for row in numbers(page.overall, metric)]) for metric in columns}
    return [
        {
            "agent": looks[agent],
            "cells": [_cell(rows.get((agent, metric)), decimals[metric], page.overall.baseline) for metric in columns]
            + [_share(rows.get((agent, metric))) for metric in _gaps(page)],
            "n": max(row.n for row in page.overall.rows if row.agent == agent),
            "failed": max(row.failed for row in page.overall.rows if row.agent == agent),
        }
        for agent in page.overall.agents
    ]


def _cell(row: Row | None, decimals: int | None, baseline: str | None) -> View | None:
    if row is None or not math.isfinite(row.mean):
        return None
    limits = [_fixed(value, decimals) for value in (row.low, row.high) if math.isfinite(value)]
    error = f"{number(row.mc_bias, 2)} ± {number(row.mc_se, 2)}"
    return {
        "mean": _fixed(row.mean, decimals),
        "sort": repr(row.mean),
        "interval": f"[{', '.join(limits)}]" if len(limits) == 2 else "no interval",
        "tier": None if row.metric in COSTS else row.tier,
        "mark": None if row.metric in COSTS or row.agent == baseline else row.verdict or None,
        "bias": f"estimated Monte-Carlo bias {error}" if row.mc_bias or row.mc_se else "",
    }


def _share(row: Row | None) -> View | None:
    if row is None or row.gap is None:
        return None
    limits = [_fixed(value, 2) for value in (row.gap.low, row.gap.high) if math.isfinite(value)]
    return {
        "mean": _fixed(row.gap.mean, 2),
        "sort": repr(row.gap.mean),
        "interval": f"[{', '.join(limits)}]" if len(limits) == 2 else "no interval",
        "tier": None,
        "mark": None,
        "bias": f"over {row.gap.n} environments",
    }


def _decimals(metric: str, values: Sequence[float]) -> int | None:
    """One number of decimals per column, so that its digits line up; None for costs, which span magnitudes."""
    sizes = [abs(value) for value in values if value]
    if metric in COSTS:
        return None
    return min(4, max(0, 2 - math.floor(math.log10(statistics.median(sizes))))) if sizes else 2


def _fixed(value: float, decimals: int | None) -> str:
    if decimals is None:
        return "< 0.0001" if 0 < value < 1e-4 else number(value, 2)
    return f"{value:z,.{decimals}f}".replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", "−")


# --- figures ------------------------------------------------------------------------------------


def _curve_metrics(board: Board | None) -> list[tuple[str, str, bool]]:
    return [(metric, label(metric), metric == headline(board)) for metric in losses(board)] if board else []


def _galleries(page: SuitePage, identity: str, looks: Mapping[str, Look]) -> list[View]:
    """Ordered by setting; the one in the middle is shown first, being neither trivial nor hopeless."""
    settings = [(_setting(gallery.problem, page.suite.axes), gallery) for gallery in page.pictures]
    placed = sorted(settings, key=lambda pair: (pair[0], pair[1].problem))
    return [
        {
            "id": f"{identity}-gallery-{place}",
            "chosen": place == len(placed) // 2,
            "label": ", ".join(_axis_words(axis, value) for axis, value in zip(page.suite.axes, values, strict=True))
            or gallery.problem,
            "seed": gallery.seed,
            "truth": gallery.truth,
            "dots": [(path, *paint) for path, paint in zip(gallery.points, DOTS, strict=True)],
            "dot": _dot_size(gallery),
            "crowded": gallery.train > CROWDED,
            "worlds": max(len(strip.worlds) for strip in gallery.strips),
            "strips": [
                {"agent": looks[strip.agent], "mean": strip.mean, "worlds": strip.worlds} for strip in gallery.strips
            ],
        }
        for place, (values, gallery) in enumerate(placed)
    ]


def _setting(problem: str, axes: Sequence[str]) -> tuple[Any, ...]:
    built = registry.resolve("problems", problem)
    return tuple(getattr(built, axis) for axis in axes)


def _axis_words(axis: str, value: Any) -> str:
    one, many = AXES.get(axis, (f"{axis} {{}}",) * 2)
    return (one if value == 1 else many).format(registry.show(value))


def _dot_size(gallery: Gallery) -> float:
    """Smaller dots for more points, in hundredths of a map's side."""
    return round(min(4.5, max(1.2, 12 / math.sqrt(max(gallery.train, 1)))), 1)


# --- words and tables ---------------------------------------------------------------------------


def _published(table: Published, board: Board) -> View:
    ours = {(row.agent, row.metric): row for row in board.rows if math.isfinite(row.mean)}
    rows = [
        (
            short_name(agent),
            label(metric),
            number(value),
            number(found.mean),
            f"[{number(found.low)}, {number(found.high)}]",
        )
        for agent, values in table.values.items()
        for metric, value in values.items()
        if (found := ours.get((agent, metric)))
    ]
    return {"title": table.title, "source": table.source, "rows": rows}


def _contents(view: View) -> list[tuple[str, str]]:
    parts = [
        ("board", "Board", "table"),
        ("losses", "Losses", "losses"),
        ("timelines", "Through time", "timelines"),
        ("curves", view["along"].capitalize(), "curves"),
        ("parts", "Parts", "parts"),
        ("pictures", "Pictures", "galleries"),
        ("cost", "Cost", "costs"),
        ("matrices", "Generative models", "matrices"),
        ("published", "Published", "published"),
        ("provenance", "Provenance", "id"),
    ]
    return [(anchor, text) for anchor, text, needed in parts if view[needed]]


def _listed(values: Sequence[str]) -> str:
    return "; ".join(values) if len(values) <= SHOWN_VALUES else f"{len(values)} different values"


def _date(text: str) -> str:
    """A date as people write it; what is no ISO date stays as it is."""
    try:
        return f"{date.fromisoformat(text):%-d %B %Y}"
    except ValueError:
        return text
