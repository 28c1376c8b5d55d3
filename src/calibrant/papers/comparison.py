"""Claims held against records: tables of scores by environment become the rows of a receipt.

Means are over environments with intervals stratified by problem, as on the board. Whatever compares two agents (ratios,
trends) is paired on the environments that both have.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from calibrant.papers.format import Item, Paper, Trend, Values
from calibrant.papers.receipts import Estimate, Expected, Receipt, Row, judge
from calibrant.stats.intervals import Interval, estimates
from calibrant.stats.paired import ratio
from calibrant.stats.panel import Panel, make_panel
from calibrant.types import Array, Cost, Record


@dataclass(frozen=True)
class Asked:
    """What was asked of an item: who stands for its agents, on which problems, with how many seeds."""

    cast: Mapping[str, str]  # agents of the item, by our canonical spec of each; those not asked for are left out
    problems: tuple[tuple[str, ...], ...]  # of each claim
    seeds: int
    cells: int
    as_published: bool = True  # all agents, all seeds, and the hyperparameters meant
    absent: Mapping[str, str] = field(default_factory=dict)  # agents that cannot be run here, and why
    agents: tuple[str, ...] = ()  # as they were asked for; () means all
    tuned: bool = False  # some by tuned parameters


def make_receipt(paper: Paper, name: str, asked: Asked, records: Iterable[Record]) -> Receipt:
    """Hold an item's claims against the records of the cells that were asked for, with no others among them."""
    item, kept = paper.items[name], list(records)
    bench = _Bench(item, asked, make_panel(kept, _metrics(item)), _spent(kept))
    rows: list[Row] = []
    for claim, problems in zip(item.claims, asked.problems, strict=True):
        place = bench.inside(problems)
        rows += _value_rows(place, claim) if isinstance(claim, Values) else _trend_rows(place, claim)
    missing = asked.cells - len(kept)
    return Receipt(
        paper=paper,
        item=name,
        rows=tuple(rows),
        seeds=asked.seeds,
        cells=asked.cells,
        missing=missing,
        failed=sum(record.failed for record in kept),
        cpu_seconds=sum(bench.spent.values()),
        absent=asked.absent,
        whole=asked.as_published and not missing and not asked.absent,
        agents=asked.agents,
        tuned=asked.tuned,
    )


# --- what the records say ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bench:
    """Records as tables, cut to the problems of a claim."""

    item: Item
    asked: Asked
    panel: Panel
    spent: Mapping[str, float]  # CPU seconds by spec
    of: int = 0  # environments that the paper has there

    def inside(self, problems: Sequence[str]) -> _Bench:
        marks = np.array([problem in set(problems) for problem in self.panel.problems], bool)
        return dataclasses.replace(self, panel=self.panel.inside(marks), of=len(problems) * self.item.plan.seeds)

    def wanted(self, *agents: str) -> bool:
        return all(agent in self.asked.cast or agent in self.asked.absent for agent in agents)

    def spec(self, agent: str) -> str:
        return self.asked.cast.get(agent, agent)

    def values(self, agent: str, metric: str) -> Array:
        """[environments] nan where there is none."""
        return self._of(agent, self.panel.columns[metric].values)

    def mc_bias(self, agent: str, metric: str) -> float:
        known = self._of(agent, self.panel.columns[metric].mc_bias)
        return 0.0 if np.isnan(known).all() else float(np.nanmean(known))

    def estimate(self, values: Array) -> Estimate | None:
        found = estimates(values[None], self.panel.strata)
        return _estimate(found.intervals()[0], float(found.se[0]))

    def behind(self, *agents: str) -> dict[str, Any]:
        """What a row says of the cells behind it."""
        specs = [self.spec(agent) for agent in agents]
        rows = [self.panel.agents.index(spec) for spec in specs if spec in self.panel.agents]
        column = next(iter(self.panel.columns.values()))
        seconds = sum(self.spent.get(spec, 0.0) for spec in specs)
        return {"of": self.of, "failed": int(column.failed[rows].sum()), "cpu_seconds": seconds}

    def _of(self, agent: str, table: Array) -> Array:
        if self.spec(agent) not in self.panel.agents:
            return np.full(len(self.panel.problems), np.nan)
        return table[self.panel.agents.index(self.spec(agent))]


# --- claims become rows -----------------------------------------------------------------------------


def _value_rows(bench: _Bench, claim: Values) -> list[Row]:
    """Every published mean, then the ratios to the agent that the item compares with."""
    if not bench.wanted(claim.agent):
        return []
    item = bench.item
    rows = [
        _value_row(bench, claim, metric, published, claim.errors.get(metric))
        for metric, published in claim.published.items()
    ]
    base = next((row for row in item.values if row.agent == item.relative_to and row.where == claim.where), None)
    if base is None or base.agent == claim.agent or not bench.wanted(base.agent):
        return rows
    both = [metric for metric in item.ratios if metric in claim.published and base.published.get(metric)]
    return rows + [_ratio_row(bench, claim, base, metric) for metric in both]


