"""Which rows a training step sees: a shuffled stream of epochs, cut into minibatches.

The stream goes through the data in a fresh random order every epoch and is cut every `batch` places, so that
minibatches straddle epochs and repeat rows when there are fewer rows than places: with 10 rows a batch of 100 holds
each row ten times (the Neural Testbed's convention). Where the padded data has no more rows than a batch has
places, a minibatch is held as a weight per row, which gives the same gradient for a tenth or less of the work.

Members of an ensemble enter the stream at places of their own, so no two see the same minibatch at the same step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from calibrant.nets.trees import tree
from calibrant.types import Array, Key


@tree
@dataclass(frozen=True)
class Minibatches:
    """Either row weights [steps, rows] or row indices [steps, batch] for every step."""

    weights: Any = None
    rows: Any = None

    @property
    def steps(self) -> int:
        return int((self.weights if self.rows is None else self.rows).shape[0])

    def at(self, step: Array) -> tuple[Array | None, Array]:
        """The rows of one step's minibatch (None: every row) and their weights, which sum to 1."""
        if self.rows is None:
            return None, self.weights[step]
        chosen = self.rows[step]
        return chosen, jnp.full(chosen.shape, 1.0 / chosen.shape[0])


def take(rows: Array | None, values: Array) -> Array:
    return values if rows is None else jnp.asarray(values)[rows]


def shuffled(key: Key, size: Array, rows: int, steps: int, batch: int) -> Minibatches:
    """The minibatches of `steps` steps over `size` rows of data that is padded to `rows`."""
    if rows <= batch:
        return Minibatches(weights=_counts(key, size, rows, steps, batch) / batch)
    places = _stream(key, size, steps * batch + rows)[: steps * batch]  # the last epoch begun is shuffled as a whole
    return Minibatches(rows=places.reshape(steps, batch))


def _counts(key: Key, size: Array, rows: int, steps: int, batch: int) -> Array:
    """How often each row is seen in each step, [steps, rows], for size <= batch.

    By the start of step k the stream has passed `whole` epochs and the first `rest` rows of the next one's order, so a
    row was seen `whole` times, and once more when its rank in that order is below `rest`.
    """
    places = jnp.arange(steps + 1) * batch
    whole, rest = places // size, places % size
    luck = jax.random.bits(key, ((steps + 1) * rows,)).reshape(steps + 1, rows)  # flat compiles five times faster
    luck = jnp.where(jnp.arange(rows) < size, luck, jnp.uint32(0xFFFFFFFF))
    threshold = jnp.take_along_axis(jnp.sort(luck, axis=1), rest[:, None], axis=1)
    seen = whole[:, None] + (luck < threshold)
    return jnp.where(jnp.arange(rows) < size, jnp.diff(seen, axis=0), 0)


def _stream(key: Key, size: Array, length: int) -> Array:
    """`length` places of the stream: sorting by (epoch, luck) shuffles every epoch within itself."""
    place = jnp.arange(length)
    luck = jax.random.bits(key, (length,))
    _, _, rows = jax.lax.sort((place // size, luck, place % size), num_keys=2)
    return rows
