"""Bandits and active learning by agents that learn all at once: one game at a time, step by step in NumPy.

The rules, the rewards and the scores are those of the compiled games; only learning differs. See `engine.refitting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from calibrant import metrics, registry, seeds
from calibrant.engine.active_games import CURVES, curve_scores
from calibrant.engine.bandit_games import equal_stretches, luck
from calibrant.engine.compiled import compiled
from calibrant.engine.refitting import Asked, Refitted, last_fit
from calibrant.engine.scoring import Stopwatch
from calibrant.metrics import score_game
from calibrant.metrics.regret import Course
from calibrant.nets.trees import tree
from calibrant.rules.acting import highest, make_rule
from calibrant.rules.priorities import PRIORITIES
from calibrant.types import Answers, Arena, Array, CalibrantError, Cell, Instance, Scores

WORLDS = 100  # held between two fits


@tree
@dataclass(frozen=True)
class History:
    """What was observed: rows of the table and labels, in order; places beyond the present step are zero."""

    rows: Array  # [1, steps] int32
    labels: Array  # [1, steps] int32


class _Refitting:
    """What both kinds of game share: the history, and the belief in force."""

    def __init__(self, cell: Cell, facts: Any, table: Array, steps: int, worlds: int) -> None:
        self.fixed = (jnp.zeros((1, steps), jnp.int32),)
        self.begin = _empty
        self._agent, self._table, self._steps, self._worlds = Refitted(cell, facts), table, steps, worlds
        self._known: tuple[int, Asked, Array] | None = None
        self._key = seeds.jax_key(*cell.chance, "agent")

    def _belief(self, rows: Array, labels: Array, seen: int) -> tuple[Asked, Array]:
        """Who to ask after `seen` observations, and the worlds' probabilities at the table [worlds, rows, classes]."""
        size = last_fit(seen)
        if self._known is None or self._known[0] != size:
            asked = self._agent.fit(self._table[rows[:size]], labels[:size])
            self._known = size, asked, np.exp(asked(self._table, self._worlds)[0]).astype(np.float32)
        return self._known[1:]


class RefitBandit(_Refitting):
    def __init__(self, lanes: Sequence[Cell]) -> None:
        (cell,) = lanes
        problem = registry.resolve("problems", cell.problem)
        self._arena: Arena = problem.sample(cell.seed)
        if self._arena.arms != (1,):
            raise CalibrantError(
                f"agent '{cell.agent}' learns from labels, and this game says of a miss only that it was one: "
                "agents that learn step by step can play it"
            )
        self._rule = make_rule(problem.rule, problem.looks, problem.epsilon, problem.bonus)
        super().__init__(cell, self._arena.facts, self._arena.table, problem.steps, max(WORLDS, self._rule.worlds))
        self._reward = np.asarray(self._arena.reward[:, 0], np.float32)
        self._luck = np.asarray(jax.vmap(_luck, (None, 0))(luck(cell), jnp.arange(self._steps)))
        self.book = np.zeros((1, self._steps), np.float32)

    def stretches(self, first: int) -> list[int]:
        return equal_stretches(self._steps, first)

    def advance(self, positions: History, first: int, last: int, book: Array) -> tuple[History, Stopwatch]:
        rows, labels = (np.array(part[0]) for part in (positions.rows, positions.labels))
        before = self._agent.compiling.cpu, self._agent.compiling.wall
        for step in range(first, last):
            values = np.full((1, len(self._table)), 0.5, np.float32)  # nothing is known before the first reward
            if step:
                values = self._belief(rows, labels, step)[1][:, :, 1]
            given = (self._rule, jnp.asarray(values), jax.random.fold_in(self._key, step))
            row = int(compiled(_choose, given, ())[0](*given))
            rows[step], labels[step] = row, self._luck[step] < self._reward[row]
            book[0, step] = self._reward.max() - self._reward[row]
        return History(rows[None], labels[None]), _since(self._agent.compiling, *before)

    def scores(self, lane: int, book: Array) -> dict[str, Scores]:
        return score_game(Course(book[lane], self._arena.reward))


class RefitActive(_Refitting):
    def __init__(self, lanes: Sequence[Cell]) -> None:
        (self._cell,) = lanes
        self._problem = registry.resolve("problems", self._cell.problem)
        self._instance: Instance = self._problem.sample(self._cell.seed)
        table = np.asarray(self._instance.train.x)
        super().__init__(self._cell, self._instance.facts, table, self._problem.labels, self._problem.looks)
        self.book = np.zeros((1, len(self._problem.marks), len(CURVES)))

    def stretches(self, first: int) -> list[int]:
        return [mark for mark in self._problem.marks if mark > first]

    def advance(self, positions: History, first: int, last: int, book: Array) -> tuple[History, Stopwatch]:
        rows, labels = (np.array(part[0]) for part in (positions.rows, positions.labels))
        before = self._agent.compiling.cpu, self._agent.compiling.wall
        for step in range(first, last):
            classes = self._instance.facts.classes
            opinions = np.full((1, len(self._table), classes), 1 / classes, np.float32)
            if step:
                opinions = self._belief(rows, labels, step)[1]
            taken = np.isin(np.arange(len(self._table)), rows[:step])
            given = (jnp.asarray(opinions), jnp.asarray(taken), jax.random.fold_in(self._key, step))
            row = int(compiled(_prefer, given, (self._problem.priority,))[0](*given))
            rows[step], labels[step] = row, self._instance.train.y[row]
        question, truth = self._instance.question, self._instance.truth
        logp, whole = self._belief(rows, labels, last)[0](question.x, question.worlds)
        found = metrics.score(Answers(logp, None, whole), question, truth, f"{self._cell.problem}/{self._cell.seed}")
        book[0, self._problem.marks.index(last)] = [found[name].mean for name in CURVES]
        return History(rows[None], labels[None]), _since(self._agent.compiling, *before)

    def scores(self, lane: int, book: Array) -> dict[str, Scores]:
        return curve_scores(book[lane])


def _empty(places: Array) -> History:
    return History(places, places)


def _luck(key: Any, step: Array) -> Array:
    """As the compiled game draws it."""
    return jax.random.uniform(jax.random.fold_in(key, step))


def _choose(rule: Any, values: Array, key: Any) -> Array:
    """The row to play: the rule is given as many of the worlds as it wants."""
    drawing, ruling, breaking = jax.random.split(key, 3)
    some = values
    if 0 < rule.worlds < len(values):
        some = values[jax.random.choice(drawing, len(values), (rule.worlds,), replace=False)]
    return highest(breaking, rule(ruling, some))


def _prefer(opinions: Array, taken: Array, key: Any, priority: str) -> Array:
    ruling, breaking = jax.random.split(key)
    return highest(breaking, jnp.where(taken, -jnp.inf, PRIORITIES[priority](ruling, opinions)))


def _since(watch: Stopwatch, cpu: float, wall: float) -> Stopwatch:
    made = Stopwatch()
    made.cpu, made.wall = watch.cpu - cpu, watch.wall - wall
    return made
