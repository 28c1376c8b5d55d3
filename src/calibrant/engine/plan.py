"""The plan: problems x agents x seeds. Resuming is set difference between the plan's cells and the store's."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from calibrant import registry
from calibrant.suites.base import Suite
from calibrant.types import CalibrantError, Cell


def make_plan(
    suite: Suite,
    preset: str = "quick",
    agents: Iterable[str] = (),
    seeds: int | None = None,
    where: Mapping[str, object] | None = None,
) -> list[Cell]:
    """The cells of a suite's preset, agent by agent; `where` keeps the problems whose fields have these values."""
    chosen = suite.preset(preset)
    count = chosen.seeds if seeds is None else seeds
    if count < 1:
        raise CalibrantError(f"seeds={count} should be at least 1")
    problems = [problem for problem in chosen.problems if matches(suite, problem, where or {})]
    if not problems:
        raise CalibrantError(f"no problem of suite '{suite.name}' ({preset}) has {_show_where(where)}")
    names = dict.fromkeys(registry.canonical("agents", agent) for agent in (tuple(agents) or chosen.agents))
    return [make_cell(problem, agent, seed) for agent in names for problem in problems for seed in range(count)]


def make_cell(problem: str, agent: str, seed: int) -> Cell:
    """The id is a hash of everything that matters to a number: a changed default or metric is another cell."""
    return Cell(problem, agent, seed, _digest([*definition(problem, agent).values(), seed], length=32))


def definition(problem: str, agent: str) -> dict[str, str]:
    """What a problem, an agent and the metrics mean today, as digests: kept with every record."""
    return {"problem": defined("problems", problem), "agent": defined("agents", agent), "metrics": metrics_defined()}


@functools.cache
def defined(kind: str, spec: str) -> str:
    built = registry.resolve(kind, spec)
    return _digest(registry.identity(kind, spec) | {"version": getattr(built, "version", 1)})


@functools.cache
def metrics_defined() -> str:
    from calibrant.metrics import versions

    return _digest(versions())


def _digest(content: Any, length: int = 12) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def matches(suite: Suite, problem: str, where: Mapping[str, object]) -> bool:
    """Whether a problem's fields have these values; a value may list several, as `10|30`."""
    if not where:
        return True
    built = registry.resolve("problems", problem)
    for field, value in where.items():
        if field not in vars(built):
            raise CalibrantError(
                f"problems of suite '{suite.name}' have no '{field}'{registry.nearest(field, vars(built))}; "
                f"they differ in {', '.join(suite.axes)}"
            )
        if registry.show(getattr(built, field)) not in {_tidy(option) for option in str(value).split("|")}:
            return False
    return True


def _tidy(value: str) -> str:
    """0.10 and .1 name the same temperature."""
    try:
        return registry.show(float(value))
    except ValueError:
        return value


def _show_where(where: Mapping[str, object] | None) -> str:
    return ", ".join(f"{field}={value}" for field, value in (where or {}).items())
