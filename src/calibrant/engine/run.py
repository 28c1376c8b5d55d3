"""Runs a plan: what the store already has is left out, every finished cell is one transaction."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from types import FrameType
from typing import Protocol

from calibrant import registry
from calibrant.engine.cohorts import make_tasks
from calibrant.engine.executors import make_executor
from calibrant.protocols import Store
from calibrant.types import CalibrantError, Cell, Record


class Progress(Protocol):
    """Told what happens, in order."""

    def start(self, total: int, already: int) -> None: ...
    def advance(self, record: Record) -> None: ...
    def stop(self) -> None: ...


class Silent:
    """Progress that nobody watches."""

    def start(self, total: int, already: int) -> None: ...
    def advance(self, record: Record) -> None: ...
    def stop(self) -> None: ...


@dataclass(frozen=True)
class Outcome:
    """How many cells of the plan were already there, were done now, failed now, or are still open."""

    total: int
    already: int
    done: int
    failed: int
    interrupted: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return 130
        return 1 if self.failed else 0


def run_plan(
    cells: Sequence[Cell],
    store: Store,
    executor: str = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
    timeout: float | None = None,
) -> Outcome:
    """Run what is missing. Cells that failed before are tried again. Interrupting leaves a store to resume from.

    `timeout` is how many seconds a cell may take; one that takes longer is a failed cell.
    """
    have = store.done(cells)
    missing = [cell for cell in cells if cell.id not in have]
    watch = progress or Silent()
    done, reasons, interrupted = 0, [], False
    watch.start(len(cells), len(cells) - len(missing))
    try:
        if missing:
            with _interrupts() as guard:
                refused = refuse(missing)
                left_out = {record.cell.id for record in refused}
                open_cells = [cell for cell in missing if cell.id not in left_out]
                tasks = make_tasks(open_cells, timeout, getattr(store, "url", None))
                guard.heed()
                for records in chain([refused], make_executor(executor, workers, len(tasks)).run(tasks)):
                    for record in records:
                        with guard.writing():
                            store.append(record)
                            done += not record.failed
                            reasons += [_reason(record)] * record.failed
                            watch.advance(record)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        watch.stop()
    return Outcome(len(cells), len(cells) - len(missing), done, len(reasons), interrupted, tuple(reasons))


def refuse(cells: Sequence[Cell]) -> list[Record]:
    """Failed records of the cells whose problem says that it lacks something, before any work is done.

    A problem says so by its method `require`, which raises one sentence: a dataset that is not here.
    """
    lacking: dict[str, str] = {}
    for problem in dict.fromkeys(cell.problem for cell in cells):
        require = getattr(registry.resolve("problems", problem), "require", None)
        try:
            if require is not None:
                require()
        except CalibrantError as error:
            lacking[problem] = str(error)
    if not lacking:
        return []
    from calibrant.engine.scoring import failure

    return [failure(cell, lacking[cell.problem]) for cell in cells if cell.problem in lacking]


def _reason(record: Record) -> str:
    return f"{record.cell.agent} on {record.cell.problem}: {record.reason}"


class _Guard:
    """Ctrl-C waits until the current record is written and counted.

    It is also remembered: raised inside a callback of the garbage collector, as JAX has one, it would be lost.
    """

    busy = wanted = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.wanted = True
        if not self.busy:
            raise KeyboardInterrupt

    @contextmanager
    def writing(self) -> Iterator[None]:
        self.busy = True
        try:
            yield
        finally:
            self.busy = False
        self.heed()

    def heed(self) -> None:
        if self.wanted:
            raise KeyboardInterrupt


@contextmanager
def _interrupts() -> Iterator[_Guard]:
    guard = _Guard()
    if threading.current_thread() is not threading.main_thread():
        yield guard
        return
    before = signal.signal(signal.SIGINT, guard.handle)
    try:
        yield guard
    finally:
        signal.signal(signal.SIGINT, before)
