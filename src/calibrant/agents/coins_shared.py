"""One probability of heads for all coins: the agent that monadic sampling cannot tell from the best.

Proposition 2 in Osband et al., "Evaluating High-Order Predictive Distributions in Deep Learning", UAI 2022:
p ~ Unif(0, 1), shared by all coins and updated by no data. A probability of tau labels is a polynomial in p of degree
tau, for which Gauss-Legendre quadrature with NODES nodes is exact up to degree 2 NODES - 1: worlds are these nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from calibrant.agents.coins_posterior import only_coins
from calibrant.nets.trees import tree
from calibrant.train.beliefs import WeightedBelief
from calibrant.types import Array, Data, Facts, Key

NODES = 128  # exact for up to 255 tosses


@dataclass(frozen=True)
class Same:
    """The same two logits at every input."""

    def __call__(self, params: Any, x: Array) -> Array:
        return jnp.broadcast_to(params, (len(x), 2))


@tree
@dataclass(frozen=True)
class CoinsShared:
    """One unknown probability of heads for all coins (Osband et al., UAI 2022, Proposition 2)."""

    native: ClassVar[bool] = True
    untaught: ClassVar[bool] = True  # needs no data

    def fit(self, key: Key, train: Data, facts: Facts) -> WeightedBelief:
        only_coins("coins_shared", facts)
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        logits = np.stack([np.log1p(-nodes), np.log1p(nodes)], axis=1)  # of p = (1 + node) / 2
        return WeightedBelief(jnp.asarray(logits), jnp.asarray(weights / 2), Same())

    @property
    def networks(self) -> int:
        return 1
