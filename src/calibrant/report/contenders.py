"""Who takes part when scores are correlated, by which metric, and on which environments.

An agent is one spec, the same on both sides, or one method, with parameters that suit each side. On a side its score is
the mean over the environments that all compared agents have answered there, so that nobody is ahead for having missed
the hard ones. Control agents lie far from all others and would make any correlation look high: they take part only when
they are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calibrant import registry
from calibrant.report.style import CONTROLS, base_name
from calibrant.stats.correlation import FEWEST, Measured
from calibrant.stats.panel import Panel, make_panel
from calibrant.suites.base import Suite
from calibrant.types import CalibrantError, Record


def shared_methods(first: tuple[Suite, Sequence[Record]], second: tuple[Suite, Sequence[Record]]) -> list[str]:
    """One spec of every method that both suites have records of, controls aside: the one that stands in a preset."""
    chosen = [_usual_specs(*side) for side in (first, second)]
    methods = sorted(set(chosen[0]) & set(chosen[1]) - set(CONTROLS))
    return list(dict.fromkeys(side[method] for method in methods for side in chosen))


def _usual_specs(suite: Suite, records: Sequence[Record]) -> dict[str, str]:
    listed = _listed(suite)
    here = sorted({record.cell.agent for record in records if not record.failed}, reverse=True)
    order = sorted(here, key=lambda agent: agent in listed)  # later ones win
    return {base_name(agent): agent for agent in order}


def _listed(suite: Suite) -> set[str]:
    return {agent for preset in suite.presets.values() for agent in preset.agents}


def usual_metric(suite: Suite) -> str:
    """What suites are compared by unless the user says otherwise: dyadic joint predictions where they are asked."""
    order = [metric for part in ("tau10_dyadic", "tau10", "") for metric in suite.metrics if part in metric]
    return order[0]


def panel_of(records: Sequence[Record], suite: Suite, metric: str) -> Panel:
    panel = make_panel([record for record in records if suite.owns(record.cell.problem)], (metric,))
    if not panel.agents:
        raise CalibrantError(f"there are no records of suite '{suite.name}': `calibrant run {suite.name}` makes some")
    if np.isnan(panel.columns[metric].values).all():
        near = registry.nearest(metric, sorted({*panel.scored, *suite.metrics} - {metric}))
        raise CalibrantError(f"no record of suite '{suite.name}' has a metric '{metric}'{near}")
    return panel


def scored(panel: Panel, metric: str) -> set[str]:
    known = ~np.isnan(panel.columns[metric].values)
    return {agent for agent, any_ in zip(panel.agents, known.any(1).tolist(), strict=True) if any_}


def methods(
    scored: set[str], suite: Suite, title: str, asked: set[str], wanted: Sequence[str] | None
) -> dict[str, str]:
    """The one spec of every method: of several the one that is named, or else stands in a preset, or has only defaults.

    It is an error where a method that is asked for has several, none of which is so marked out.
    """
    named = set() if wanted is None else {registry.canonical("agents", agent) for agent in wanted}
    listed = _listed(suite)
    found: dict[str, str] = {}
    for method in sorted(set(map(base_name, scored))):
        specs = sorted(spec for spec in scored if base_name(spec) == method)
        usual = sorted((spec for spec in specs if spec in listed), key=len)[:1] or [method] * (method in specs)
        exact = [spec for spec in specs if spec in named] or usual or specs
        if len(exact) > 1 and method in asked:
            raise CalibrantError(f"{title} has several specs of '{method}', {', '.join(exact)}: name one by --agents")
        found[method] = exact[0]
    return found


def choose(
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


def measured(panel: Panel, metric: str, agents: Sequence[str], title: str) -> Measured:
    values = panel.columns[metric].values[[panel.agents.index(agent) for agent in agents]]
    shared = ~np.isnan(values).any(axis=0)
    if not shared.any():
        raise CalibrantError(f"no environment of {title} was answered by all of {', '.join(agents)}")
    environments = [
        one for one, kept in zip(zip(panel.problems, panel.seeds, strict=True), shared, strict=True) if kept
    ]
    return Measured(values[:, shared], tuple(environments))


def values_of(field: str, problems: Iterable[str], suite: Suite) -> tuple[tuple[str, ...], dict[str, str]]:
    """The values of a field, numbers ascending and words as the suite lists them, and the value of every problem.

    Problems where another of the suite's compared fields is not at its default have none.
    """
    known = {problem: vars(registry.resolve("problems", problem)) for problem in dict.fromkeys(problems)}
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
    return tuple(as_listed) if words else tuple(map(registry.show, sorted(found))), inside


def _default(problem: str, field: str) -> Any:
    """What a field is when a spec does not say it."""
    return vars(registry.resolve("problems", problem.partition("?")[0])).get(field)
