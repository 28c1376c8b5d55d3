"""Hamiltonian Monte Carlo on the full data: trajectories of a fixed number of leapfrog steps.

Neal, "MCMC using Hamiltonian dynamics", Handbook of Markov Chain Monte Carlo, 2011; on networks: Izmailov, Vikram,
Hoffman and Wilson, "What Are Bayesian Neural Network Posteriors Really Like?", ICML 2021. With a momentum p ~ N(0, I),

    p <- p + (step / 2) grad log pi(z),   z <- z + step p,   p <- p + (step / 2) grad log pi(z),   `leapfrog` times,

accepted with probability  min(1, exp(H(before) - H(after))),  H = -log pi(z) + |p|^2 / 2  (see `train.chains` for pi).
The warm-up lets no trajectory grow beyond a quarter of the prior's period, where it has come as far as it ever will;
every trajectory's step is shaken by a fifth, so that none returns to its start over and over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import blackjax
import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt, Lt

from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import FiniteBelief
from calibrant.train.chains import QUARTER, Chains, Move, Posterior, State
from calibrant.types import Array, Data, Facts, Key

SHAKE = 0.2


@tree
@dataclass(frozen=True)
class Hmc(Chains):
    """Hamiltonian Monte Carlo on the full data (Neal, 2011)."""

    thin: Annotated[int, Ge(1)] = static(5)
    leapfrog: Annotated[int, Ge(1)] = static(32)
    acceptance: Annotated[float, Gt(0), Lt(1)] = 0.8  # the rate that the warm-up seeks

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        kernel = blackjax.hmc.build_kernel()

        def init(z: Array, posterior: Posterior, key: Key) -> State:
            return blackjax.hmc.init(z, posterior)

        def move(posterior: Posterior, key: Key, state: State, size: Array) -> Move:
            shake_key, key = jax.random.split(key)
            shaken = size * jax.random.uniform(shake_key, minval=1 - SHAKE, maxval=1 + SHAKE)
            state, info = kernel(key, state, posterior, shaken, jnp.ones_like(state.position), self.leapfrog)
            return Move(state, info.acceptance_rate, info.is_divergent, {"acceptance": info.acceptance_rate})

        posterior = self.posterior(train, facts)
        return self.sample(key, posterior, init, move, self.acceptance, QUARTER / self.leapfrog)
