"""How far a run is: a live bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import time

from calibrant.engine.run import Progress, Silent
from calibrant.types import Record

SECONDS_BETWEEN_LINES = 10.0


def make_progress(quiet: bool) -> Progress:
    if quiet:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()


class Bar:
    """Cells done, rate and time left; failures are printed above the bar."""

    def start(self, total: int, already: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn("cells"),
            TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
            console=Console(stderr=True),
        )  # fmt: skip
        self._task = self._bar.add_task("running", total=total, completed=already, rate="")
        self._began, self._new = time.monotonic(), 0
        self._bar.start()

    def advance(self, record: Record) -> None:
        self._new += 1
        rate = self._new / max(time.monotonic() - self._began, 1e-9)
        if record.failed:
            self._bar.console.print(
                f"failed: {record.cell.agent} on {record.cell.problem}: {record.reason}", markup=False
            )
        self._bar.update(self._task, advance=1, description=record.cell.agent, rate=f"{rate:.1f}/s")

    def stop(self) -> None:
        self._bar.stop()


class Lines:
    """One line every few seconds, and one for every failure."""

    def start(self, total: int, already: int) -> None:
        self._total, self._already, self._new = total, already, 0
        self._began = self._said = time.monotonic()
        _say(f"{total} cells, {already} already there")

    def advance(self, record: Record) -> None:
        self._new += 1
        if record.failed:
            _say(f"failed: {record.cell.agent} on {record.cell.problem}, seed {record.cell.seed}: {record.reason}")
        now, done = time.monotonic(), self._already + self._new
        if now - self._said >= SECONDS_BETWEEN_LINES or done == self._total:
            rate = self._new / max(now - self._began, 1e-9)
            left = (self._total - done) / rate
            _say(f"{done}/{self._total} cells, {rate:.1f}/s, {_span(left)} left, now {record.cell.agent}")
            self._said = now

    def stop(self) -> None:
        pass


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
