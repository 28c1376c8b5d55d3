"""The library in two calls: `evaluate` runs an agent on a suite, `load` reads what a store holds."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant import registry
from calibrant.engine.plan import defined, make_plan, matches, metrics_defined
from calibrant.engine.store import SqlStore, open_store
from calibrant.suites.base import Suite
from calibrant.tune import TUNING_SEEDS
from calibrant.types import DEFAULT_STORE, CalibrantError, Record

if TYPE_CHECKING:
    from calibrant.engine.run import Progress
    from calibrant.report.board import Board
    from calibrant.report.correlation import Comparison, Match, Series
    from calibrant.report.correlation_matrix import Matrix
    from calibrant.stats.correlation import Kind


def evaluate(
    agent: Any,
    suite: str,
    preset: str = "quick",
    store: str = DEFAULT_STORE,
    *,
    seeds: int | None = None,
    where: Mapping[str, object] | None = None,
    baseline: str | None = None,
    executor: str = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Board:
    """Run one agent, or a list of them, on a suite, and return the board of all that the store has for it.

    An agent is a spec (`"ensemble+?size=30"`, `"my_agent.py:Agent"`), one of our agent objects, or an importable class.
    """
    from calibrant.engine.run import run_plan

    chosen = _suite(suite)
    agents = [agent_spec(one) for one in agent] if isinstance(agent, list | tuple) else [agent_spec(agent)]
    if not agents:
        raise CalibrantError("no agent is given: name at least one, as in evaluate('mlp', 'testbed')")
    cells = make_plan(chosen, preset, agents, seeds, where)
    with open_store(store) as opened:
        outcome = run_plan(cells, opened, executor, workers, progress)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return Results(opened).board(suite, baseline=baseline, preset=preset if chosen.preset(preset).alone else None)


def load(store: str = DEFAULT_STORE) -> Results:
    """Open a store to read from; a missing one is an error, nothing is made."""
    return Results(open_store(store, create=False))


@dataclasses.dataclass(frozen=True)
class Results:
    """What a store holds, suite by suite."""

    store: SqlStore

    def board(
        self,
        suite: str,
        *,
        by: Sequence[str] = (),
        baseline: str | None = None,
        metrics: Sequence[str] | None = None,
        agents: Sequence[str] | None = None,
        floor: str | None = None,
        where: Mapping[str, object] | None = None,
        preset: str | None = None,
    ) -> Board:
        from calibrant.report.board import make_board

        wanted = None if metrics is None else tuple(metrics)
        tables = self.tables(suite, agents=agents, where=where, preset=preset)
        if not tables:
            raise CalibrantError(
                f"store {self.store.name} has no records of suite '{suite}'; `calibrant run {suite}` makes them"
            )
        (_, records), *others = tables.items()
        made = make_board(records, _suite(suite), baseline=baseline, by=tuple(by), metrics=wanted, floor=floor)
        return dataclasses.replace(made, others=tuple(name for name, _ in others))

    def records(
        self,
        suite: str,
        *,
        agents: Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
        preset: str | None = None,
        items: bool = False,
        pictures: bool = False,
    ) -> list[Record]:
        """The suite's records, without those of older definitions of a problem, an agent or a metric.

        Nor those of tuning environments: what hyperparameters were chosen on must not be reported. `where` keeps the
        problems whose fields have these values, as `{"dim": "2|10"}`, `preset` those of one preset. Without it presets
        that stand alone are left out, or, if no other has records, all but the first of them.
        """
        tables = self.tables(suite, agents=agents, where=where, preset=preset, items=items, pictures=pictures)
        return next(iter(tables.values()), [])

    def tables(
        self,
        suite: str,
        *,
        agents: Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
        preset: str | None = None,
        items: bool = False,
        pictures: bool = False,
    ) -> dict[str, list[Record]]:
        """The records that may be averaged with each other, by their presets; none without records."""
        chosen = _suite(suite)
        tables = chosen.tables if preset is None else {preset: frozenset(chosen.preset(preset).problems)}
        wanted = {problem for problem in frozenset().union(*tables.values()) if matches(chosen, problem, where or {})}
        names = None if agents is None else [registry.canonical("agents", agent) for agent in agents]
        with _without_collection():
            found = current(filter(_reported, self.store.records(wanted, names, items, pictures)))
        held = {name: [record for record in found if record.cell.problem in table] for name, table in tables.items()}
        return {name: records for name, records in held.items() if records}

    def suites(self) -> list[str]:
        """The suites that have at least one record here."""
        found = {record.cell.problem for record in filter(_reported, self.store.records())}
        return [name for name in registry.table("suites") if any(map(_suite(name).owns, found))]

    def correlate(
        self,
        a: str,
        b: str,
        *,
        by: str | None = None,
        metric_a: str | None = None,
        metric_b: str | None = None,
        agents: Sequence[str] | None = None,
        match: Match = "spec",
        where_a: Mapping[str, object] | None = None,
        where_b: Mapping[str, object] | None = None,
        blocks: int = 0,
    ) -> Comparison | Series:
        """Whether agents that score well on suite `a` score well on suite `b`; dyadic joint scores unless told.

        At each value of the field `by` of suite `b`, if that is named. With `match="method"` an agent may have other
        parameters on either side, as when it is tuned for each. With `blocks` seeds are divided into so many
        repetitions of the measurement, within which scores are correlated too.
        """
        from calibrant.report.correlation import compare, compare_series

        first, second = (
            (_suite(name), self.records(name, where=where)) for name, where in ((a, where_a), (b, where_b))
        )
        metrics = metric_a, metric_b
        if by is None:
            return compare(first, second, metrics=metrics, agents=agents, match=match, blocks=blocks)
        return compare_series(first, second, by, metrics=metrics, agents=agents, match=match, blocks=blocks)

    def correlate_values(
        self,
        suite: str,
        field: str,
        *,
        metric: str | None = None,
        agents: Sequence[str] | None = None,
        kind: Kind = "pearson",
        where: Mapping[str, object] | None = None,
    ) -> Matrix:
        """Whether agents score alike at every value of a field of a suite's problems, as between activations."""
        from calibrant.report.correlation_matrix import compare_values

        records = self.records(suite, where=where)
        return compare_values(records, _suite(suite), field, metric=metric, agents=agents, kind=kind)

    def report(
        self,
        path: str | Path,
        suites: Sequence[str] = (),
        *,
        baseline: str | None = None,
        preset: str | None = None,
    ) -> Path:
        """Write the one-file HTML report of these suites, or of all that have records.

        Suites that are named together and share agents are also held against each other, method by method.
        """
        from calibrant.report.correlation import held_together
        from calibrant.report.html import write_report
        from calibrant.report.page import suite_page

        names = list(suites) or self.suites()
        pages, sides = [], []
        for name in names:
            records = self.records(name, preset=preset, items=bool(_suite(name).timed), pictures=True)
            if records:
                pages.append(suite_page(records, _suite(name), baseline=baseline))
                sides.append((_suite(name), records))
        if not pages:
            raise CalibrantError(
                f"store {self.store.name} has no records to report on; `calibrant run testbed` makes some"
            )
        write_report(Path(path), pages, held_together(sides) if suites else ())
        return Path(path)


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Reading many records makes many objects and no garbage: looking for some costs a third of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def current(records: Iterable[Record]) -> list[Record]:
    """Leave out records made under an older definition of their problem, of the metrics, or of their agent.

    An agent of which the store knows one definition only is taken as it is, and need not be importable here; of
    several, only today's counts: numbers of different methods must not be averaged under one name.
    """
    kept = [record for record in records if _meant_today(record)]
    meanings: dict[str, set[str]] = {}
    for record in kept:
        meanings.setdefault(record.cell.agent, set()).add(_defined(record, "agent"))
    today = {agent: _agent_today(agent) for agent, several in meanings.items() if len(several) > 1}
    return [
        record
        for record in kept
        if today.get(record.cell.agent, _defined(record, "agent")) == _defined(record, "agent")
    ]


