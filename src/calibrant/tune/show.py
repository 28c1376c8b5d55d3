"""What a study found: its trials best first, with their gap to the best, their cost, and what can be learnt from them.

Trials are compared on the environments that they share with the best one: the gap is the mean of the paired
differences, with a standard error stratified by setting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.engine.ledger import StudyTrial
from calibrant.engine.store import SqlStore
from calibrant.stats.paired import differences
from calibrant.stats.panel import make_panel
from calibrant.tune import TUNING_SEEDS
from calibrant.tune.findings import expected_best, importance
from calibrant.tune.rungs import best_of
from calibrant.tune.spaces import point_of
from calibrant.tune.study import Study, read_study
from calibrant.types import CalibrantError

_ORDER = ("complete", "stopped", "open", "failed")
_CURVE = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)  # numbers of trials that the printed curve names


@dataclass(frozen=True)
class Line:
    """A trial, and the paired difference of its metric to the best trial's; nan where there is nothing to compare."""

    trial: StudyTrial
    gap: float = math.nan
    gap_se: float = math.nan


@dataclass(frozen=True)
class Summary:
    """A study and all that can be said about it."""

    study: Study
    lines: tuple[Line, ...]  # best first
    importance: dict[str, float]
    expected_best: tuple[float, ...]  # of 1, 2, ... trials

    @property
    def best(self) -> Line | None:
        """None until a trial has been measured on every tuning environment."""
        return self.lines[0] if self.lines and self.lines[0].trial.state == "complete" else None

    @property
    def given(self) -> Line:
        """The agent as it was given."""
        return next(line for line in self.lines if line.trial.number == 0)

    @property
    def cost(self) -> float:
        return math.fsum(line.trial.cost for line in self.lines)

    def as_dict(self) -> dict[str, Any]:
        return {
            "study": self.study.name,
            "settings": self.study.about | {"first_seed": TUNING_SEEDS, "rungs": list(self.study.rungs)},
            "better": "lower" if self.study.minimise else "higher",
            "best": None if self.best is None else self.best.trial.spec,
            "cpu_seconds": self.cost,
            "trials": [
                asdict(line.trial) | {"gap": _finite(line.gap), "gap_se": _finite(line.gap_se)} for line in self.lines
            ],
            "importance": self.importance,
            "expected_best": [{"trials": k, "objective": one} for k, one in enumerate(self.expected_best, 1)],
        }


def summarise(study: Study, store: SqlStore) -> Summary:
    trials = store.trials(study.name)
    values = {trial.number: trial.objective for trial in trials if trial.objective is not None}
    points = [point_of(trial.spec, study.searched) for trial in trials if trial.number in values]
    return Summary(
        study=study,
        lines=tuple(sorted(_lines(study, store, trials), key=lambda line: _rank(study, line.trial))),
        importance=importance(points, list(values.values())),
        expected_best=expected_best(list(values.values()), study.minimise),
    )


def summaries(store: SqlStore, **wanted: str | None) -> list[Summary]:
    """The studies of a store that have these settings; None is any.

    Those of older definitions of an agent, a problem or a metric are left out, as their records are everywhere else.
    """
    asked = {name: one for name, one in wanted.items() if one is not None}
    kept = {name: about for name, about in store.studies().items() if asked.items() <= about.items()}
    return [summarise(read_study(about), store) for name, about in kept.items() if _meant_today(name, about)]


def render(summary: Summary) -> str:
    """The summary as text."""
    return "\n".join(_text(summary))


def _meant_today(name: str, about: Mapping[str, Any]) -> bool:
    try:
        return read_study(about).name == name
    except (CalibrantError, OSError):  # its agent, its file, its suite or its problems are not there any more
        return False


# --- comparing ------------------------------------------------------------------------------------


def _lines(study: Study, store: SqlStore, trials: Sequence[StudyTrial]) -> list[Line]:
    best = best_of(study, trials)
    if best is None:
        return [Line(trial) for trial in trials]
    specs = list(dict.fromkeys(trial.spec for trial in trials if trial.rungs))
    ids = {cell.id for spec in specs for cell in study.cells(spec, study.seeds)}
    panel = make_panel((r for r in store.records(study.problems, specs) if r.cell.id in ids), [study.metric])
    values = panel.columns[study.metric].values
    gaps = differences(values, values[panel.agents.index(best.spec)], panel.strata)
    where = {spec: row for row, spec in enumerate(panel.agents)}
    return [
        Line(trial, float(gaps.mean[where[trial.spec]]), float(gaps.se[where[trial.spec]]))
        if trial.rungs
        else Line(trial)
        for trial in trials
    ]


def _rank(study: Study, trial: StudyTrial) -> tuple[int, float, int]:
    """Complete trials, then stopped ones, each best first."""
    value = trial.rungs[-1][1] if trial.objective is None and trial.rungs else trial.objective
    signed = math.inf if value is None else value if study.minimise else -value
    return _ORDER.index(trial.state), signed, trial.number


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


# --- printing -------------------------------------------------------------------------------------


def _text(summary: Summary) -> Iterator[str]:
    study, lines = summary.study, summary.lines
    states = {state: sum(line.trial.state == state for line in lines) for state in _ORDER}
    counted = ", ".join(f"{count} {state}" for state, count in states.items() if count)
    yield f"study {study.name}: {len(lines)} trials ({counted}), {summary.cost:.1f} CPU seconds"
    where = "".join(f", {field}={value}" for field, value in study.where.items())
    yield (
        f"{study.metric}, {'lower' if study.minimise else 'higher'} is better; {study.preset}{where}: "
        f"{len(study.problems)} settings x {study.seeds} tuning seeds from {TUNING_SEEDS}"
    )
    name = study.metric[:12]
    yield f"trial  {'state':8s} seeds {name:>12s} {'gap':>10s} {'+- se':>8s} {'CPU s':>8s}  spec"
    yield from map(_row, lines)
    if summary.best and summary.best.trial.number:
        given = summary.given
        yield f"as given: {given.gap:+.5f} +- {given.gap_se:.5f} against the best"
    if summary.importance:
        yield "importance: " + ", ".join(f"{name} {share:.2f}" for name, share in summary.importance.items())
    curve = summary.expected_best
    named = [k for k in _CURVE if k < len(curve)] + [len(curve)] * bool(curve)
    if named:
        yield "expected best of k trials: " + ", ".join(f"{k}: {curve[k - 1]:.5f}" for k in named)


def _row(line: Line) -> str:
    trial = line.trial
    seeds = trial.rungs[-1][0] if trial.rungs else 0
    shown = trial.rungs[-1][1] if trial.objective is None and trial.rungs else trial.objective
    number = f"{'':>12s}" if shown is None else f"{shown:12.5f}"
    gap = f"{line.gap:+10.5f} {line.gap_se:8.5f}" if np.isfinite(line.gap) else " " * 19
    text = f"{trial.number:5d}  {trial.state:8s} {seeds:5d} {number} {gap} {trial.cost:8.2f}  {trial.spec}"
    return text if trial.reason is None else f"{text}  ({trial.reason})"
