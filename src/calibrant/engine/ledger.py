"""The rows of tuning: a study is a name with its settings, a trial is one configuration and how far it came.

What a trial's cells scored and cost stands in the records, like any other cell's; a trial's row only sums it up.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any, Literal

from calibrant.types import CalibrantError

State = Literal["open", "complete", "stopped", "failed"]


@dataclass(frozen=True)
class StudyTrial:
    """One configuration of a study.

    `open` trials are asked for and not judged yet, `complete` ones were measured on every tuning environment, `stopped`
    ones were given up before, `failed` ones have a cell that failed.
    """

    study: str
    number: int
    batch: int  # trials of a batch are asked for together, before any of them is measured
    spec: str
    created: str
    state: State = "open"
    objective: float | None = None  # None until judged, and of failed trials
    rungs: tuple[tuple[int, float], ...] = ()  # (seeds per setting, mean of the metric over all settings)
    cost: float = 0.0  # CPU seconds of all its cells
    reason: str | None = None  # why it failed


def encode(trial: StudyTrial) -> dict[str, Any]:
    numbers = [trial.cost, trial.objective or 0.0, *(mean for _, mean in trial.rungs)]
    if not all(map(math.isfinite, numbers)):
        raise CalibrantError(f"trial {trial.number} of study {trial.study} should have finite numbers only")
    return dataclasses.asdict(trial) | {"rungs": json.dumps(trial.rungs)}


def decode(row: dict[str, Any]) -> StudyTrial:
    rungs = tuple((int(seeds), float(mean)) for seeds, mean in json.loads(row["rungs"]))
    return StudyTrial(**row | {"rungs": rungs})
