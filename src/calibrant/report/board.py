"""The board: a suite's records, aggregated with honest intervals, paired differences and tiers.

The numbers come from `stats`: means over environments with intervals stratified by problem spec, differences and
ratios to the baseline paired on shared environments, tiers corrected over all pairs. A failed record is counted and
never averaged. An agent that misses environments is averaged over those it has, and `n` says how many these are.

Where the floor has records, each divergence also gets the share of the gap between baseline and floor that an agent
closes, over the environments on which the floor converged.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import registry
from calibrant.stats.gap import gaps
from calibrant.stats.intervals import Interval, estimates
from calibrant.stats.paired import differences, ratios
from calibrant.stats.panel import COSTS as COSTS
from calibrant.stats.panel import Panel, make_panel
from calibrant.stats.tiers import Direction, tiers
from calibrant.suites.base import Suite
from calibrant.types import Array, CalibrantError, Record

Tiers = tuple[tuple[str, ...], ...]

_HIGHER: tuple[str, ...] = ("accuracy", "hit_rate", "confidence", "cr10")
_LOWER: tuple[str, ...] = (
    *("kl_tau1", "kl_tau10", "aggregate", "nll", "joint_nll_tau10", "marginal_tau10", "dependence_tau10"),
    *("ece", "ece_expected", "brier", "aurcc", "rpp", "risk", "augrc", "aurc", "regret", *COSTS),
)
FLOOR = "bayes"  # the agent whose loss bounds the gap from below unless the user says otherwise
CONVERGED = "converged"  # a score of 0 or 1 with which an agent marks what its inference did not finish
DIRECTIONS: dict[str, Direction] = {**dict.fromkeys(_HIGHER, "higher"), **dict.fromkeys(_LOWER, "lower")}


@dataclass(frozen=True)
class Row:
    """One agent, one metric, one slice: the mean over n environments and its 95 % interval (nan where there is none).

    `difference` (agent - baseline) and `ratio` (agent / baseline) are paired; None without a shared environment.
    `gap` is (baseline - agent) / (baseline - floor) of a divergence; None where there is no floor below the baseline.
    `mc_bias` and `mc_se` are what asking finitely many worlds did to the mean: its estimated bias and standard error.
    `tier` is the agent's place in the tiers of this metric in this slice, from 1; None without a value.
    """

    agent: str
    metric: str
    slice: Mapping[str, Any]
    mean: float
    low: float
    high: float
    n: int
    failed: int
    difference: Interval | None = None
    ratio: Interval | None = None
    mc_bias: float = 0.0
    mc_se: float = 0.0
    tier: int | None = None
    gap: Interval | None = None

    @property
    def verdict(self) -> str:
        """`better` or `worse` than the baseline where the paired difference shows it, else nothing."""
        if self.difference is None or not self.difference.excludes(0):
            return ""
        return "better" if (self.difference.mean < 0) == (better(self.metric) == "lower") else "worse"


@dataclass(frozen=True)
class Board:
    """Rows in reading order: slice by slice, the best agent first, metrics as the suite orders them."""

    suite: str
    baseline: str | None  # None when it has no record: then nothing is compared with it
    by: tuple[str, ...]
    rows: tuple[Row, ...]
    tiers: Mapping[str, Tiers]  # of each metric over all environments, whatever the slices
    floor: str | None = None  # None when it has no record: then no gap is measured
    headline: str = "kl_tau10"  # the loss that charts rank agents by
    others: tuple[str, ...] = ()  # presets that have records too and stand alone

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.agent for row in self.rows))

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.metric for row in self.rows))

    @property
    def leading(self) -> str:
        """The metric that orders the agents: the aggregate where it is asked, else the first."""
        return _leading(self.metrics)

    def to_json(self) -> dict[str, Any]:
        """Plain dicts and lists that strict JSON can write: what is not a finite number is None."""
        return {
            "suite": self.suite,
            "baseline": self.baseline,
            "floor": self.floor,
            "by": list(self.by),
            "rows": [strict(dataclasses.asdict(row) | {"better": better(row.metric)}) for row in self.rows],
            "tiers": {metric: [list(tier) for tier in groups] for metric, groups in self.tiers.items()},
        }


def make_board(
    records: Iterable[Record],
    suite: Suite,
    *,
    baseline: str | None = None,
    by: tuple[str, ...] = (),
    metrics: tuple[str, ...] | None = None,
    floor: str | None = None,
) -> Board:
    """Aggregate the records that belong to the suite; others are passed over.

    `baseline` is the suite's own unless given; `by` names fields of the problem to slice by; `metrics` chooses columns;
    `floor` is `bayes` unless given.
    """
    owns = functools.cache(suite.owns)
    names = tuple(dict.fromkeys(metrics or suite.metrics))
    panel = make_panel((record for record in records if owns(record.cell.problem)), (*names, CONVERGED))
    if not panel.agents:
        raise CalibrantError(f"there are no records of suite '{suite.name}': `calibrant run {suite.name}` makes some")
    _check_metrics(names, {*suite.metrics, *DIRECTIONS, *panel.scored})
    reference = _find("baseline", baseline, suite.baseline, suite, panel.agents)
    bottom = _find("floor", floor, FLOOR, suite, panel.agents)

    whole = panel.clustered(suite.drawn)
    order = _best_first(whole, _leading(names))
    rows: list[Row] = []
    for where, marks in _slices(panel.problems, by):
        inside = panel.inside(marks).clustered(suite.drawn)
        table = {metric: _rows(inside, metric, where, reference, bottom) for metric in names}
        rows += [table[metric][agent] for agent in order for metric in names if agent in table[metric]]
    overall = {metric: _tiers(whole, metric) for metric in names}
    known, lowest = (None if place is None else panel.agents[place] for place in (reference, bottom))
    return Board(suite.name, known, tuple(by), tuple(rows), overall, lowest, suite.headlines[0][0])


def better(metric: str) -> Direction:
    """Which way a metric improves; a plugin's metric says it itself, and an unknown one is taken for a loss.

    >>> better("accuracy"), better("kl_tau10_dyadic")
    ('higher', 'lower')
    """
    family = re.sub(r"_(dyadic|kappa\d+)$", "", metric.removeprefix("curve_"))
    if family not in DIRECTIONS and metric in registry.table("metrics"):
        direction: Direction = registry.load("metrics", metric).better
        return direction
    return DIRECTIONS.get(family, "lower")


# --- what is asked of the board -------------------------------------------------------------------


def _leading(metrics: Sequence[str]) -> str:
    return "aggregate" if "aggregate" in metrics else metrics[0]


def _check_metrics(names: Sequence[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise CalibrantError(f"no record has a metric '{name}'{registry.nearest(name, sorted(known))}")


def _find(role: str, wanted: str | None, usual: str, suite: Suite, agents: Sequence[str]) -> int | None:
    """The row of the baseline or the floor. One that the user names must be there; the usual may have no record yet."""
    if wanted is None:
        return agents.index(usual) if usual in agents else None
    written = wanted
    if wanted not in agents:
        with contextlib.suppress(CalibrantError):
            written = registry.canonical("agents", wanted)
    if written not in agents:
        near = registry.nearest(wanted, agents)
        raise CalibrantError(f"the {role} '{wanted}' has no record in suite '{suite.name}'{near}")
    return agents.index(written)


def _slices(problems: Sequence[str], by: Sequence[str]) -> list[tuple[dict[str, Any], Array]]:
    """Each combination of the named fields' values, ascending, with the marks [environments] of what lies inside it."""
    if not by:
        return [({}, np.ones(len(problems), bool))]
    built = {problem: registry.resolve("problems", problem) for problem in dict.fromkeys(problems)}
    known = dict.fromkeys(field.name for problem in built.values() for field in dataclasses.fields(problem))
    for name in by:
        if name not in known:
            near = registry.nearest(name, known)
            raise CalibrantError(f"problems have no field '{name}' to slice by{near}; they have {', '.join(known)}")
    values = {spec: tuple(_word(getattr(problem, name, None)) for name in by) for spec, problem in built.items()}
    found = sorted(set(values.values()), key=lambda value: [(v is not None, isinstance(v, str), v) for v in value])
    place = {value: index for index, value in enumerate(found)}
    codes = np.array([place[values[problem]] for problem in problems])
    return [(dict(zip(by, value, strict=True)), codes == index) for index, value in enumerate(found)]


