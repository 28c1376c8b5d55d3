"""What all games share: where a game stands, the worlds believed in there, and the steps that follow an observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

from calibrant.nets.trees import static, tree
from calibrant.play.replay import Replay, draw, empty
from calibrant.train.online import Learner, Seen
from calibrant.types import Array, Key


@tree
@dataclass(frozen=True)
class Schooling:
    """How an agent learns while it plays."""

    lr: Any = 1e-3  # of Adam
    batch: int = static(128)  # observations per gradient step, drawn with replacement
    updates: int = static(1)  # gradient steps per observation
    capacity: int = static(10_000)  # observations that are kept
    decay: str = static("paper")  # form of the annealed penalty


@tree
@dataclass(frozen=True)
class Pupil:
    """What a learner carries from step to step."""

    trained: Any
    fixed: Any
    moments: Any  # of Adam


@tree
@dataclass(frozen=True)
class Position:
    """Everything that a game carries from step to step."""

    pupil: Pupil
    replay: Replay
    counts: Array  # [rows, 2] how often each row was observed without and with a reward


def begin(learner: Learner, schooling: Schooling, table: Array, key: Key) -> Position:
    trained, fixed = learner.init(jax.random.fold_in(key, 0))
    pupil = Pupil(trained, fixed, optax.adam(schooling.lr).init(trained))
    return Position(pupil, empty(schooling.capacity), jnp.zeros((len(table), 2)))


def imagine(learner: Learner, position: Position, table: Array, key: Key, n: int) -> Any:
    """n worlds of the belief in force, or all there are; leaves [worlds, ...]."""
    pupil = position.pupil
    return learner.worlds(pupil.trained, pupil.fixed, key, n, Seen(table, position.counts))


def learn(
    learner: Learner,
    schooling: Schooling,
    pupil: Pupil,
    key: Key,
    replay: Replay,
    observed: Array,  # how many observations were made, at least 1
    table: Array,  # [rows, inputs]
    notes: Any,  # of the table's rows
) -> Pupil:
    """The gradient steps after an observation: mean negative log-likelihood plus strength / observed times penalty."""
    optimiser = optax.adam(schooling.lr)
    strength = learner.decay[schooling.decay] / observed

    def update(pupil: Pupil, key: Key) -> tuple[Pupil, None]:
        which, chance = jax.random.split(key)
        batch = draw(replay, which, observed, schooling.batch)

        def loss(trained: Any) -> Array:
            here = jax.tree.map(lambda leaf: leaf[batch.rows], notes)
            nll, penalty = learner.loss(
                trained, pupil.fixed, chance, table[batch.rows], here, lambda logits: feedback(logits, batch)
            )
            return nll + strength * penalty

        updates, moments = optimiser.update(jax.grad(loss)(pupil.trained), pupil.moments)
        return Pupil(optax.apply_updates(pupil.trained, updates), pupil.fixed, moments), None

    if schooling.updates == 1:
        return update(pupil, key)[0]
    return jax.lax.scan(update, pupil, jax.random.split(key, schooling.updates))[0]


def feedback(logits: Array, seen: Replay) -> Array:
    """Negative log-likelihood of rewards: the label was the arm's class (1), or any other class (0).

    With two classes and arm 1 this is the usual cross-entropy of the label.
    """
    logp = jax.nn.log_softmax(logits, axis=-1)
    judged = jnp.arange(logits.shape[-1]) == seen.arms[:, None]
    hit = jnp.where(judged, logp, 0.0).sum(axis=-1)
    miss = jax.nn.logsumexp(jnp.where(judged, -jnp.inf, logp), axis=-1)
    return -jnp.where(seen.rewards > 0.5, hit, miss)
