"""A study: what is searched, by whom, on which tuning environments, and by which metric it is judged.

A study has no budget of its own: given a larger one, the same study goes on.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

from calibrant import registry
from calibrant.engine.plan import defined, make_cell, make_plan, metrics_defined
from calibrant.metrics import catalogue
from calibrant.stats.panel import COSTS
from calibrant.tune import TUNING_SEEDS
from calibrant.tune.samplers import check_name, check_sampler
from calibrant.tune.spaces import Choice, Range, grid_points, known_space, parse_space, print_space, spec_at
from calibrant.types import CalibrantError, Cell

KEPT = 3  # one in so many trials goes on to the next rung, which has so many times the seeds


@dataclass(frozen=True)
class Study:
    """All that decides the numbers of a study; `make_study` checks it."""

    suite: str
    agent: str  # canonical: what trial 0 is, and what the others differ from
    sampler: str
    space: tuple[str, ...]  # blocks of a grid, or one space
    metric: str = "aggregate"
    preset: str = "quick"
    where: Mapping[str, str] = field(default_factory=dict)
    seeds: int = 3  # tuning environments per setting
    halving: bool = True
    seed: int = 0  # of the sampler

    @cached_property
    def name(self) -> str:
        """Another definition of the agent, a problem or a metric makes another study."""
        meaning = [defined("agents", self.agent), metrics_defined(), *(defined("problems", p) for p in self.problems)]
        text = json.dumps([self.about, meaning], sort_keys=True)
        return f"{self.suite}/{self.agent}/{self.sampler}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def about(self) -> dict[str, Any]:
        """The settings as a store keeps them."""
        return asdict(self) | {"space": list(self.space), "where": dict(self.where)}

    @cached_property
    def problems(self) -> tuple[str, ...]:
        suite = registry.load("suites", self.suite)
        return tuple(cell.problem for cell in make_plan(suite, self.preset, [self.agent], 1, self.where))

    @cached_property
    def blocks(self) -> tuple[dict[str, Choice | Range], ...]:
        return tuple(parse_space(text, self.agent) for text in self.space)

    @cached_property
    def grid(self) -> tuple[str, ...]:
        """Every spec of a grid once, the agent as it is given first."""
        return tuple(dict.fromkeys([self.agent, *(spec_at(self.agent, point) for point in grid_points(self.blocks))]))

    @property
    def searched(self) -> tuple[str, ...]:
        """The names of the hyperparameters that vary."""
        return tuple(dict.fromkeys(name for block in self.blocks for name in block))

    @property
    def rungs(self) -> tuple[int, ...]:
        """Seeds per setting at each rung, ascending.

        >>> Study("testbed", "mlp", "grid", (), seeds=10).rungs, Study("testbed", "mlp", "grid", (), seeds=2).rungs
        ((1, 3, 10), (1, 2))
        """
        counts = [self.seeds]
        while self.halving and counts[0] > 1:
            counts.insert(0, max(1, counts[0] // KEPT))
        return tuple(counts)

    @property
    def minimise(self) -> bool:
        return direction(self.metric) == "lower"

    def cells(self, spec: str, seeds: int) -> list[Cell]:
        """A configuration on its tuning environments, seed by seed."""
        return [make_cell(problem, spec, TUNING_SEEDS + seed) for seed in range(seeds) for problem in self.problems]


def make_study(
    suite: str,
    agent: str,
    sampler: str = "grid",
    space: str = "",
    where: Mapping[str, str] | None = None,
    **settings: Any,
) -> Study:
    """A checked study; without a `space`, the one that is known of the agent."""
    check_name(sampler)
    canonical = registry.canonical("agents", agent)
    texts = (print_space(parse_space(space, canonical)),) if space else known_space(canonical, sampler)
    study = Study(suite, canonical, sampler, texts, where=dict(sorted((where or {}).items())), **settings)
    if study.seeds < 1:
        raise CalibrantError(f"seeds={study.seeds} should be at least 1")
    direction(study.metric)
    if not study.problems:  # asking refuses a suite, a preset or a filter that does not exist
        raise CalibrantError(f"suite '{suite}' has no problems")
    if sampler == "grid":
        grid_points(study.blocks)
    else:
        check_sampler(sampler, study.blocks[0])
    return study


def read_study(about: Mapping[str, Any]) -> Study:
    """The study of settings that a store kept."""
    return Study(**{**about, "space": tuple(about["space"])})


def direction(metric: str) -> Literal["lower", "higher"]:
    """Which way a metric improves.

    >>> direction("kl_tau10_dyadic"), direction("accuracy")
    ('lower', 'higher')
    """
    if metric in COSTS:
        return "lower"
    for one in catalogue():
        if re.fullmatch(re.escape(one.name).replace(r"\{\}", r"tau\d+(_\w+)?"), metric):
            return one.better
    known = [one.name.format("tau10") for one in catalogue()]
    raise CalibrantError(
        f"unknown metric '{metric}'{registry.nearest(metric, known)}; `calibrant list metrics` shows all"
    )
