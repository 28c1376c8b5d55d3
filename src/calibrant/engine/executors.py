"""Who does the work: this process, or one single-threaded process per core. Both yield finished tasks as they come.

Workers are spawned, never forked (JAX's threads do not survive a fork). A worker that dies takes nothing with it: the
tasks that were in hand are given out again, one at a time, and the others go on in a new pool; a task that kills a
worker it has for itself is a failed cell.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import ModuleType
from typing import Protocol

from calibrant.engine import machine
from calibrant.engine.cohorts import Task
from calibrant.types import CalibrantError, Record

Finished = Iterator[list[Record]]
FEW = 4  # tasks that one process has done before workers have started
DIED = "the worker process died: out of memory, or killed from outside"


class Executor(Protocol):
    def run(self, tasks: Sequence[Task]) -> Finished: ...


def make_executor(name: str, workers: int | None, tasks: int) -> Executor:
    """`auto` uses processes when there is work for more than one core that outweighs starting them."""
    if workers is not None and workers < 1:
        raise CalibrantError(f"workers={workers} should be at least 1")
    count = min(workers or machine.cores(), max(tasks, 1))
    if name == "auto":
        name = "processes" if count > 1 and tasks > FEW else "local"
    if name == "local":
        return Local()
    if name == "processes":
        return Processes(count)
    raise CalibrantError(f"unknown executor '{name}': it should be auto, local or processes")


class Local:
    """One task after another in this process."""

    def run(self, tasks: Sequence[Task]) -> Finished:
        from calibrant.engine.work import run_task

        return (run_task(task) for task in tasks)


class Processes:
    """A pool of single-threaded processes."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, tasks: Sequence[Task]) -> Finished:
        waiting = deque(tasks)
        while waiting:
            suspects: list[Task] = []
            yield from self._round(waiting, suspects, self.workers)
            for task in suspects:  # alone, so that the one that kills is told from those that were beside it
                again: list[Task] = []
                yield from self._round(deque([task]), again, 1)
                if again:
                    yield _died(task)

    def _round(self, waiting: deque[Task], lost: list[Task], workers: int) -> Finished:
        """Take tasks until none waits or the pool breaks; those in hand without a result are added to `lost`."""
        from calibrant.engine.work import run_task

        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare_worker)
        pending: dict[Future[list[Record]], Task] = {}
        broken = False
        try:
            while pending or (waiting and not broken):
                while waiting and not broken and len(pending) <= workers:  # one in reserve, so that no worker idles
                    try:
                        with _starting_workers():
                            future = pool.submit(run_task, waiting[0])
                    except BrokenProcessPool:
                        broken = True
                    else:
                        pending[future] = waiting.popleft()
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    task = pending.pop(future)
                    try:
                        yield future.result()
                    except BrokenProcessPool:
                        broken = True
                        lost.append(task)
        finally:
            _stop(pool)


def _died(task: Task) -> list[Record]:
    from calibrant.engine.scoring import failure

    return [failure(cell, DIED) for cell in task.cells]


def _stop(pool: ProcessPoolExecutor) -> None:
    """Finished or interrupted, workers have nothing left that is worth waiting for: results are in the store."""
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        with contextlib.suppress(OSError, ValueError):
            worker.terminate()


@contextlib.contextmanager
def _starting_workers() -> Iterator[None]:
    """Workers started in here never hear Ctrl-C, which is for the parent, afterwards; nor do they run its script again.

    They would import the user's script to find what it defines, which none of our tasks needs; one that evaluates an
    agent outside of `if __name__ == "__main__"` would start itself anew in each of them.
    """
    main = sys.modules["__main__"]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare_worker() -> None:
    """In a new worker: die with the parent, use one thread."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    machine.settle()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