def _reported(record: Record) -> bool:
    return record.cell.seed < TUNING_SEEDS


def _meant_today(record: Record) -> bool:
    problem = defined("problems", record.cell.problem)
    return _defined(record, "problem") == problem and _defined(record, "metrics") == metrics_defined()


def _agent_today(agent: str) -> str:
    try:
        return defined("agents", agent)
    except CalibrantError as error:
        raise CalibrantError(
            f"the store has several definitions of agent '{agent}', and today's is unknown: {error}"
        ) from error


def _defined(record: Record, what: str) -> str:
    return str(record.provenance.get("defined", {}).get(what))


def agent_spec(agent: Any) -> str:
    """The canonical spec of whatever a user may call an agent."""
    if isinstance(agent, str):
        return registry.canonical("agents", agent)
    cls = agent if isinstance(agent, type) else type(agent)
    reference = f"{cls.__module__}:{cls.__qualname__}"
    name = next((name for name, target in registry.table("agents").items() if target == reference), None)
    if name is not None and not isinstance(agent, type):
        query = "&".join(f"{key}={value}" for key, value in registry.changed(agent).items())
        return registry.canonical("agents", f"{name}?{query}" if query else name)
    if isinstance(agent, type) and cls.__module__ != "__main__":
        return registry.canonical("agents", name or reference)
    raise CalibrantError(
        f"{agent!r} has no name that a worker or a later run could find it by; "
        "put it in a file and name it FILE.py:NAME, or give a spec"
    )


def _suite(name: str) -> Suite:
    suite: Suite = registry.load("suites", name)
    return suite
