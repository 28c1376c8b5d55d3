"""Beliefs made of networks: finite sets of parameters, or a law that parameters are drawn from.

A belief is a JAX tree, so that a whole cohort of beliefs is one tree with a leading axis. A world is one parameter
set; it gives the same function at whatever inputs it is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax

from calibrant.nets.trees import static, tree
from calibrant.types import Array, Key


@tree
@dataclass(frozen=True)
class NetworkWorlds:
    """n parameter sets of one network; worlds are evaluated one after another to stay in cache."""

    params: Any  # a tree whose leaves have the leading axis [n]
    network: Any = static()
    weights: Any = None

    def __call__(self, x: Array) -> Array:
        return jax.lax.map(lambda params: self.network(params, x), self.params)


@tree
@dataclass(frozen=True)
class FiniteBelief:
    """Finitely many equally likely parameter sets: enumerated exactly, never resampled."""

    params: Any  # leaves [atoms, ...]
    network: Any = static()

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

    @property
    def atoms(self) -> None:
        return None

    def worlds(self, key: Key, n: int) -> NetworkWorlds:
        params = jax.vmap(lambda k: self.draw(self.state, k))(jax.random.split(key, n))
        return NetworkWorlds(params, self.network)
