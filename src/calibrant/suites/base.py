"""A suite: problems that belong together, presets, and the metrics asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from calibrant import registry
from calibrant.types import CalibrantError

JOINT_AND_SINGLE = (("kl_tau10", "joint predictions"), ("kl_tau1", "single predictions"))

# (agent, metric, the values of the suite's axes) -> what theory expects of the score, None where it says nothing
Expected: TypeAlias = Callable[[str, str, Mapping[str, Any]], float | None]


@dataclass(frozen=True)
class Timed:
    """A score whose items are its course: what time is counted in, and what the lines of its charts are."""

    metric: str
    axis: str  # steps, labels
    lines: str = "agent"  # or a field of the problem: then every agent has a panel
    running: bool = False  # shown as the mean since the beginning


@dataclass(frozen=True)
class Preset:
    """A size of a suite: canonical problem specs, default agents, and how many seeds of each problem."""

    problems: tuple[str, ...]
    agents: tuple[str, ...]
    seeds: int
    alone: bool = False  # shown by itself: shorter or other games, never averaged with the other presets'


@dataclass(frozen=True)
class Foretold:
    """Scores of other suites that a suite's own are held against, at each value of one of its fields."""

    by: tuple[str, ...]
    at: str


@dataclass(frozen=True)
class Suite:
    """A named set of problems. A record belongs to the suite when its problem stands in any preset."""

    name: str
    title: str
    presets: Mapping[str, Preset]
    metrics: tuple[str, ...]  # the board's columns, in order
    baseline: str  # the agent that others are compared with unless the user says otherwise
    axes: tuple[str, ...]  # the spec fields that vary: what `--by` and `--where` take
    compared: tuple[str, ...] = ()  # axes between whose values agents' scores are correlated, the others at default
    met_by: tuple[str, ...] = ()  # axes that say how an environment is met, not which: it counts once, as a mean
    headlines: tuple[tuple[str, str], ...] = JOINT_AND_SINGLE  # losses, what each judges; the first ranks
    timed: tuple[Timed, ...] = ()  # what is drawn against time
    unit: str = "nats"  # of the headlines
    tuned_on: str | None = None  # the suite whose tuned hyperparameters apply; its own by default
    foretold: Foretold | None = None  # what reports correlate its first headline with, when shown beside other suites
    expected: Expected | None = None  # closed forms, drawn beside what is measured

    def owns(self, problem: str) -> bool:
        return any(problem in preset.problems for preset in self.presets.values())

    def drawn(self, problem: str) -> str:
        """What a problem's seeds draw: the problem without how its environments are met."""
        name, _, query = problem.partition("?")
        kept = [part for part in query.split("&") if part and part.partition("=")[0] not in self.met_by]
        return name + ("?" + "&".join(kept) if kept else "")

    @property
    def tables(self) -> dict[str, frozenset[str]]:
        """The problems that may stand in one table, by their presets: those that go together, then each one alone."""
        together = [name for name, preset in self.presets.items() if not preset.alone]
        groups = [together, *([name] for name, preset in self.presets.items() if preset.alone)]
        return {
            " and ".join(names): frozenset(problem for name in names for problem in self.presets[name].problems)
            for names in groups
        }

    def preset(self, name: str) -> Preset:
        if name not in self.presets:
            raise CalibrantError(
                f"suite '{self.name}' has no preset '{name}'{registry.nearest(name, self.presets)}; "
                f"it has {', '.join(self.presets)}"
            )
        return self.presets[name]
