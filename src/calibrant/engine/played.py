"""Plays a chunk of games, stretch by stretch.

Agents that can learn step by step, those with a method `online`, are played by one compiled program for all lanes;
others are fitted anew as what they have seen grows. Between stretches Ctrl-C is heard, a checkpoint may be kept, and
whoever keeps the score may look at where the games stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from calibrant import registry
from calibrant.engine.active_games import ActiveGames
from calibrant.engine.bandit_games import BanditGames
from calibrant.engine.checkpoints import Checkpoints
from calibrant.engine.cohorts import Task
from calibrant.engine.compiled import compiled
from calibrant.engine.machine import peak_memory_mb
from calibrant.engine.players import learns_by_step
from calibrant.engine.refit_games import RefitActive, RefitBandit
from calibrant.engine.scoring import Stopwatch, failure, origin
from calibrant.problems.games import BanditGame
from calibrant.types import Array, Cell, Cost, Record, Scores


class Games(Protocol):
    """The games of a chunk, as the programs that play them and the book that is kept of them."""

    @property
    def fixed(self) -> tuple[Any, ...]: ...  # arguments that every program takes first, leaves [lanes, ...]
    @property
    def book(self) -> Array: ...  # what is written down, empty: [lanes, ...]
    @property
    def begin(self) -> Callable[..., Any]: ...  # of `fixed`; gives positions, leaves [lanes, ...]
    def stretches(self, first: int) -> list[int]: ...  # the steps at which the stretches after step `first` end
    def advance(self, positions: Any, first: int, last: int, book: Array) -> tuple[Any, Stopwatch]: ...
    def scores(self, lane: int, book: Array) -> dict[str, Scores]: ...


def is_played(task: Task) -> bool:
    return bool(getattr(registry.resolve("problems", task.cells[0].problem), "played", False))


def make_games(task: Task) -> Games:
    lanes = (task.cells + task.cells[:1] * task.width)[: task.width]
    problem = registry.resolve("problems", task.cells[0].problem)
    by_step = learns_by_step(task.cells[0])
    if isinstance(problem, BanditGame):
        return BanditGames(lanes) if by_step else RefitBandit(lanes)
    return ActiveGames(lanes) if by_step else RefitActive(lanes)


def run_played(task: Task) -> list[Record]:
    """One record per cell of the task, in order."""
    games = make_games(task)
    start, making = compiled(games.begin, games.fixed, ())
    positions, book, spent, first = start(*games.fixed), games.book, np.zeros(2), 0
    with Checkpoints(task) as checkpoints:
        if (kept := checkpoints.load((positions, book, spent))) is not None:
            first, (positions, book, spent) = kept
        for last in games.stretches(first):
            with Stopwatch() as whole:
                positions, compiling = games.advance(positions, first, last, book)
            making.cpu, making.wall = making.cpu + compiling.cpu, making.wall + compiling.wall
            spent = spent + np.array([whole.cpu - compiling.cpu, whole.wall - compiling.wall])
            first = last
            checkpoints.offer(first, (positions, book, spent))
    cost = Cost(
        compile_cpu_seconds=making.cpu / len(task.cells),
        compile_wall_seconds=making.wall / len(task.cells),
        fit_cpu_seconds=float(spent[0]) / task.width,
        fit_wall_seconds=float(spent[1]) / task.width,
        peak_memory_mb=peak_memory_mb(),
        parameters=sum(leaf.size for leaf in jax.tree.leaves(_trained(positions))) // task.width,
        cohort=task.width,
    )
    return [_record(cell, lane, games, positions, book, cost) for lane, cell in enumerate(task.cells)]


def _trained(positions: Any) -> Any:
    """What is learned from step to step; nothing for agents that are fitted anew."""
    return positions.pupil.trained if hasattr(positions, "pupil") else ()


def _record(cell: Cell, lane: int, games: Games, positions: Any, book: Array, cost: Cost) -> Record:
    learned = [
        np.asarray(leaf[lane]) for leaf in jax.tree.leaves(positions) if jnp.issubdtype(leaf.dtype, jnp.floating)
    ]
    if not all(np.isfinite(leaf).all() for leaf in learned):
        return failure(cell, "what it learned is not finite at the end of the game", cost)
    return Record(cell, games.scores(lane, book), cost, origin(cell))
