"""Whether agents that score well here score well there: two suites, or the laws within one, held against each other.

Osband et al. correlate agents' scores between generative models ("The Neural Testbed", NeurIPS 2022, Figures 10 and 11)
and between the testbed and real data ("Evaluating High-Order Predictive Distributions in Deep Learning", UAI 2022,
Figure 7). An agent is one spec, the same on both sides, or one method, with parameters that suit each side. On a side
its score is the mean over the environments that all compared agents have answered there, so that nobody is ahead for
having missed the hard ones. Control agents lie far from all others and would make any correlation look high: they take
part only when they are named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant import registry
from calibrant.report.board import better, strict
from calibrant.report.style import CONTROLS, base_name
from calibrant.stats.correlation import (
    FEWEST,
    PERCENTILES,
    Correlation,
    Kind,
    Measured,
    correlate,
    correlate_blocks,
    correlation_matrix,
)
from calibrant.stats.intervals import Interval, estimates
from calibrant.stats.panel import Panel, make_panel
from calibrant.suites.base import Suite
from calibrant.types import Array, CalibrantError, Record

Match: TypeAlias = Literal["spec", "method"]
MATRIX_METRICS = ("kl_tau1", "kl_tau10", "regret")  # Figures 10 and 11


@dataclass(frozen=True)
class Side:
    """One suite by one metric, and on how many environments."""

    suite: str
    metric: str
    environments: int


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
    block_correlations: tuple[Correlation, ...] = ()  # over these

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = strict(dataclasses.asdict(self) | {"percentiles": list(PERCENTILES)})
        for name, side in (("a", self.a), ("b", self.b)):
            found[name]["better"] = better(side.metric)
        return found


@dataclass(frozen=True)
class Matrix:
    """The values of one field of a suite's problems against each other, by one metric."""

    suite: str
    metric: str
    field: str
    kind: Kind
    values: tuple[str, ...]
    environments: tuple[int, ...]  # of each value
    agents: tuple[str, ...]
    cells: tuple[tuple[Correlation, ...], ...]  # [values, values]
    left_out: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = strict(dataclasses.asdict(self) | {"percentiles": list(PERCENTILES)})
        return found


def compare(
    first: tuple[Suite, Sequence[Record]],
    second: tuple[Suite, Sequence[Record]],
    *,
    metrics: tuple[str | None, str | None] = (None, None),
    agents: Sequence[str] | None = None,
    match: Match = "spec",
    blocks: int = 0,
) -> Comparison:
    """Correlate agents' scores between two suites, which may be one suite by two metrics.

    With `blocks`, seeds are divided into so many blocks, and all pairs of agent and block are correlated too.
    """
    names = [metric or usual_metric(suite) for metric, (suite, _) in zip(metrics, (first, second), strict=True)]
    panels = [_panel(records, suite, name) for (suite, records), name in zip((first, second), names, strict=True)]
    titles = [f"suite '{suite.name}'" for suite, _ in (first, second)]
    specs = [{agent: agent for agent in panel.agents} for panel in panels]
    if match == "method":
        scored = [_scored(panel, name) for panel, name in zip(panels, names, strict=True)]
        specs = [_methods(one, title, agents) for one, title in zip(scored, titles, strict=True)]
        panels = [panel.of(known) for panel, known in zip(panels, specs, strict=True)]
        agents = None if agents is None else list(dict.fromkeys(map(base_name, agents)))
    chosen, left_out = _choose([_scored(*one) for one in zip(panels, names, strict=True)], titles, agents)
    a, b = (_measured(panel, name, chosen, title) for panel, name, title in zip(panels, names, titles, strict=True))
    means, over_blocks = correlate_blocks(a, b, blocks) if blocks else (None, ())
    return Comparison(
        a=Side(first[0].name, names[0], len(a.environments)),
        b=Side(second[0].name, names[1], len(b.environments)),
        points=tuple(
            Point(agent, here, there, (specs[0][agent], specs[1][agent]))
            for agent, here, there in zip(chosen, _intervals(a), _intervals(b), strict=True)
        ),
        correlations=correlate(a, b),
        left_out=left_out,
        repeated=() if means is None else _repeated(chosen, *means),
        block_correlations=over_blocks,
    )


