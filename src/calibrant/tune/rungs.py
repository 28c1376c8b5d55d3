"""How trials are measured and judged: rungs of ever more seeds, and who goes on to the next.

A trial is measured by the mean of the metric over all settings and the seeds of a rung. The best third of all that have
reached a rung goes on; trial 0, the agent as it is given, always does, so that a study says what tuning is worth. A
trial with a failed cell is a failed trial.

The objective of a stopped trial is its mean at its last rung plus what the other environments added to that mean in the
trials that went on to all of them: objectives then speak of the same environments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from calibrant.engine.ledger import State, StudyTrial
from calibrant.engine.store import SqlStore
from calibrant.stats.panel import measure
from calibrant.tune.study import KEPT, Study
from calibrant.types import CalibrantError, Record


def measured(study: Study, store: SqlStore, trials: Sequence[StudyTrial], rung: int) -> list[StudyTrial]:
    """The trials with their means at every rung up to this one, as far as their cells are there, and their cost."""
    seeds = study.rungs[rung]
    wanted = {trial.spec: [cell.id for cell in study.cells(trial.spec, seeds)] for trial in trials}
    ids = {cell for cells in wanted.values() for cell in cells}
    kept = store.records(study.problems, list(wanted))
    found = {record.cell.id: record for record in kept if record.cell.id in ids}
    return [_summed(study, trial, [found.get(cell) for cell in wanted[trial.spec]], rung) for trial in trials]


def going_on(study: Study, past: Iterable[StudyTrial], batch: Sequence[StudyTrial], rung: int) -> list[StudyTrial]:
    """Those of the batch that have reached this rung and deserve the next."""
    reached = [trial for trial in batch if len(trial.rungs) > rung and trial.reason is None]
    means = [trial.rungs[rung][1] for trial in (*past, *reached) if len(trial.rungs) > rung]
    best_first = sorted(means, reverse=not study.minimise)
    bar = best_first[math.ceil(len(means) / KEPT) - 1] if means else math.nan
    return [trial for trial in reached if trial.number == 0 or _as_good(study, trial.rungs[rung][1], bar)]


def judged(study: Study, past: Iterable[StudyTrial], batch: Sequence[StudyTrial]) -> list[StudyTrial]:
    """The batch with final states and objectives, once all of it has gone as far as it may."""
    ended = [replace(trial, state=_state(study, trial)) for trial in batch]
    whole = [trial for trial in (*past, *ended) if trial.state == "complete"]
    return [trial if trial.state == "failed" else replace(trial, objective=_objective(trial, whole)) for trial in ended]


def best_of(study: Study, trials: Iterable[StudyTrial]) -> StudyTrial | None:
    """The best of the trials that were measured on every tuning environment; the first of several equals."""
    whole = [trial for trial in trials if trial.state == "complete"]
    pick = min if study.minimise else max
    return pick(whole, key=lambda trial: trial.rungs[-1][1]) if whole else None


def _summed(study: Study, trial: StudyTrial, records: Sequence[Record | None], rung: int) -> StudyTrial:
    there = [record for record in records if record is not None]
    cost = math.fsum(cpu_seconds(record) for record in there)
    broken = next((record for record in there if record.failed), None)
    if broken is not None:
        return replace(trial, rungs=(), cost=cost, reason=f"{broken.cell.problem}: {broken.reason}")
    means = []
    for seeds in study.rungs[: rung + 1]:
        part = records[: seeds * len(study.problems)]
        if None in part:
            break
        values = [_value(study, record) for record in part if record is not None]
        means.append((seeds, math.fsum(values) / len(values)))
    return replace(trial, rungs=tuple(means), cost=cost, reason=None)


def cpu_seconds(record: Record) -> float:
    return record.cost.compile_cpu_seconds + record.cost.fit_cpu_seconds + record.cost.ask_cpu_seconds


def _value(study: Study, record: Record) -> float:
    score = measure(record, study.metric)
    if score is None:
        raise CalibrantError(f"metric '{study.metric}' is not scored on '{record.cell.problem}'")
    return score.mean


def _as_good(study: Study, mean: float, bar: float) -> bool:
    return mean <= bar if study.minimise else mean >= bar


def _state(study: Study, trial: StudyTrial) -> State:
    if trial.reason is not None:
        return "failed"
    return "complete" if len(trial.rungs) == len(study.rungs) else "stopped"


def _objective(trial: StudyTrial, whole: Sequence[StudyTrial]) -> float:
    last = len(trial.rungs) - 1
    added = [other.rungs[-1][1] - other.rungs[last][1] for other in whole]
    return trial.rungs[last][1] + (math.fsum(added) / len(added) if trial.state == "stopped" and added else 0.0)
