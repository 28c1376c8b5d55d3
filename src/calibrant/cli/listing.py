"""What `calibrant list` shows: every name with its one line and its parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant import registry


@dataclass(frozen=True)
class Entry:
    name: str
    summary: str
    parameters: Mapping[str, str] = field(default_factory=dict)


def listing(kind: str) -> list[Entry]:
    if kind == "metrics":
        return _metrics()
    if kind == "papers":
        return _papers()
    if kind == "datasets":
        return _datasets()
    make = _suite if kind == "suites" else _described
    return [make(name, registry.load(kind, name)) for name in registry.table(kind)]


def _metrics() -> list[Entry]:
    from calibrant.metrics.catalogue import PLAYED, catalogue

    return [
        Entry(metric.name.format("tau10"), f"{metric.convention} ({metric.better} is better, version {metric.version})")
        for metric in (*catalogue(), *PLAYED)
    ]


def _papers() -> list[Entry]:
    from calibrant.papers.format import papers

    return [
        Entry(paper.name, f"{paper.title} ({paper.citation})", {name: one.title for name, one in paper.items.items()})
        for paper in papers().values()
    ]


def _datasets() -> list[Entry]:
    from calibrant.data.catalogue import CATALOGUE

    return [
        Entry(one.name, f"{one.title}: {one.classes} classes, {one.inputs} inputs, {one.train} + {one.test} rows")
        for one in CATALOGUE.values()
    ]


def _suite(name: str, suite: Any) -> Entry:
    presets = {
        preset: f"{len(one.problems)} settings x {one.seeds} seeds; {', '.join(one.agents)}"
        for preset, one in suite.presets.items()
    }
    return Entry(name, f"{suite.title}, by {', '.join(suite.axes)}", presets)


def _described(name: str, target: Any) -> Entry:
    summary = (target.__doc__ or "").strip().splitlines()[0]
    fields = dataclasses.fields(target) if dataclasses.is_dataclass(target) else ()
    return Entry(name, summary, {one.name: registry.show(one.default) for one in fields})
