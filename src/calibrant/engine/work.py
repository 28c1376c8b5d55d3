"""What a worker does with a task. Whatever goes wrong becomes a record with its reason; the run goes on."""

from __future__ import annotations

from calibrant.engine import machine
from calibrant.engine.cohorts import Task
from calibrant.types import Record


def run_task(task: Task) -> list[Record]:
    machine.settle()
    from calibrant.engine.blackbox import run_black_box
    from calibrant.engine.compiled import run_compiled
    from calibrant.engine.scoring import failure

    try:
        return run_compiled(task) if task.rows else [run_black_box(task.cells[0])]
    except (Exception, SystemExit) as error:  # the reason is kept with the cell; KeyboardInterrupt passes
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
        return [failure(cell, reason) for cell in task.cells]
