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
    where: Mapping[str, str] | None = None,
) -> list[Cell]:
    """The cells of a suite's preset, agent by agent; `where` keeps the problems whose fields have these values."""
    chosen = suite.preset(preset)
    count = chosen.seeds if seeds is None else seeds
    if count < 1:
        raise CalibrantError(f"seeds={count} should be at least 1")
    problems = [problem for problem in chosen.problems if _matches(suite, problem, where or {})]
    if not problems:
        raise CalibrantError(f"no problem of suite '{suite.name}' ({preset}) has {_show_where(where)}")
    names = dict.fromkeys(registry.canonical("agents", agent) for agent in (tuple(agents) or chosen.agents))
    return [make_cell(problem, agent, seed) for agent in names for problem in problems for seed in range(count)]


def make_cell(problem: str, agent: str, seed: int) -> Cell:
    """The id is a hash of everything that matters to a number: a changed default or metric is another cell."""
    content = {
        "problem": _identity("problems", problem),
        "agent": _identity("agents", agent),
        "seed": seed,
        "metrics": _metric_versions(),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return Cell(problem, agent, seed, hashlib.sha256(text.encode()).hexdigest()[:32])


@functools.cache
def _identity(kind: str, spec: str) -> dict[str, Any]:
    built = registry.resolve(kind, spec)
    return registry.identity(kind, spec) | {"version": getattr(built, "version", 1)}


@functools.cache
def _metric_versions() -> dict[str, int]:
    from calibrant.metrics import versions

    return versions()


def _matches(suite: Suite, problem: str, where: Mapping[str, str]) -> bool:
    built = registry.resolve("problems", problem)
    for field, value in where.items():
        if not hasattr(built, field):
            raise CalibrantError(
                f"problems of suite '{suite.name}' have no '{field}'{registry.nearest(field, vars(built))}; "
                f"they differ in {', '.join(suite.axes)}"
            )
        if registry.show(getattr(built, field)) not in {_tidy(option) for option in value.split("|")}:
            return False
    return True


def _tidy(value: str) -> str:
    """0.10 and .1 name the same temperature."""
    try:
        return registry.show(float(value))
    except ValueError:
        return value


def _show_where(where: Mapping[str, str] | None) -> str:
    return ", ".join(f"{field}={value}" for field, value in (where or {}).items())