def _word(value: Any) -> Any:
    """A field's value as a slice shows it: numbers and words as they are, the rest as it stands in a spec."""
    return value if value is None or isinstance(value, bool | int | float | str) else registry.show(value)


# --- from tables to rows --------------------------------------------------------------------------


def _rows(
    panel: Panel, metric: str, where: Mapping[str, Any], baseline: int | None, floor: int | None
) -> dict[int, Row]:
    """The rows of one metric in one slice, for every agent that has a record there."""
    column = panel.columns[metric]
    n = np.maximum((~np.isnan(column.values)).sum(1), 1)
    bias = np.nansum(column.mc_bias, axis=1) / n
    error = np.sqrt(np.nansum(column.mc_se**2, axis=1)) / n
    means = estimates(column.values, panel.strata).intervals()
    distances: list[Interval] | None = None
    quotients: list[Interval] | None = None
    shares: list[Interval] | None = None
    if baseline is not None:
        distances = differences(column.values, column.values[baseline], panel.strata).intervals()
        quotients = ratios(column.values, column.values[baseline], panel.strata)
        if floor is not None and metric.startswith("kl_"):
            bottom = np.where(_finished(panel, floor), column.values[floor], np.nan)
            shares = gaps(column.values, column.values[baseline], bottom, panel.strata)
    places = {agent: place for place, tier in enumerate(_tiers(panel, metric), 1) for agent in tier}
    return {
        index: Row(
            agent=panel.agents[index],
            metric=metric,
            slice=where,
            **dataclasses.asdict(means[index]),
            failed=int(column.failed[index].sum()),
            difference=_shared(distances, index),
            ratio=_shared(quotients, index),
            mc_bias=float(bias[index]),
            mc_se=float(error[index]),
            tier=places.get(panel.agents[index]),
            gap=shares[index] if shares and math.isfinite(shares[index].mean) else None,
        )
        for index in np.flatnonzero(panel.seen.any(1)).tolist()
    }


def _tiers(panel: Panel, metric: str) -> Tiers:
    return tiers(panel.agents, panel.columns[metric].values, panel.strata, better(metric))


def _best_first(panel: Panel, metric: str) -> list[int]:
    """Agents by their mean over the environments they have; those without any come last."""
    mean = estimates(panel.columns[metric].values, panel.strata).mean
    order: list[int] = np.argsort(mean if better(metric) == "lower" else -mean, kind="stable").tolist()
    return order


def _finished(panel: Panel, agent: int) -> Array:
    """[environments] where the agent's inference converged; everywhere for an agent that does not say."""
    said = panel.columns[CONVERGED].values[agent]
    return (said == 1) | np.isnan(said).all()


def _shared(intervals: list[Interval] | None, index: int) -> Interval | None:
    return intervals[index] if intervals and intervals[index].n else None


def strict(value: Any) -> Any:
    """As strict JSON can write it: what is not a finite number is None."""
    if isinstance(value, Mapping):
        return {key: strict(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [strict(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
