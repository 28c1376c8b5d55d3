"""What a report says about one suite, gathered from its records: boards, pictures, provenance and plain sentences.

Nothing here knows about HTML; `report.html` puts it on a page.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibrant import registry
from calibrant.report.board import Board, Row, make_board
from calibrant.report.charts import COST, PARTS
from calibrant.report.correlation_matrix import Matrix, matrices
from calibrant.report.pictures import Gallery, galleries
from calibrant.report.style import PRIVILEGED, base_name, label, number, short_name
from calibrant.report.timelines import Timeline, timelines
from calibrant.suites.base import Suite
from calibrant.types import Record

SLICES = ("coins", "data", "dim", "train", "temp")
DEFINED = "defined"  # digests of what the problem, the agent and the metrics meant: for programs
DATE = "date"  # the provenance entry that holds a record's day, ISO 8601


@dataclass(frozen=True)
class Published:
    """A published table to stand beside ours: agent -> metric -> value."""

    title: str
    source: str
    values: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from. `failures` are (agent, cells, reason), most cells first."""

    cells: int
    failed: int
    environments: int
    newest: str | None
    facts: Mapping[str, tuple[str, ...]]  # every value that a provenance entry takes among the records
    failures: tuple[tuple[str, int, str], ...] = ()


@dataclass(frozen=True)
class SuitePage:
    """All that a report shows of a suite. What is missing is left out of the page."""

    suite: Suite
    overall: Board
    sliced: Board | None
    provenance: Provenance
    leaders: Mapping[str, list[str]] = field(default_factory=dict)  # of each headline: the best tier
    pictures: Sequence[Gallery] = ()
    published: Published | None = None
    command: str | None = None  # what makes these records again
    matrices: Sequence[Matrix] = ()
    timelines: Sequence[Timeline] = ()


def suite_page(
    records: Iterable[Record],
    suite: Suite,
    *,
    baseline: str | None = None,
    published: Published | None = None,
    command: str | None = None,
) -> SuitePage:
    """A suite's page from its records, which should carry their pictures; records of other suites are passed over."""
    own = [record for record in records if suite.owns(record.cell.problem)]
    metrics = tuple(dict.fromkeys((*suite.metrics, *PARTS.values(), COST)))
    overall = make_board(own, suite, baseline=baseline, metrics=metrics)
    axes = tuple(axis for axis in SLICES if axis in suite.axes)
    return SuitePage(
        suite=suite,
        overall=overall,
        sliced=make_board(own, suite, baseline=baseline, by=axes) if "train" in axes else None,
        provenance=summarise(own),
        leaders=_leaders(own, suite, overall),
        pictures=galleries(own, overall.agents),
        published=published,
        command=command or command_for(own, suite),
        matrices=matrices(own, suite),
        timelines=timelines(own, suite),
    )


def summarise(records: Sequence[Record]) -> Provenance:
    """Count the cells and collect every value of every provenance entry."""
    facts: dict[str, dict[str, None]] = {}
    for provenance in {id(record.provenance): record.provenance for record in records}.values():
        for name, value in _entries(provenance):
            facts.setdefault(name, {})[value] = None
    reasons = Counter((record.cell.agent, record.reason) for record in records if record.reason is not None)
    return Provenance(
        cells=len(records),
        failed=sum(record.failed for record in records),
        environments=len({(record.cell.problem, record.cell.seed) for record in records}),
        newest=max(facts.get(DATE, ()), default=None),
        facts={name: tuple(sorted(values)) for name, values in sorted(facts.items()) if name not in (DATE, DEFINED)},
        failures=tuple((agent, count, reason) for (agent, reason), count in reasons.most_common()),
    )


def command_for(records: Sequence[Record], suite: Suite) -> str:
    """The command that makes these records again, in the smallest preset that holds their problems.

    >>> from calibrant.suites.testbed import SUITE
    >>> from calibrant.types import Cell
    >>> command_for([Record(Cell("testbed", agent, 1, "")) for agent in ("mlp", "my.py:Agent@0123456789ab")], SUITE)
    'calibrant run testbed --preset quick --where train=10,temp=0.1 --agents mlp --agent my.py:Agent --seeds 2'
    """
    problems = {record.cell.problem for record in records}
    fitting = [name for name, preset in suite.presets.items() if problems <= set(preset.problems)]
    words = ["calibrant", "run", suite.name]
    if fitting:
        preset = min(fitting, key=lambda name: len(suite.presets[name].problems))
        where = _where(problems, suite.presets[preset].problems, suite.axes)
        words += ["--preset", preset, *(["--where", where] if where else [])]
    agents = sorted({record.cell.agent for record in records})
    named = [agent for agent in agents if ":" not in agent]
    words += ["--agents", ",".join(named)] if named else []
    words += [word for agent in agents if agent not in named for word in ("--agent", short_name(agent))]
    return shlex.join([*words, "--seeds", str(1 + max(record.cell.seed for record in records))])


