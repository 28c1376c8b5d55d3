"""Whether agents that score well here score well there: two suites held against each other.

Osband et al. correlate agents' scores on the testbed with those on real data ("Evaluating High-Order Predictive
Distributions in Deep Learning", UAI 2022, Figure 7) and with the regret of bandits, dimension by dimension ("The Neural
Testbed", NeurIPS 2022, Figures 8, 9, 16 and 17). Who takes part, and on which environments, is decided in
`report.contenders`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from calibrant.report.board import better, strict
from calibrant.report.contenders import (
    choose,
    measured,
    methods,
    panel_of,
    scored,
    shared_methods,
    usual_metric,
    values_of,
)
from calibrant.report.style import base_name
from calibrant.stats.correlation import PERCENTILES, Correlation, Measured, correlate, correlate_blocks
from calibrant.stats.intervals import Interval, estimates
from calibrant.suites.base import Suite
from calibrant.types import Array, CalibrantError, Record

Match: TypeAlias = Literal["spec", "method"]
Records: TypeAlias = tuple[Suite, Sequence[Record]]


@dataclass(frozen=True)
class Side:
    """One suite, or the part of it where a field has one value, by one metric, and on how many environments."""

    suite: str
    metric: str
    environments: int
    part: str = ""  # as in dim=2


@dataclass(frozen=True)
class Point:
    """An agent's mean score on both sides, with 95 % intervals."""

    agent: str  # a spec, or a method
    a: Interval
    b: Interval
    specs: tuple[str, str]  # what stands for it on either side


@dataclass(frozen=True)
class Repeated:
    """An agent's mean scores in one block of seeds."""

    agent: str
    block: int
    a: float
    b: float


@dataclass(frozen=True)
class Comparison:
    """Two suites over the agents that both have; agents left out stand with the reason."""

    a: Side
    b: Side
    points: tuple[Point, ...]
    correlations: tuple[Correlation, ...]
    left_out: Mapping[str, str]
    repeated: tuple[Repeated, ...] = ()  # every agent in every block of seeds
    block_correlations: tuple[Correlation, ...] = ()  # within these

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = strict(dataclasses.asdict(self) | {"percentiles": list(PERCENTILES)})
        for name, side in (("a", self.a), ("b", self.b)):
            found[name]["better"] = better(side.metric)
        return found


@dataclass(frozen=True)
class Series:
    """Two suites compared at every value of a field of the second; values passed over stand with the reason."""

    field: str
    comparisons: Mapping[str, Comparison]
    passed_over: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        found = {value: one.to_json() for value, one in self.comparisons.items()}
        return {"field": self.field, "values": found, "passed_over": dict(self.passed_over)}


def compare(
    first: Records,
    second: Records,
    *,
    metrics: tuple[str | None, str | None] = (None, None),
    agents: Sequence[str] | None = None,
    match: Match = "spec",
    blocks: int = 0,
    part: str = "",
) -> Comparison:
    """Correlate agents' scores between two suites, which may be one suite by two metrics.

    With `blocks`, seeds are divided into so many blocks, and scores are correlated within these too. `part` says which
    part of the second suite its records are of.
    """
    names = [metric or usual_metric(suite) for metric, (suite, _) in zip(metrics, (first, second), strict=True)]
    panels = [
        panel_of(records, suite, name).clustered(suite.drawn)
        for (suite, records), name in zip((first, second), names, strict=True)
    ]
    titles = [f"suite '{suite.name}'" for suite, _ in (first, second)]
    specs = [{agent: agent for agent in panel.agents} for panel in panels]
    if match == "method":
        held = [scored(panel, name) for panel, name in zip(panels, names, strict=True)]
        asked = set.intersection(*({*map(base_name, one)} for one in held))
        asked &= {*map(base_name, agents)} if agents is not None else asked
        suites = (first[0], second[0])
        specs = [methods(*one, asked, agents) for one in zip(held, suites, titles, strict=True)]
        panels = [panel.of(known) for panel, known in zip(panels, specs, strict=True)]
        agents = None if agents is None else list(dict.fromkeys(map(base_name, agents)))
    chosen, left_out = choose([scored(*one) for one in zip(panels, names, strict=True)], titles, agents)
    a, b = (measured(panel, name, chosen, title) for panel, name, title in zip(panels, names, titles, strict=True))
    means, within_blocks = correlate_blocks(a, b, blocks) if blocks else (None, ())
    return Comparison(
        a=Side(first[0].name, names[0], len(a.environments)),
        b=Side(second[0].name, names[1], len(b.environments), part),
        points=tuple(
            Point(agent, here, there, (specs[0][agent], specs[1][agent]))
            for agent, here, there in zip(chosen, _intervals(a), _intervals(b), strict=True)
        ),
        correlations=correlate(a, b),
        left_out=left_out,
        repeated=() if means is None else _repeated(chosen, *means),
        block_correlations=within_blocks,
    )


def compare_series(
    first: Records,
    second: Records,
    field: str,
    *,
    metrics: tuple[str | None, str | None] = (None, None),
    agents: Sequence[str] | None = None,
    match: Match = "spec",
    blocks: int = 0,
) -> Series:
    """Correlate agents' scores on one suite with those at each value of a field of another, as in every dimension."""
    suite, records = second
    order, values = values_of(field, (record.cell.problem for record in records), suite)
    found: dict[str, Comparison] = {}
    passed_over: dict[str, str] = {}
    for value in order:
        here = (suite, [record for record in records if values.get(record.cell.problem) == value])
        part = f"{field}={value}"
        try:
            found[value] = compare(first, here, metrics=metrics, agents=agents, match=match, blocks=blocks, part=part)
        except CalibrantError as error:
            passed_over[value] = str(error)
    if not found:
        raise CalibrantError(next(iter(passed_over.values()), f"suite '{suite.name}' has no record with a {field}"))
    return Series(field, found, passed_over)


def held_together(sides: Sequence[Records]) -> list[Comparison | Series]:
    """Every two of these suites, method by method, as a report shows them; those that share too few are passed over.

    A suite that says what foretells its scores is held against each of these, value by value.
    """
    found: list[Comparison | Series] = []
    for pair in itertools.combinations(sides, 2):
        first, second = sorted(pair, key=lambda side: side[0].foretold is not None)
        agents, told = shared_methods(first, second), second[0].foretold
        with contextlib.suppress(CalibrantError):
            if told is None or first[0].foretold is not None:
                found.append(compare(first, second, agents=agents, match="method"))
                continue
            for metric in told.by:
                both = (metric, second[0].headlines[0][0])
                found.append(compare_series(first, second, told.at, metrics=both, agents=agents, match="method"))
    return found


def _repeated(agents: Sequence[str], a: Array, b: Array) -> tuple[Repeated, ...]:
    """From the means of both sides, [agents, blocks]."""
    return tuple(
        Repeated(agent, block, float(a[row, block]), float(b[row, block]))
        for row, agent in enumerate(agents)
        for block in range(a.shape[1])
    )


def _intervals(side: Measured) -> list[Interval]:
    return estimates(side.values, [problem for problem, _ in side.environments]).intervals()
