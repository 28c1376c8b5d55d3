"""The library in two calls: `evaluate` runs an agent on a suite, `load` reads what a store holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant import registry
from calibrant.engine.plan import make_cell, make_plan
from calibrant.engine.run import Progress, run_plan
from calibrant.engine.store import SqlStore, open_store
from calibrant.suites.base import Suite
from calibrant.types import CalibrantError, Record

if TYPE_CHECKING:
    from calibrant.report.board import Board

DEFAULT_STORE = "sqlite:///calibrant.db"


def evaluate(
    agent: Any,
    suite: str,
    preset: str = "quick",
    store: str = DEFAULT_STORE,
    *,
    seeds: int | None = None,
    where: Mapping[str, str] | None = None,
    baseline: str | None = None,
    executor: str = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Board:
    """Run one agent, or a list of them, on a suite, and return the board of all that the store has for it.

    An agent is a spec (`"ensemble+?size=30"`, `"my_agent.py:Agent"`), one of our agent objects, or an importable class.
    """
    chosen = _suite(suite)
    agents = [agent_spec(one) for one in agent] if isinstance(agent, list | tuple) else [agent_spec(agent)]
    cells = make_plan(chosen, preset, agents, seeds, where)
    with open_store(store) as opened:
        outcome = run_plan(cells, opened, executor, workers, progress)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return Results(opened).board(suite, baseline=baseline)


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
    ) -> Board:
        from calibrant.report.board import make_board

        wanted = None if metrics is None else tuple(metrics)
        records = list(self.records(suite, agents=agents))
        if not records:
            raise CalibrantError(
                f"store {self.store.name} has no records of suite '{suite}'; `calibrant run {suite}` makes them"
            )
        return make_board(records, _suite(suite), baseline=baseline, by=tuple(by), metrics=wanted)

    def records(self, suite: str, *, agents: Sequence[str] | None = None, pictures: bool = False) -> Iterator[Record]:
        """The suite's records, without those of older definitions of a problem, an agent or a metric."""
        problems = {problem for preset in _suite(suite).presets.values() for problem in preset.problems}
        names = None if agents is None else [registry.canonical("agents", agent) for agent in agents]
        return current(self.store.records(problems, names, pictures=pictures))

    def suites(self) -> list[str]:
        """The suites that have at least one record here."""
        found = {record.cell.problem for record in self.store.records()}
        return [name for name in registry.table("suites") if any(map(_suite(name).owns, found))]

    def report(self, path: str | Path, suites: Sequence[str] = (), *, baseline: str | None = None) -> Path:
        """Write the one-file HTML report of these suites, or of all that have records."""
        from calibrant.report.html import write_report
        from calibrant.report.page import suite_page

        names = list(suites) or self.suites()
        pages = []
        for name in names:
            records = list(self.records(name, pictures=True))
            if records:
                pages.append(suite_page(records, _suite(name), baseline=baseline))
        if not pages:
            raise CalibrantError(
                f"store {self.store.name} has no records to report on; `calibrant run testbed` makes some"
            )
        write_report(Path(path), pages)
        return Path(path)


def current(records: Iterable[Record]) -> Iterator[Record]:
    """Leave out records whose id no longer is what their problem, agent and seed mean today.

    An agent that cannot be built here any more, such as an earlier version of a file, is kept under the name it had.
    """
    for record in records:
        cell = record.cell
        try:
            meant = make_cell(cell.problem, cell.agent, cell.seed).id
        except CalibrantError:
            meant = cell.id
        if meant == cell.id:
            yield record


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
