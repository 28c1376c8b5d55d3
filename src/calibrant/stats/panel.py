"""Records become tables: for each metric, agents by environments. Every statistic starts from one.

An environment is one seed of one problem spec, or of several that draw the same (`Panel.clustered`). Records of one
agent on one environment are replicates and are averaged here, so that no later step can take them for independent
environments. A failed record, or a score that is not a finite number, is counted and never averaged. The order of the
records does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.types import Array, Record, Scores

COSTS = ("fit_cpu_seconds", "ask_cpu_seconds", "compile_cpu_seconds", "peak_memory_mb", "parameters")


@dataclass(frozen=True)
class Column:
    """One metric as tables [agents, environments]; `values` and the Monte-Carlo errors are nan without a value."""

    values: Array
    mc_bias: Array
    mc_se: Array
    failed: Array  # how many records failed or scored no finite number


@dataclass(frozen=True)
class Panel:
    """The tables of several metrics and the names of their rows and columns, both sorted."""

    agents: tuple[str, ...]
    problems: tuple[str, ...]  # [environments] the spec that each environment is a draw of
    seeds: tuple[int, ...]  # [environments]
    strata: Array  # [environments] the same specs as integers
    seen: Array  # [agents, environments] whether there is any record at all
    columns: Mapping[str, Column]
    scored: frozenset[str]  # every metric that some record carries a score of

    def inside(self, where: Array) -> Panel:
        """Only the environments that `where` [environments] marks."""
        columns = {
            name: Column(*(table[:, where] for table in (c.values, c.mc_bias, c.mc_se, c.failed)))
            for name, c in self.columns.items()
        }
        marks = np.flatnonzero(where).tolist()
        return replace(
            self,
            problems=tuple(self.problems[index] for index in marks),
            seeds=tuple(self.seeds[index] for index in marks),
            strata=self.strata[where],
            seen=self.seen[:, where],
            columns=columns,
        )

    def clustered(self, drawn: Callable[[str], str]) -> Panel:
        """One column for every environment: problems that draw the same are averaged seed by seed.

        An agent that misses one of them has no value there, so that all agents are averaged over the same.
        """
        names = {problem: drawn(problem) for problem in dict.fromkeys(self.problems)}
        if len(set(names.values())) == len(names):
            return self
        keys = [(names[problem], seed) for problem, seed in zip(self.problems, self.seeds, strict=True)]
        found = sorted(set(keys))
        members = [np.flatnonzero([key == one for key in keys]) for one in found]

        def each(table: Array, over: Callable[[Array], Array]) -> Array:
            return np.stack([over(table[:, those]) for those in members], axis=1)

        columns = {
            name: Column(
                values=each(c.values, lambda part: part.mean(1)),
                mc_bias=each(c.mc_bias, lambda part: part.mean(1)),
                mc_se=each(c.mc_se, lambda part: np.sqrt((part**2).sum(1)) / part.shape[1]),
                failed=each(c.failed, lambda part: part.sum(1)),
            )
            for name, c in self.columns.items()
        }
        problems = tuple(name for name, _ in found)
        return replace(
            self,
            problems=problems,
            seeds=tuple(seed for _, seed in found),
            strata=np.unique(problems, return_inverse=True)[1],
            seen=each(self.seen, lambda part: part.any(1)),
            columns=columns,
        )

    def of(self, names: Mapping[str, str]) -> Panel:
        """Only some agents, by other names: new name -> name here."""
        rows = [self.agents.index(name) for name in names.values()]
        columns = {
            name: Column(*(table[rows] for table in (c.values, c.mc_bias, c.mc_se, c.failed)))
            for name, c in self.columns.items()
        }
        return replace(self, agents=tuple(names), seen=self.seen[rows], columns=columns)


def make_panel(records: Iterable[Record], metrics: Sequence[str]) -> Panel:
    """Tabulate the metrics of the records; only numbers are kept of each record."""
    scored: set[str] = set()
    entries = []
    for record in records:
        cell = record.cell
        scored.update(record.scores)
        read = [None if record.failed else measure(record, metric) for metric in metrics]
        entries.append((cell.agent, (cell.problem, cell.seed), cell.id, record.failed, read))
    entries.sort(key=lambda entry: entry[:3])  # sums of replicates must not depend on which record came first
    agents = sorted({entry[0] for entry in entries})
    environments = sorted({entry[1] for entry in entries})
    row = {agent: index for index, agent in enumerate(agents)}
    place = {environment: index for index, environment in enumerate(environments)}
    shape = (len(agents), len(environments))
    cells = np.array([row[entry[0]] * shape[1] + place[entry[1]] for entry in entries], int)
    crashed = np.array([entry[3] for entry in entries], bool)
    problems = tuple(problem for problem, _ in environments)
    return Panel(
        agents=tuple(agents),
        problems=problems,
        seeds=tuple(seed for _, seed in environments),
        strata=np.unique(problems, return_inverse=True)[1],
        seen=np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape) > 0,
        columns={
            metric: _column([entry[4][index] for entry in entries], cells, crashed, shape)
            for index, metric in enumerate(metrics)
        },
        scored=frozenset(scored),
    )


def measure(record: Record, metric: str) -> Scores | None:
    """What a record says about a metric, be it scored, a cost or derived; None when it says nothing."""
    scores = record.scores
    if metric in scores:
        return scores[metric]
    if metric in COSTS:
        return Scores(mean=float(getattr(record.cost, metric)))
    if metric == "aggregate" and "kl_tau1" in scores and "kl_tau10" in scores:
        one, ten = scores["kl_tau1"], scores["kl_tau10"]
        # Both were asked of the same worlds, so their Monte-Carlo errors may add up in full.
        return Scores(
            mean=one.mean + ten.mean / 10, mc_bias=one.mc_bias + ten.mc_bias / 10, mc_se=one.mc_se + ten.mc_se / 10
        )
    return None


def _column(scores: Sequence[Scores | None], cells: Array, crashed: Array, shape: tuple[int, int]) -> Column:
    """Average the replicates in each cell of the table."""
    given = np.array([score is not None for score in scores], bool)
    missing = Scores(mean=math.nan)
    numbers = [(s.mean, s.mc_bias, s.mc_se) for s in (score or missing for score in scores)]
    mean, bias, error = np.array(numbers, float).reshape(-1, 3).T
    good = np.isfinite(mean)

    def total(which: Array, weights: Array | None = None) -> Array:
        chosen = None if weights is None else weights[which]
        return np.bincount(cells[which], chosen, minlength=shape[0] * shape[1]).reshape(shape)

    replicates = np.where(total(good) > 0, total(good), np.nan)
    return Column(
        values=total(good, mean) / replicates,
        mc_bias=total(good, bias) / replicates,
        mc_se=np.sqrt(total(good, error**2)) / replicates,
        failed=total(crashed | (given & ~good)),
    )
