"""Runs a study: asks for trials, measures them rung by rung, stops the hopeless ones, until the budget is spent.

Everything is decided by the study's settings and by records. A batch is written down whole before it runs, and judged
in one stroke when it has ended. A study may be killed at any moment: the same command finds the records, decides the
same again, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from calibrant.engine.ledger import StudyTrial
from calibrant.engine.run import Progress, run_plan
from calibrant.engine.store import SqlStore
from calibrant.tune.rungs import going_on, judged, measured
from calibrant.tune.samplers import BATCH, LEARNING, Judged, Proposer
from calibrant.tune.spaces import point_of, spec_at
from calibrant.tune.study import Study
from calibrant.types import CalibrantError, Cell, Record

TRIALS = 30  # of samplers that never come to an end, when no budget is given
SLICE = 4  # trials that run between two looks at the CPU minutes


@dataclass(frozen=True)
class Budget:
    """What a study may spend in all, past sessions included; whichever comes first."""

    trials: int | None = None
    cpu_minutes: float | None = None

    def __post_init__(self) -> None:
        if self.trials is not None and self.trials < 1:
            raise CalibrantError(f"trials={self.trials} should be at least 1")
        if self.cpu_minutes is not None and not self.cpu_minutes > 0:
            raise CalibrantError(f"cpu-minutes={self.cpu_minutes:g} should be more than 0")

    def spent(self, trials: Iterable[StudyTrial]) -> bool:
        return self.cpu_minutes is not None and sum(trial.cost for trial in trials) >= 60 * self.cpu_minutes


@dataclass(frozen=True)
class Finished:
    """How a search ended."""

    trials: tuple[StudyTrial, ...]
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return 130
        return 1 if any(trial.state == "failed" for trial in self.trials) else 0


def search(
    study: Study,
    store: SqlStore,
    budget: Budget | None = None,
    executor: str = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Finished:
    """Run a study, or what is left of it. Interrupting leaves a store to resume from."""
    return _Search(study, store, budget or Budget(), executor, workers, progress, say or _silent).run()


@dataclass(frozen=True)
class _Search:
    study: Study
    store: SqlStore
    budget: Budget
    executor: str
    workers: int | None
    progress: Progress | None
    say: Callable[[str], None]

    def run(self) -> Finished:
        while True:
            trials = self.store.trials(self.study.name)
            past = [trial for trial in trials if trial.state != "open"]
            batch = [trial for trial in trials if trial.state == "open"]
            if self.budget.spent(trials):
                return Finished(tuple(trials))
            if not batch:
                batch = self._ask(past)
                self.store.keep_trials(self.study.about, batch)
            if not batch:
                return Finished(tuple(trials))
            ended, interrupted = self._climb(past, batch)
            self.store.keep_trials(self.study.about, ended)
            if interrupted:
                return Finished((*past, *ended), interrupted=True)

    # --- asking -----------------------------------------------------------------------------------

    def _ask(self, past: Sequence[StudyTrial]) -> list[StudyTrial]:
        """The next batch. Trial 0 is the agent as it is given; samplers that learn try it alone, before all others."""
        study, first = self.study, len(past)
        count = self._count(first)
        if study.sampler == "grid":
            specs = list(study.grid[first : first + count])
        else:
            given = [study.agent][first:count]
            specs = given + self._propose(past, range(first + len(given), first + count))
        batch = past[-1].batch + 1 if past else 0
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return [StudyTrial(study.name, first + place, batch, spec, now) for place, spec in enumerate(specs)]

    def _count(self, first: int) -> int:
        """How many trials the next batch has at most."""
        learning = self.study.sampler in LEARNING
        if learning and first == 0:
            return 1
        limit = self.budget.trials
        if limit is None and self.study.sampler == "grid":
            return len(self.study.grid)
        if limit is None and self.budget.cpu_minutes is not None:
            return BATCH
        left = max(0, (TRIALS if limit is None else limit) - first)
        return min(BATCH, left) if learning else left

    def _propose(self, past: Sequence[StudyTrial], numbers: Sequence[int]) -> list[str]:
        study = self.study
        (space,) = study.blocks
        proposer = Proposer(study.sampler, space, study.minimise, study.seed)
        known = [Judged(one.number, one.batch, point_of(one.spec, space), one.objective) for one in past]
        return [spec_at(study.agent, point) for point in proposer.propose(known, numbers)] if numbers else []

    # --- measuring --------------------------------------------------------------------------------

    def _climb(self, past: Sequence[StudyTrial], batch: Sequence[StudyTrial]) -> tuple[list[StudyTrial], bool]:
        """Measure a batch rung by rung, and judge it; when it is cut short it stays open. True: interrupted."""
        latest = {trial.number: trial for trial in batch}
        climbing = list(batch)
        for rung in range(len(self.study.rungs)):
            for some in self._slices(climbing):
                if self.budget.spent((*past, *latest.values())):
                    return list(latest.values()), False
                interrupted = self._run(some, rung)
                latest |= {trial.number: trial for trial in measured(self.study, self.store, some, rung)}
                self.store.keep_trials(self.study.about, [latest[trial.number] for trial in some])
                if interrupted:
                    return list(latest.values()), True
            climbing = going_on(self.study, past, [latest[trial.number] for trial in climbing], rung)
        return judged(self.study, past, list(latest.values())), False

    def _slices(self, trials: Sequence[StudyTrial]) -> Iterator[Sequence[StudyTrial]]:
        """All trials at once, so that one compiled program serves them; a few at a time when minutes are counted."""
        size = len(trials) if self.budget.cpu_minutes is None else SLICE
        return (trials[start : start + size] for start in range(0, len(trials), size or 1))

    def _run(self, trials: Sequence[StudyTrial], rung: int) -> bool:
        seeds, rungs = self.study.rungs[rung], len(self.study.rungs)
        cells = [cell for spec in dict.fromkeys(t.spec for t in trials) for cell in self.study.cells(spec, seeds)]
        names = _numbers([trial.number for trial in trials])
        self.say(f"{names}: {seeds} x {len(self.study.problems)} environments each (rung {rung + 1} of {rungs})")
        store = _WithoutItems(self.store)
        return run_plan(cells, store, self.executor, self.workers, self.progress).interrupted


@dataclass(frozen=True)
class _WithoutItems:
    """A store that keeps scores but not the items they were averaged from: a study has thousands of cells."""

    store: SqlStore

    def done(self, cells: Iterable[Cell]) -> set[str]:
        return self.store.done(cells)

    def append(self, record: Record) -> None:
        scores = {name: replace(score, items=None) for name, score in record.scores.items()}
        self.store.append(replace(record, scores=scores))

    def records(
        self,
        problems: Collection[str] | None = None,
        agents: Collection[str] | None = None,
        items: bool = False,
        pictures: bool = False,
    ) -> Iterator[Record]:
        return self.store.records(problems, agents, items, pictures)


def _silent(text: str) -> None:
    """Nobody listens."""


def _numbers(numbers: Sequence[int]) -> str:
    """`trials 3-6, 9` for people."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"{'trial' if len(numbers) == 1 else 'trials'} {shown}"