def _repeated(agents: Sequence[str], a: Array, b: Array) -> tuple[Repeated, ...]:
    """From the means of both sides, [agents, blocks]."""
    return tuple(
        Repeated(agent, block, float(a[row, block]), float(b[row, block]))
        for row, agent in enumerate(agents)
        for block in range(a.shape[1])
    )


def compare_values(
    records: Sequence[Record],
    suite: Suite,
    field: str,
    *,
    metric: str | None = None,
    agents: Sequence[str] | None = None,
    kind: Kind = "pearson",
) -> Matrix:
    """Correlate agents' scores between the values of a field, where the suite's other compared fields are at default.

    So the activations of the suite `robustness` are compared at the default width, and the widths at the default
    activation, as in the paper.
    """
    name = metric or usual_metric(suite)
    panel = _panel(records, suite, name)
    values, parts = _split(panel, suite, field)
    titles = [f"{field}={value}" for value in values]
    chosen, left_out = _choose([_scored(part, name) for part in parts], titles, agents)
    sides = [_measured(part, name, chosen, title) for part, title in zip(parts, titles, strict=True)]
    return Matrix(
        suite=suite.name,
        metric=name,
        field=field,
        kind=kind,
        values=values,
        environments=tuple(len(side.environments) for side in sides),
        agents=chosen,
        cells=tuple(map(tuple, correlation_matrix(sides, kind))),
        left_out=left_out,
    )


def matrices(records: Sequence[Record], suite: Suite) -> list[Matrix]:
    """Every matrix that a report shows of a suite; what has too few agents or values yet is left out."""
    found = []
    for field in suite.compared:
        for metric in (metric for metric in MATRIX_METRICS if metric in suite.metrics):
            try:
                found.append(compare_values(records, suite, field, metric=metric))
            except CalibrantError:
                continue
    return found


def shared_methods(first: tuple[Suite, Sequence[Record]], second: tuple[Suite, Sequence[Record]]) -> list[str]:
    """One spec of every method that both suites have records of, controls aside: the one that stands in a preset."""
    chosen = [_usual_specs(*side) for side in (first, second)]
    methods = sorted(set(chosen[0]) & set(chosen[1]) - set(CONTROLS))
    return list(dict.fromkeys(side[method] for method in methods for side in chosen))


def _usual_specs(suite: Suite, records: Sequence[Record]) -> dict[str, str]:
    listed = [agent for preset in suite.presets.values() for agent in preset.agents]
    here = sorted({record.cell.agent for record in records if not record.failed}, reverse=True)
    order = sorted(here, key=lambda agent: agent in listed)  # later ones win
    return {base_name(agent): agent for agent in order}


def usual_metric(suite: Suite) -> str:
    """What suites are compared by unless the user says otherwise: dyadic joint predictions where they are asked."""
    order = [metric for part in ("tau10_dyadic", "tau10", "") for metric in suite.metrics if part in metric]
    return order[0]


# --- which agents, which environments -----------------------------------------------------------------


def _panel(records: Sequence[Record], suite: Suite, metric: str) -> Panel:
    panel = make_panel([record for record in records if suite.owns(record.cell.problem)], (metric,))
    if not panel.agents:
        raise CalibrantError(f"there are no records of suite '{suite.name}': `calibrant run {suite.name}` makes some")
    if np.isnan(panel.columns[metric].values).all():
        near = registry.nearest(metric, sorted({*panel.scored, *suite.metrics} - {metric}))
        raise CalibrantError(f"no record of suite '{suite.name}' has a metric '{metric}'{near}")
    return panel


def _scored(panel: Panel, metric: str) -> set[str]:
    known = ~np.isnan(panel.columns[metric].values)
    return {agent for agent, any_ in zip(panel.agents, known.any(1).tolist(), strict=True) if any_}


