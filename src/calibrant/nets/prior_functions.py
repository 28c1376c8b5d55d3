"""Randomised prior functions: a fixed random function added to a trained network.

Osband, Aslanides and Cassirer, "Randomized Prior Functions for Deep Reinforcement Learning", NeurIPS 2018:
f(x) = g(x; trained) + scale * p(x; fixed). Only g learns; p keeps members apart where there is no data. What p is, is
another network at its birth, or such a network's derivative along a random direction (`Tangent`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from calibrant.nets.mlp import Mlp, Params
from calibrant.nets.trees import static, tree
from calibrant.types import Array, Key

BLOCK = 1000  # rows: those of a hundred members in a layer of 50 are 20 MB


def at_rows(prior: Any, fixed: Any, x: Array) -> Array:
    """The prior functions of all members at all rows of x, [members, rows, classes], BLOCK rows at a time.

    `fixed` has leaves [members, ...]. All at once, the layers of a hundred members at 100,000 rows would be gigabytes.
    """
    every = jax.vmap(prior, (0, None))
    if len(x) <= BLOCK:
        return every(fixed, x)
    blocks = jnp.pad(x, ((0, -len(x) % BLOCK), (0, 0))).reshape(-1, BLOCK, x.shape[1])
    values = jnp.moveaxis(jax.lax.map(lambda block: every(fixed, block), blocks), 0, 1)
    return values.reshape(values.shape[0], -1, values.shape[-1])[:, : len(x)]


@tree
@dataclass(frozen=True)
class WithPrior:
    """The parameters of one member: what was trained, what is fixed, and the scale of the fixed part."""

    trained: Any
    fixed: Any
    scale: Any


@dataclass(frozen=True)
class AdditivePrior:
    """A network with a fixed prior function of another network's law added to its logits."""

    network: Any = static()
    prior: Any = static()

    def __call__(self, params: WithPrior, x: Array) -> Array:
        return self.network(params.trained, x) + params.scale * self.prior(params.fixed, x)


@dataclass(frozen=True)
class Tangent:
    """The derivative of a network at its birth along a random direction: a draw of its tangent kernel."""

    network: Mlp

    def init(self, key: Key) -> tuple[Params, Params]:
        """A birth, and a direction whose entries have variance 1 / fan_in of their layer, biases included."""
        birth_key, direction_key = jax.random.split(key)
        birth = self.network.init(birth_key)
        flat, restore = ravel_pytree(birth)
        drawn = restore(jax.random.normal(direction_key, flat.shape))
        direction = tuple(
            (weight / np.sqrt(size), bias / np.sqrt(size))
            for (weight, bias), size in zip(drawn, self.network.sizes[:-1], strict=True)
        )
        return birth, direction

    def __call__(self, params: tuple[Params, Params], x: Array) -> Array:
        birth, direction = params
        return jax.jvp(lambda layers: self.network(layers, x), (birth,), (direction,))[1]
