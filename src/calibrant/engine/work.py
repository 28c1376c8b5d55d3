"""What a worker does with a task. Whatever goes wrong becomes a record with its reason; the run goes on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from calibrant.engine import machine
from calibrant.engine.cohorts import Task
from calibrant.types import Record


def run_task(task: Task) -> list[Record]:
    machine.settle()
    from calibrant.engine.blackbox import run_black_box
    from calibrant.engine.compiled import run_compiled
    from calibrant.engine.played import is_played, run_played
    from calibrant.engine.scoring import failure

    try:
        with within(task.seconds):
            if is_played(task):
                return run_played(task)
            return run_compiled(task) if task.rows else [run_black_box(task.cells[0])]
    except (Exception, SystemExit) as error:  # the reason is kept with the cell; KeyboardInterrupt passes
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
        return [failure(cell, reason) for cell in task.cells]


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Raise `TimeoutError` when the block takes longer; a compiled program is let finish before it is noticed."""
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it took longer than the {seconds:g} seconds it was given")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
