"""Beliefs made of networks: finite sets of parameters, or a law that parameters are drawn from.

A belief is a JAX tree, so that a whole cohort of beliefs is one tree with a leading axis. A world is one parameter
set; it gives the same function at whatever inputs it is called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from calibrant.nets.trees import static, tree
from calibrant.types import Array, Key

# What inference says of itself, by name, each a number: `rhat`, `ess`, `converged`. They are kept beside the scores.
# `diverged_at`, a step or -1, makes a failed cell of one that ran away.
Diagnostics: TypeAlias = dict[str, Array]
BLOCK = 512  # inputs: their activations in a layer of 50 are 100 kB


@tree
@dataclass(frozen=True)
class NetworkWorlds:
    """n parameter sets of one network; worlds are evaluated one after another, BLOCK inputs at a time, in cache."""

    params: Any  # a tree whose leaves have the leading axis [n]
    network: Any = static()
    weights: Any = None

    def __call__(self, x: Array) -> Array:
        if len(x) <= BLOCK:
            return jax.lax.map(lambda params: self.network(params, x), self.params)
        blocks = jnp.pad(x, ((0, -len(x) % BLOCK), (0, 0))).reshape(-1, BLOCK, x.shape[1])

        def world(params: Any) -> Array:
            logits = jax.lax.map(lambda block: self.network(params, block), blocks)
            return logits.reshape(-1, logits.shape[-1])[: len(x)]

        return jax.lax.map(world, self.params)


@tree
@dataclass(frozen=True)
class FiniteBelief:
    """Finitely many equally likely parameter sets: enumerated exactly, never resampled."""

    params: Any  # leaves [atoms, ...]
    network: Any = static()
    diagnostics: Diagnostics = field(default_factory=dict)

    @property
    def atoms(self) -> int:
        return int(jax.tree.leaves(self.params)[0].shape[0])

    def worlds(self, key: Key, n: int) -> NetworkWorlds:
        """All atoms when n reaches their number, else n of them drawn without replacement."""
        if n >= self.atoms:
            return NetworkWorlds(self.params, self.network)
        chosen = jax.random.choice(key, self.atoms, (n,), replace=False)
        return NetworkWorlds(jax.tree.map(lambda leaf: leaf[chosen], self.params), self.network)


@tree
@dataclass(frozen=True)
class SampledBelief:
    """Parameters drawn afresh for every world by `draw(state, key)`."""

    state: Any
    draw: Any = static()
    network: Any = static()
    diagnostics: Diagnostics = field(default_factory=dict)

    @property
    def atoms(self) -> None:
        return None

    def worlds(self, key: Key, n: int) -> NetworkWorlds:
        params = jax.vmap(lambda k: self.draw(self.state, k))(jax.random.split(key, n))
        return NetworkWorlds(params, self.network)