def sentences(page: SuitePage) -> list[str]:
    """The page in plain words: what was asked, who leads, and what is missing."""
    board, provenance = page.overall, page.provenance
    said = [
        f"{_count(len(board.agents), 'agent')} on {_count(provenance.environments, 'environment')}"
        f"{_design(page.sliced, provenance.environments)}."
    ]
    said += [
        _lead(board, metric, what, page.leaders[metric], page.suite.unit)
        for metric, what in page.suite.headlines
        if page.leaders.get(metric)
    ]
    if partial := [short_name(agent) for agent in _partial(board)]:
        verb = "has" if len(partial) == 1 else "have"
        said.append(f"{join(partial)} {verb} been run on some of the environments only, and cannot lead.")
    if provenance.failed:
        said.append(
            f"{provenance.failed} of {_count(provenance.cells, 'cell')} failed and "
            f"{'is' if provenance.failed == 1 else 'are'} part of no mean."
        )
    return said


def join(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> join(["a"]), join(["a", "b"]), join(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _lead(board: Board, metric: str, what: str, tier: Sequence[str], unit: str) -> str:
    rows = {row.agent: row for row in board.rows if row.metric == metric}
    names = join([short_name(agent) for agent in tier])
    about = f"For {what} ({label(metric)})"
    if len(tier) > 1:
        return f"{about}, the data does not tell {names} apart: they form the leading tier."
    if not [agent for agent in rows if agent not in tier and base_name(agent) not in PRIVILEGED]:
        return f"{about}, {names} has {_loss(rows[tier[0]].mean, unit)}."
    return f"{about}, {names} leads{_ratio(rows[tier[0]], board.baseline, unit)}."


def _loss(value: float, unit: str) -> str:
    return f"a loss of {number(value)} {unit}".strip()


def _ratio(row: Row, baseline: str | None, unit: str) -> str:
    if row.ratio is None or baseline is None or row.agent == baseline:
        return f" with {_loss(row.mean, unit)}"
    limits = (
        f" (95\N{NO-BREAK SPACE}% interval {number(row.ratio.low)} to {number(row.ratio.high)})"
        if row.ratio.low < 1e9
        else ""
    )
    return f": its loss is {number(row.ratio.mean)} times that of {short_name(baseline)}{limits}"


def _leaders(records: Sequence[Record], suite: Suite, board: Board) -> dict[str, list[str]]:
    """The best tier of each headline, those aside that are told the truth or have seen only some environments."""
    aside = {agent for agent in board.agents if base_name(agent) in PRIVILEGED} | set(_partial(board))
    judged = [record for record in records if record.cell.agent not in aside]
    if not judged:
        return {}
    metrics = tuple(metric for metric, _ in suite.headlines)
    tiers = make_board(judged, suite, metrics=metrics).tiers if aside else board.tiers
    return {metric: list(next(iter(tiers.get(metric, ())), ())) for metric in metrics}


def _partial(board: Board) -> list[str]:
    """Agents that were run on fewer environments than others, failures included: their means are of another sweep."""
    asked = {row.agent: row.n + row.failed for row in board.rows if row.metric == board.headline}
    return [agent for agent, n in asked.items() if n < max(asked.values())]


def _design(sliced: Board | None, environments: int) -> str:
    """How the environments come about: sizes x temperatures x seeds, where that is what they are."""
    if sliced is None:
        return ""
    names = {"train": "training size", "temp": "temperature", "dim": "dimension", "coins": "bag size"}
    values = {axis: {row.slice[axis] for row in sliced.rows} for axis in sliced.by}
    sides = {axis: len(found) for axis, found in values.items() if found != {0}}  # no training data is no size
    settings = len({tuple(row.slice.values()) for row in sliced.rows})
    seeds, rest = divmod(environments, settings)
    shown = [_count(side, names.get(axis, axis)) for axis, side in sides.items()]
    return "" if rest or settings != math.prod(sides.values()) else f": {' × '.join([*shown, _count(seeds, 'seed')])}"


def _where(problems: Iterable[str], preset: Iterable[str], axes: Sequence[str]) -> str:
    """The axes on which the problems are only some of the preset's, as `train=10|30,temp=0.1`."""
    parts = []
    for axis in axes:
        ours, theirs = (
            {getattr(registry.resolve("problems", problem), axis) for problem in some} for some in (problems, preset)
        )
        if ours != theirs:
            parts.append(f"{axis}={'|'.join(registry.show(value) for value in sorted(ours))}")
    return ",".join(parts)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _entries(provenance: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and values as text; a group such as the libraries' versions is one entry."""
    for name, value in provenance.items():
        if isinstance(value, Mapping):
            yield name, ", ".join(f"{part} {known}" for part, known in value.items())
        elif value is not None:
            yield name, str(value)
