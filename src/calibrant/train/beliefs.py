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
HELD = 2**25  # numbers of drawn parameters that are held at a time: 134 MB


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
class WeightedBelief:
    """Finitely many parameter sets with weights that sum to 1, such as the nodes of a quadrature."""

    params: Any  # leaves [atoms, ...]
    weights: Array  # [atoms]
    network: Any = static()

    @property
    def atoms(self) -> int:
        return int(self.weights.shape[0])

    def worlds(self, key: Key, n: int) -> NetworkWorlds:
        """All atoms with their weights when n reaches their number, else n drawn by their weights."""
        if n >= self.atoms:
            return NetworkWorlds(self.params, self.network, self.weights)
        chosen = jax.random.choice(key, self.atoms, (n,), p=self.weights)
        return NetworkWorlds(jax.tree.map(lambda leaf: leaf[chosen], self.params), self.network)


@tree
@dataclass(frozen=True)
class DrawnWorlds:
    """Worlds that are too large to hold all at once: drawn in groups when they are asked, the same at every asking."""

    state: Any
    keys: Array  # [n]
    draw: Any = static()
    network: Any = static()
    side: int = static()  # worlds of a group
    weights: Any = None

    def __call__(self, x: Array) -> Array:
        n = len(self.keys)
        groups = -(-n // self.side)
        filled = self.keys[jnp.arange(groups * self.side) % n].reshape(groups, self.side)

        def ask(keys: Array) -> Array:
            return NetworkWorlds(jax.vmap(lambda k: self.draw(self.state, k))(keys), self.network)(x)

        logits = jax.lax.map(ask, filled)
        return logits.reshape(groups * self.side, *logits.shape[2:])[:n]


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

    def worlds(self, key: Key, n: int) -> NetworkWorlds | DrawnWorlds:
        keys = jax.random.split(key, n)
        size = sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(self.draw, self.state, key)))
        if n * size > HELD:
            return DrawnWorlds(self.state, keys, self.draw, self.network, max(1, min(n, HELD // size)))
        return NetworkWorlds(jax.vmap(lambda k: self.draw(self.state, k))(keys), self.network)
