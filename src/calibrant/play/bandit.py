"""The bandit: play an arm, see its reward, learn from it.

A game is a table of inputs and the reward probability of every row and arm. Either all rows are offered at every step
and an arm is a row (the Neural Testbed's bandit), or one row a step is offered, the context, and an arm is a class
(a classification dataset as a bandit). An arm's value in a world is the probability of its class.

Osband et al., "The Neural Testbed", NeurIPS 2022, appendix E, Algorithm 4. Regret is expected regret: the reward
probability of the best arm on offer minus that of the arm played. Rewards come from the game's own random numbers, so
that agents that play the same arm at the same step see the same reward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from calibrant.nets.trees import static, tree
from calibrant.play.learning import Position, Schooling, imagine, learn
from calibrant.play.replay import push
from calibrant.rules.acting import ActingRule, highest
from calibrant.train.online import Learner
from calibrant.types import Array, Key


@tree
@dataclass(frozen=True)
class Game:
    """What is played."""

    table: Array  # [rows, inputs]
    reward: Array  # [rows, arms] probability of a reward
    luck: Array  # the key of the rewards
    order: Any = None  # [steps] the row offered at each step; None: all rows are offered at every step
    arms: tuple[int, ...] = static((1,))  # the class that an arm of a row stands for


def play(
    learner: Learner,
    schooling: Schooling,
    rule: ActingRule,
    game: Game,
    key: Key,
    position: Position,
    first: Array,  # step to begin with, counted from 0
    steps: int,
) -> tuple[Position, Array]:
    """The position after `steps` more steps, and their regrets [steps]."""
    notes = learner.notes(position.pupil.fixed, game.table)
    arms = jnp.asarray(game.arms)
    chance = jax.random.fold_in(key, 1)

    def advance(position: Position, step: Array) -> tuple[Position, Array]:
        imagining, ruling, breaking, training = jax.random.split(jax.random.fold_in(chance, step), 4)
        offered, x, known = _offer(game, notes, step)
        values = _values(learner, rule, position, game, imagining, x, known, arms)
        place = highest(breaking, rule(ruling, values))
        row, arm = offered[place // len(arms)], place % len(arms)
        on_offer = game.reward[offered]
        chosen = game.reward[row, arm]
        reward = (jax.random.uniform(jax.random.fold_in(game.luck, step)) < chosen).astype(jnp.float32)
        replay = push(position.replay, step, row, arms[arm], reward)
        pupil = learn(learner, schooling, position.pupil, training, replay, step + 1, game.table, notes)
        return Position(pupil, replay, position.counts.at[row, reward.astype(int)].add(1)), on_offer.max() - chosen

    return jax.lax.scan(advance, position, first + jnp.arange(steps))


def _offer(game: Game, notes: Any, step: Array) -> tuple[Array, Array, Any]:
    """The rows on offer [offered], their inputs and notes."""
    if game.order is None:
        return jnp.arange(len(game.table)), game.table, notes
    row = game.order[step][None]
    return row, game.table[row], jax.tree.map(lambda leaf: leaf[row], notes)


def _values(
    learner: Learner, rule: ActingRule, position: Position, game: Game, key: Key, x: Array, notes: Any, arms: Array
) -> Array:
    """What each world says of each arm on offer, [worlds, offered * arms]."""
    if rule.worlds == 0:
        return jnp.zeros((1, len(x) * len(arms)))

    def ask(world: Any) -> Array:
        return jax.nn.softmax(learner.answer(world, position.pupil.fixed, x, notes))[:, arms].reshape(-1)

    return jax.vmap(ask)(imagine(learner, position, game.table, key, rule.worlds))
