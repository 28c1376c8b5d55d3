"""The replay buffer: a ring of the latest observations, from which minibatches are drawn uniformly with replacement.

An observation is a row of the game's table, the arm (a class) that was judged, and the reward. Positions follow from
the step alone, so that the buffers of all lanes are written at one place, without a scatter.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from calibrant.nets.trees import tree
from calibrant.types import Array, Key


@tree
@dataclass(frozen=True)
class Replay:
    """Three rings of equal capacity."""

    rows: Array  # [capacity] int32
    arms: Array  # [capacity] int32
    rewards: Array  # [capacity] float32

    @property
    def capacity(self) -> int:
        return int(self.rows.shape[-1])


def empty(capacity: int) -> Replay:
    return Replay(jnp.zeros(capacity, jnp.int32), jnp.zeros(capacity, jnp.int32), jnp.zeros(capacity))


def push(replay: Replay, step: Array, row: Array, arm: Array, reward: Array) -> Replay:
    """The observation of a step, counted from 0; the oldest makes room."""
    place = step % replay.capacity

    def put(ring: Array, value: Array) -> Array:
        return jax.lax.dynamic_update_slice(ring, value.astype(ring.dtype)[None], (place,))

    return Replay(put(replay.rows, row), put(replay.arms, arm), put(replay.rewards, reward))


def draw(replay: Replay, key: Key, observed: Array, batch: int) -> Replay:
    """A minibatch of what is kept of the first `observed` observations, as a buffer of that size."""
    places = jax.random.randint(key, (batch,), 0, jnp.minimum(observed, replay.capacity))
    return Replay(replay.rows[places], replay.arms[places], replay.rewards[places])
