"""A chunk of bandits: the arrays that its program takes, and the regret of every step as the book that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from calibrant import registry, seeds
from calibrant.engine.compiled import compiled, numbers, stack
from calibrant.engine.players import player, schooling
from calibrant.engine.scoring import Stopwatch
from calibrant.metrics import score_game
from calibrant.metrics.regret import Course
from calibrant.play.bandit import Game, play
from calibrant.play.learning import begin
from calibrant.rules.acting import make_rule
from calibrant.types import Arena, Array, Cell, Scores

CALLS = 50  # stretches of a game
NEVER = -30.0  # the logarithm of a probability that is zero


class BanditGames:
    def __init__(self, lanes: Sequence[Cell]) -> None:
        problems = [registry.resolve("problems", cell.problem) for cell in lanes]
        self._arenas: list[Arena] = [problem.sample(cell.seed) for problem, cell in zip(problems, lanes, strict=True)]
        self._steps = int(problems[0].steps)
        order = [arena.order for arena in self._arenas if arena.order is not None]
        games = Game(
            jnp.asarray(np.stack([arena.table for arena in self._arenas])),
            jnp.asarray(np.stack([arena.reward for arena in self._arenas]), jnp.float32),
            jnp.stack([luck(cell) for cell in lanes]),
            jnp.asarray(np.stack(order), jnp.int32) if order else None,
            self._arenas[0].arms,
        )
        told = [player(cell, arena.facts, _true_logits(arena)) for cell, arena in zip(lanes, self._arenas, strict=True)]
        self.fixed = (
            stack(told),
            stack([numbers(arena.facts) for arena in self._arenas]),
            stack([schooling(problem) for problem in problems]),
            stack([make_rule(p.rule, p.looks, p.epsilon, p.bonus) for p in problems]),
            games,
            jnp.stack([seeds.jax_key(*cell.chance, "agent") for cell in lanes]),
        )
        self.begin = _begin
        self.book = np.zeros((len(lanes), self._steps), np.float32)

    def stretches(self, first: int) -> list[int]:
        return equal_stretches(self._steps, first)

    def advance(self, positions: Any, first: int, last: int, book: Array) -> tuple[Any, Stopwatch]:
        arguments = (*self.fixed, positions, jnp.int32(first))
        program, making = compiled(_play, arguments, (last - first,))
        positions, regrets = program(*arguments)
        book[:, first:last] = np.asarray(regrets)
        return positions, making

    def scores(self, lane: int, book: Array) -> dict[str, Scores]:
        return score_game(Course(book[lane], self._arenas[lane].reward, self._arenas[lane].order))


def equal_stretches(steps: int, first: int) -> list[int]:
    """Where stretches end, of equal length but for the last, wherever a game goes on: one program plays them all."""
    length = -(-steps // CALLS)
    return [min(start + length, steps) for start in range(first, steps, length)]


def luck(cell: Cell) -> Any:
    """The key of a game's rewards: not the agent's, so that agents that play the same arm see the same reward."""
    return seeds.jax_key(cell.problem.partition("?")[0], cell.seed, "luck")


def _begin(agents: Any, facts: Any, schools: Any, rules: Any, games: Game, keys: Any) -> Any:
    def one(agent: Any, known: Any, school: Any, game: Game, key: Any) -> Any:
        return begin(agent.online(known), school, game.table, key)

    return jax.vmap(one)(agents, facts, schools, games, keys)


def _play(
    agents: Any, facts: Any, schools: Any, rules: Any, games: Game, keys: Any, positions: Any, first: Array, steps: int
) -> tuple[Any, Array]:
    def one(agent: Any, known: Any, school: Any, rule: Any, game: Game, key: Any, position: Any) -> Any:
        return play(agent.online(known), school, rule, game, key, position, first, steps)

    played: tuple[Any, Array] = jax.vmap(one)(agents, facts, schools, rules, games, keys, positions)
    return played


def _true_logits(arena: Arena) -> Array:
    """[rows, classes] from the reward probabilities of arms."""
    reward = np.asarray(arena.reward, np.float64)
    chance = np.concatenate([1 - reward, reward], axis=1) if arena.arms == (1,) else reward
    return np.maximum(np.log(np.maximum(chance, np.exp(NEVER))), NEVER)