def _value_row(bench: _Bench, claim: Values, metric: str, published: float, error: float | None) -> Row:
    def measure(name: str) -> Estimate | None:
        found = bench.estimate(bench.values(claim.agent, name))
        if found is None:
            return None
        found = dataclasses.replace(found, mc_bias=bench.mc_bias(claim.agent, name))
        return judge(found, "value", published, error, bench.item.within)

    ours, other = measure(metric), bench.item.estimators.get(metric)
    return Row(
        "value", claim.label, bench.spec(claim.agent), metric, "value", published, error,
        ours, measure(other) if other else None, **bench.behind(claim.agent),
    )  # fmt: skip


def _ratio_row(bench: _Bench, claim: Values, base: Values, metric: str) -> Row:
    bottom = base.published[metric]
    published = claim.published[metric] / bottom
    hidden = bench.item.within * math.hypot(1, published) / abs(bottom)

    def measure(name: str) -> Estimate | None:
        found = _ratio(bench, claim.agent, base.agent, name)
        return judge(found, "value", published, None, hidden) if found else None

    ours, other = measure(metric), bench.item.estimators.get(metric)
    return Row(
        "ratio", claim.label, bench.spec(claim.agent), f"{metric} / {base.label}", "value", published, None,
        ours, measure(other) if other else None, **bench.behind(claim.agent),
    )  # fmt: skip


def _trend_rows(bench: _Bench, claim: Trend) -> list[Row]:
    """The benefit at every metric, then how it grows from each to the next."""
    if not bench.wanted(claim.better, claim.worse):
        return []
    agent = f"{bench.spec(claim.better)} over {bench.spec(claim.worse)}"
    behind = bench.behind(claim.worse, claim.better)
    benefit = {metric: _benefit(bench, claim, metric) for metric in claim.metrics}

    def row(kind: Literal["benefit", "growth"], metric: str, expected: Expected, values: Array) -> Row:
        found = bench.estimate(values)
        ours = judge(found, expected, 0.0, None, 0.0) if found else None
        return Row(kind, f"{kind}, {claim.measure}", agent, metric, expected, ours=ours, **behind)

    at = [row("benefit", m, "similar" if m in claim.similar_at else "above", benefit[m]) for m in claim.metrics]
    steps = pairwise(claim.metrics)
    return at + [row("growth", f"{a} → {b}", "above", benefit[b] - benefit[a]) for a, b in steps]


# --- two agents on shared environments ----------------------------------------------------------------


def _ratio(bench: _Bench, agent: str, base: str, metric: str) -> Estimate | None:
    """Ratio of the means with Fieller's interval; its standard error is to first order."""
    top, bottom = bench.values(agent, metric), bench.values(base, metric)
    line = bench.estimate(_linear_ratio(top, bottom))
    return _estimate(ratio(top, bottom, bench.panel.strata), line.se) if line else None


def _benefit(bench: _Bench, claim: Trend, metric: str) -> Array:
    """Per environment, such that the mean is the benefit: worse - better, or 1 - better / worse."""
    better, worse = bench.values(claim.better, metric), bench.values(claim.worse, metric)
    return worse - better if claim.measure == "difference" else 1 - _linear_ratio(better, worse)


def _linear_ratio(top: Array, bottom: Array) -> Array:
    """Values whose mean is the ratio of the means, and whose spread is that of the ratio to first order."""
    shared = ~np.isnan(top) & ~np.isnan(bottom)
    if not shared.any() or not (scale := bottom[shared].mean()):
        return np.full(len(top), np.nan)
    quotient = top[shared].mean() / scale
    return np.where(shared, quotient + (top - quotient * bottom) / scale, np.nan)


def _estimate(interval: Interval, se: float) -> Estimate | None:
    return Estimate(interval.mean, interval.low, interval.high, se, interval.n) if interval.n else None


# --- records ------------------------------------------------------------------------------------------


def _metrics(item: Item) -> tuple[str, ...]:
    named = [metric for row in item.values for metric in row.published] + [m for t in item.trends for m in t.metrics]
    return tuple(dict.fromkeys([*named, *item.ratios, *item.estimators.values()]))


def _spent(records: Iterable[Record]) -> dict[str, float]:
    spent: dict[str, float] = {}
    for record in records:
        spent[record.cell.agent] = spent.get(record.cell.agent, 0.0) + _cpu_seconds(record.cost)
    return spent


def _cpu_seconds(cost: Cost) -> float:
    return cost.compile_cpu_seconds + cost.fit_cpu_seconds + cost.ask_cpu_seconds
