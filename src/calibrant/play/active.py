"""Pool-based active learning: ask for the label of the candidate that a rule prefers, learn from it, go on.

Every candidate has one label, drawn with the problem, that all agents and rules get to see when they ask for it; none
is asked for twice. Between labels the agent takes `updates` gradient steps on what it has seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from calibrant.nets.trees import tree
from calibrant.play.learning import Position, Schooling, imagine, learn
from calibrant.play.replay import push
from calibrant.rules.acting import highest
from calibrant.rules.priorities import PRIORITIES
from calibrant.train.online import Learner
from calibrant.types import Array, Key


@tree
@dataclass(frozen=True)
class Pool:
    """The candidates and their labels."""

    table: Array  # [candidates, inputs]
    labels: Array  # [candidates] int32


def acquire(
    learner: Learner,
    schooling: Schooling,
    priority: str,
    looks: int,
    pool: Pool,
    key: Key,
    position: Position,
    first: Array,  # labels that were asked for before
    last: Array,  # labels that will have been asked for
) -> Position:
    """The position after the labels number `first` to `last`; one program for any number of them."""
    notes = learner.notes(position.pupil.fixed, pool.table)
    prefer, chance = PRIORITIES[priority], jax.random.fold_in(key, 1)

    def advance(step: Array, position: Position) -> Position:
        imagining, ruling, breaking, training = jax.random.split(jax.random.fold_in(chance, step), 4)
        asked = position.counts.sum(axis=1) > 0
        wanted = prefer(ruling, _opinions(learner, position, pool, imagining, looks, notes))
        row = highest(breaking, jnp.where(asked, -jnp.inf, wanted))
        replay = push(position.replay, step, row, pool.labels[row], jnp.ones(()))
        pupil = learn(learner, schooling, position.pupil, training, replay, step + 1, pool.table, notes)
        return Position(pupil, replay, position.counts.at[row, 1].add(1))

    reached: Position = jax.lax.fori_loop(first, last, advance, position)
    return reached


def ask(learner: Learner, looks: int, pool: Pool, key: Key, position: Position, x: Array) -> Array:
    """Log-probabilities of the belief's worlds at inputs x, [worlds, batch, classes]."""
    fixed = position.pupil.fixed
    notes, worlds = learner.notes(fixed, x), imagine(learner, position, pool.table, key, looks)
    return jax.nn.log_softmax(jax.lax.map(lambda world: learner.answer(world, fixed, x, notes), worlds))


def _opinions(learner: Learner, position: Position, pool: Pool, key: Key, looks: int, notes: Any) -> Array:
    """Probabilities of the worlds at all candidates, [worlds, candidates, classes]."""
    worlds = imagine(learner, position, pool.table, key, looks)
    return jax.vmap(lambda one: jax.nn.softmax(learner.answer(one, position.pupil.fixed, pool.table, notes)))(worlds)
