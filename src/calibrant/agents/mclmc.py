"""Microcanonical Langevin Monte Carlo on the full data: a walk of constant speed whose direction follows the gradient.

Robnik, De Luca, Silverstein and Seljak, "Microcanonical Hamiltonian Monte Carlo", JMLR 2023; Robnik and Seljak,
"Fluctuation without dissipation: Microcanonical Langevin Monte Carlo", 2023. With a unit vector u and d parameters,

    dz = u dt,    du = (I - u u') (grad log pi(z) / (d - 1) dt + eta dW),

which leaves pi invariant and forgets its direction over a length of  decoherence sqrt(d). Steps are not accepted or
refused; the error of the integrator is kept small instead: the warm-up seeks the step at which the squared change of
energy per parameter, on average, is `energy_variance`. Single changes count up to CLIP times that, or one wall hit
hard would rule the search. Step sizes are told in the units of `hmc`, whose speed is sqrt(d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import blackjax
import jax.numpy as jnp
from annotated_types import Ge, Gt

from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import FiniteBelief
from calibrant.train.chains import Chains, Move, Posterior, State
from calibrant.types import Array, Data, Facts, Key

CLIP = 100.0
DIVERGED = 1000.0  # change of energy in one step, the bound that the other samplers have too


@tree
@dataclass(frozen=True)
class Mclmc(Chains):
    """Microcanonical Langevin Monte Carlo on the full data (Robnik et al., 2023)."""

    thin: Annotated[int, Ge(1)] = static(50)
    warmup: Annotated[int, Ge(1)] = static(2000)
    decoherence: Annotated[float, Gt(0)] = 1.0
    energy_variance: Annotated[float, Gt(0)] = 5e-4

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        kernel = blackjax.mclmc.build_kernel()
        posterior = self.posterior(train, facts)
        parameters = posterior.network.parameters
        speed = jnp.sqrt(float(parameters))

        def move(posterior: Posterior, key: Key, state: State, size: Array) -> Move:
            state, info = kernel(key, state, posterior, 1.0, self.decoherence * speed, size * speed)
            change = jnp.abs(info.energy_change)
            error = jnp.minimum(change, DIVERGED) ** 2 / parameters
            quality = 1 - jnp.minimum(error / self.energy_variance, CLIP) / CLIP
            divergent = ~info.nonans | (change > DIVERGED)
            return Move(state, jnp.where(info.nonans, quality, 0.0), divergent, {"energy_error": error})

        return self.sample(key, posterior, blackjax.mclmc.init, move, 1 - 1 / CLIP)
