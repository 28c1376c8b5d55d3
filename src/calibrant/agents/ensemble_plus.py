"""Ensembles with randomised prior functions, and optionally bootstrapped data.

Osband, Aslanides and Cassirer, "Randomized Prior Functions for Deep Reinforcement Learning", NeurIPS 2018. Member m
is  f_m(x) = g(x; trained_m) + (prior_scale / sqrt(temperature)) p(x; fixed_m), trained like a deep ensemble's member.
Bootstrap weights have mean one: `bernoulli` is 2 Bernoulli(1/2) ("double or nothing"), `exponential` is Exp(1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from annotated_types import Ge

from calibrant.nets.mlp import Mlp, reference_network
from calibrant.nets.prior_functions import AdditivePrior, WithPrior, at_rows
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import FiniteBelief
from calibrant.train.online import Members, no_bootstrap, weight_decay
from calibrant.train.recipe import Recipe
from calibrant.types import Array, Data, Facts, Key


@tree
@dataclass(frozen=True)
class EnsemblePlus(Recipe):
    """Deep ensemble with randomised prior functions (Osband et al., 2018)."""

    size: Annotated[int, Ge(1)] = static(100)
    prior_scale: Annotated[float, Ge(0)] = 3.0
    bootstrap: Literal["none", "bernoulli", "exponential"] = static("none")
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)  # None: the network that the facts name

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        network = reference_network(facts, self.hidden, first_bias="truncated")
        prior = self.prior_function(network)
        birth, fixing, booting, training = jax.random.split(key, 4)
        members = jax.vmap(network.init)(jax.random.split(birth, self.size))
        fixed = jax.vmap(prior.init)(jax.random.split(fixing, self.size))
        scale = self.prior_scale / jnp.sqrt(facts.temperature)
        offsets = scale * at_rows(prior, fixed, train.x)
        emphasis = self._emphasis(booting, len(train.x))
        trained = self.train(training, network, members, train, facts, offsets, emphasis)
        params = WithPrior(trained, fixed, jnp.full(self.size, scale))
        return FiniteBelief(params, AdditivePrior(network, prior))

    def online(self, facts: Facts) -> Members:
        no_bootstrap(self.bootstrap)
        network = reference_network(facts, self.hidden, first_bias="truncated")
        scale = self.prior_scale / jnp.sqrt(facts.temperature)
        return Members(network, self.size, weight_decay(self.l2, facts, self.size), self.prior_function(network), scale)

    def prior_function(self, network: Mlp) -> Any:
        """What is added to a member: its `init(key)` draws the fixed parameters that it is then called with."""
        return network

    @property
    def networks(self) -> int:
        return self.size

    def _emphasis(self, key: Key, rows: int) -> Array | None:
        shape = (self.size, rows)
        if self.bootstrap == "bernoulli":
            return 2.0 * jax.random.bernoulli(key, 0.5, shape)
        if self.bootstrap == "exponential":
            return jax.random.exponential(key, shape)
        return None
