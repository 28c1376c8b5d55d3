"""From answers to a record: what compiled and black-box cells share."""

from __future__ import annotations

import time
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from calibrant import metrics, registry
from calibrant.engine.machine import peak_memory_mb
from calibrant.engine.plan import definition
from calibrant.engine.provenance import provenance
from calibrant.metrics.long import Asked, long_scores
from calibrant.protocols import Belief
from calibrant.types import Answers, Array, CalibrantError, Cell, Cost, Instance, Record

PICTURE_SEED = 0  # one environment of every setting is drawn
PICTURE_WORLDS = 4


class Stopwatch:
    """CPU seconds of this process, all threads, and wall seconds of a `with` block."""

    cpu = wall = 0.0

    def __enter__(self) -> Stopwatch:
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.cpu, self.wall = time.process_time() - self._cpu, time.perf_counter() - self._wall


def sample_instance(cell: Cell) -> Instance:
    instance: Instance = registry.resolve("problems", cell.problem).sample(cell.seed)
    return instance


def must_be_taught(cell: Cell, agent: Any, instance: Instance) -> None:
    """Agents that learn from data are not asked about problems that have none."""
    if instance.facts.train_size == 0 and not getattr(agent, "untaught", False):
        raise CalibrantError(
            f"agent '{cell.agent}' learns from data and '{cell.problem}' has none: say train=1 or more"
        )


def all_inputs(cell: Cell, instance: Instance) -> Array:
    """The question's unique inputs, then the grid where a picture is drawn: a belief is asked only once."""
    question = instance.question
    if question.picture is None or cell.seed != PICTURE_SEED:
        return question.x
    return np.concatenate([question.x, question.picture])


def is_whole(belief: Belief, logp: Array) -> bool:
    """Whether these worlds are all that the belief holds: then nothing was left to chance."""
    return belief.atoms is not None and len(logp) >= belief.atoms


def finish(cell: Cell, instance: Instance, answers: Answers, cost: Cost, asked: Asked) -> Record:
    """Score the answers at `all_inputs`; answers that are not finite make a failed record, never a number."""
    finite = np.isfinite(answers.logp.sum(axis=(1, 2)))  # log-probabilities: no sum of finite ones overflows
    if not finite.all():
        share = f"{(~finite).sum()} of {len(finite)} worlds"
        return failure(cell, f"predictions are not finite in {share}, first in world {int(np.argmin(finite))}", cost)
    unique = len(instance.question.x)
    with Stopwatch() as watch:
        at_question = replace(answers, logp=answers.logp[:, :unique])
        key, long = f"{cell.problem}/{cell.seed}", instance.question.long
        scores = metrics.score(at_question, instance.question, instance.truth, key)
        if long is not None:
            scores |= long_scores(long, asked, key)
    spent = replace(
        cost,
        ask_cpu_seconds=cost.ask_cpu_seconds + watch.cpu,
        ask_wall_seconds=cost.ask_wall_seconds + watch.wall,
        peak_memory_mb=peak_memory_mb(),
    )
    picture = draw(instance, answers) if cell.seed == PICTURE_SEED else {}
    return Record(cell, scores, spent, origin(cell), picture)


def failure(cell: Cell, reason: str, cost: Cost | None = None) -> Record:
    return Record(cell, {}, cost or Cost(peak_memory_mb=peak_memory_mb()), origin(cell), reason=reason)


def origin(cell: Cell) -> dict[str, Any]:
    return provenance() | {"defined": definition(cell.problem, cell.agent)}


def draw(instance: Instance, answers: Answers) -> dict[str, Array]:
    """Data, truth, mean prediction and a few worlds on a grid: probabilities of class 1."""
    grid = instance.question.picture
    if grid is None or instance.environment is None:
        return {}
    seen = answers.logp[:, -len(grid) :, 1].astype(np.float64)
    return {
        "x": instance.train.x,
        "y": instance.train.y.astype(np.int8),
        "grid": grid,
        "truth": np.exp(instance.environment.logp(grid)[:, 1]).astype(np.float16),
        "mean": np.average(np.exp(seen), axis=0, weights=answers.weights).astype(np.float16),
        "worlds": np.exp(seen[:PICTURE_WORLDS]).astype(np.float16),
    }