def _methods(scored: set[str], title: str, wanted: Sequence[str] | None) -> dict[str, str]:
    """The one spec of every method; of several, the one that is named by its spec."""
    named = set() if wanted is None else {registry.canonical("agents", agent) for agent in wanted}
    found: dict[str, str] = {}
    for method in sorted(set(map(base_name, scored))):
        specs = sorted(spec for spec in scored if base_name(spec) == method)
        exact = [spec for spec in specs if spec in named] or specs
        if len(exact) > 1 and (wanted is None or method in map(base_name, wanted)):
            raise CalibrantError(f"{title} has several specs of '{method}', {', '.join(exact)}: name one by --agents")
        found[method] = exact[0]
    return found


def _choose(
    scored: Sequence[set[str]], titles: Sequence[str], wanted: Sequence[str] | None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The agents that every side has a score of, and why others are left out."""
    every = sorted(set.union(*scored))
    left_out: dict[str, str] = {}
    if wanted is not None:
        names = list(
            dict.fromkeys(agent if agent in every else registry.canonical("agents", agent) for agent in wanted)
        )
        for name in names:
            for title, side in zip(titles, scored, strict=True):
                if name not in side:
                    raise CalibrantError(
                        f"agent '{name}' has no score in {title}{registry.nearest(name, sorted(side))}"
                    )
        chosen = sorted(names)
    else:
        for agent in every:
            missing = [title for title, side in zip(titles, scored, strict=True) if agent not in side]
            if missing:
                left_out[agent] = f"no score in {missing[0]}"
            elif base_name(agent) in CONTROLS:
                left_out[agent] = "a control agent"
        chosen = [agent for agent in every if agent not in left_out]
    if len(chosen) < FEWEST:
        shared = ", ".join(chosen) or "none"
        raise CalibrantError(
            f"a correlation needs at least {FEWEST} agents scored on every side, controls aside; "
            f"{' and '.join(titles) if len(titles) == 2 else f'the {len(titles)} values'} share {shared}"
        )
    return tuple(chosen), left_out


def _measured(panel: Panel, metric: str, agents: Sequence[str], title: str) -> Measured:
    values = panel.columns[metric].values[[panel.agents.index(agent) for agent in agents]]
    shared = ~np.isnan(values).any(axis=0)
    if not shared.any():
        raise CalibrantError(f"no environment of {title} was answered by all of {', '.join(agents)}")
    environments = [
        one for one, kept in zip(zip(panel.problems, panel.seeds, strict=True), shared, strict=True) if kept
    ]
    return Measured(values[:, shared], tuple(environments))


def _intervals(side: Measured) -> list[Interval]:
    return estimates(side.values, [problem for problem, _ in side.environments]).intervals()


def _split(panel: Panel, suite: Suite, field: str) -> tuple[tuple[str, ...], list[Panel]]:
    """The values of a field, numbers ascending and words as the suite lists them, and each one's part of the panel."""
    known = {problem: vars(registry.resolve("problems", problem)) for problem in dict.fromkeys(panel.problems)}
    if not any(field in values for values in known.values()):
        near, axes = registry.nearest(field, suite.axes), ", ".join(suite.axes)
        raise CalibrantError(f"problems of suite '{suite.name}' have no field '{field}'{near}; they differ in {axes}")
    fixed = [axis for axis in suite.compared if axis != field and field in suite.compared]
    inside = {
        problem: registry.show(values[field])
        for problem, values in known.items()
        if field in values and all(values.get(axis) == _default(problem, axis) for axis in fixed)
    }
    found = {values[field] for problem, values in known.items() if problem in inside}
    listed = [problem for preset in suite.presets.values() for problem in preset.problems]
    as_listed = dict.fromkeys(inside[problem] for problem in listed if problem in inside)
    words = any(isinstance(value, str) for value in found)
    order = tuple(as_listed) if words else tuple(map(registry.show, sorted(found)))
    if len(order) < 2:
        raise CalibrantError(f"records of suite '{suite.name}' have only one {field}: there is nothing to correlate")
    marks = [np.array([inside.get(problem) == value for problem in panel.problems], bool) for value in order]
    return order, [panel.inside(mark) for mark in marks]


def _default(problem: str, field: str) -> Any:
    """What a field is when a spec does not say it."""
    return vars(registry.resolve("problems", problem.partition("?")[0])).get(field)
