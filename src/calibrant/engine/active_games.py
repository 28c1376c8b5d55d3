"""A chunk of active learners: the book holds their scores at every mark, by the testbed's metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from calibrant import metrics, registry, seeds
from calibrant.agents.oracle import Informed
from calibrant.engine.compiled import compiled, numbers, stack
from calibrant.engine.players import player, schooling
from calibrant.engine.scoring import Stopwatch
from calibrant.play.active import Pool, acquire, ask
from calibrant.play.learning import begin
from calibrant.types import Answers, Array, Cell, Instance, Scores

CURVES = ("kl_tau1", "kl_tau10", "kl_tau10_dyadic", "accuracy", "ece")  # asked at every mark


class ActiveGames:
    def __init__(self, lanes: Sequence[Cell]) -> None:
        problems = [registry.resolve("problems", cell.problem) for cell in lanes]
        self._cells, self._problem = tuple(lanes), problems[0]
        self._instances: list[Instance] = [p.sample(cell.seed) for p, cell in zip(problems, lanes, strict=True)]
        told = [
            player(cell, one.facts, one.environment(one.train.x))
            for cell, one in zip(lanes, self._instances, strict=True)
        ]
        self.fixed = (
            stack(told),
            stack([numbers(instance.facts) for instance in self._instances]),
            stack([schooling(problem) for problem in problems]),
            stack([Pool(one.train.x, one.train.y) for one in self._instances]),
            jnp.stack([seeds.jax_key(*cell.chance, "agent") for cell in lanes]),
        )
        self.begin = _begin
        self.book = np.zeros((len(lanes), len(self._problem.marks), len(CURVES)))

    def stretches(self, first: int) -> list[int]:
        return [mark for mark in self._problem.marks if mark > first]

    def advance(self, positions: Any, first: int, last: int, book: Array) -> tuple[Any, Stopwatch]:
        bounds = (jnp.int32(first), jnp.int32(last))
        words = (self._problem.priority, self._problem.looks)
        program, making = compiled(_acquire, (*self.fixed, positions, *bounds), words)
        positions = jax.block_until_ready(program(*self.fixed, positions, *bounds))
        mark = self._problem.marks.index(last)
        for lane in range(len(set(self._cells))):  # lanes beyond are repeated cells
            found, asking = self._ask(lane, positions)
            making.cpu, making.wall = making.cpu + asking.cpu, making.wall + asking.wall
            book[lane, mark] = [found[name].mean for name in CURVES]
        return positions, making

    def scores(self, lane: int, book: Array) -> dict[str, Scores]:
        return curve_scores(book[lane])

    def _ask(self, lane: int, positions: Any) -> tuple[dict[str, Scores], Stopwatch]:
        cell, instance = self._cells[lane], self._instances[lane]
        agent, facts, _, pool, _ = jax.tree.map(lambda leaf: leaf[lane], self.fixed)
        position = jax.tree.map(lambda leaf: leaf[lane], positions)
        if isinstance(agent, Informed):  # of the question's inputs too
            agent = Informed(jnp.asarray(instance.truth.logp, jnp.float32))
        key, x = seeds.jax_key(*cell.chance, "worlds"), jnp.asarray(instance.question.x)
        program, making = compiled(_ask, (agent, facts, pool, key, position, x), (instance.question.worlds,))
        logp = np.asarray(program(agent, facts, pool, key, position, x))
        atoms = agent.online(instance.facts).atoms
        answers = Answers(logp, None, atoms is not None and len(logp) >= atoms)
        name = f"{cell.problem}/{cell.seed}"
        return metrics.score(answers, instance.question, instance.truth, name), making


def curve_scores(book: Array) -> dict[str, Scores]:
    """From scores [marks, curves]: the last by their own names; `curve_` is the mean over marks, its items a curve."""
    curves = {
        f"curve_{name}": Scores(float(points.mean()), n=len(points), items=points)
        for name, points in zip(CURVES, book.T, strict=True)
    }
    return {name: Scores(float(value)) for name, value in zip(CURVES, book[-1], strict=True)} | curves


def _begin(agents: Any, facts: Any, schools: Any, pools: Pool, keys: Any) -> Any:
    def one(agent: Any, known: Any, school: Any, pool: Pool, key: Any) -> Any:
        return begin(agent.online(known), school, pool.table, key)

    return jax.vmap(one)(agents, facts, schools, pools, keys)


def _acquire(
    agents: Any, facts: Any, schools: Any, pools: Pool, keys: Any, positions: Any, first: Array, last: Array,
    priority: str, looks: int,
) -> Any:  # fmt: skip
    def one(agent: Any, known: Any, school: Any, pool: Pool, key: Any, position: Any) -> Any:
        return acquire(agent.online(known), school, priority, looks, pool, key, position, first, last)

    return jax.vmap(one)(agents, facts, schools, pools, keys, positions)


def _ask(agent: Any, facts: Any, pool: Pool, key: Any, position: Any, x: Array, worlds: int) -> Array:
    return ask(agent.online(facts), worlds, pool, key, position, x)
