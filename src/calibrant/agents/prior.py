"""Samples of the true generative prior: an agent that knows how problems are made and never looks at the data.

Knows networks, logistic models and bags of coins. Without training data the prior is the posterior: nothing
can do better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from calibrant.agents.coins_posterior import CoinsBelief
from calibrant.nets.mlp import Mlp, generative_network
from calibrant.nets.trees import tree
from calibrant.protocols import Belief
from calibrant.train.beliefs import NetworkWorlds, SampledBelief
from calibrant.train.evidence import log_evidence
from calibrant.train.loop import GROUP
from calibrant.train.online import Law
from calibrant.types import Array, CalibrantError, Data, Facts, Key


@dataclass(frozen=True)
class Tempered:
    """The generative network with its logits divided by the temperature."""

    network: Mlp

    def __call__(self, params: Any, x: Array) -> Array:
        layers, temperature = params
        return self.network(layers, x) / temperature


@dataclass(frozen=True)
class DrawTempered:
    """Draws a fresh generative network; the temperature comes with the facts."""

    network: Mlp

    def __call__(self, temperature: Array, key: Key) -> Any:
        return self.network.init(key), jnp.asarray(temperature)


@dataclass(frozen=True)
class Linear:
    """Logits 0 and weights x."""

    def __call__(self, params: Any, x: Array) -> Array:
        logit = x @ params
        return jnp.stack([jnp.zeros_like(logit), logit], axis=1)


@tree
@dataclass(frozen=True)
class LinearPrior:
    """Logistic models with weights N(0, I) / temperature; how likely it finds many labels is not left to worlds."""

    temperature: Array
    like: Array  # [inputs] zeros: how many weights there are

    @property
    def atoms(self) -> None:
        return None

    def worlds(self, key: Key, n: int) -> NetworkWorlds:
        return NetworkWorlds(jax.random.normal(key, (n, len(self.like))) / self.temperature, Linear())

    def evidence(self, seed: int, x: Array, labels: Array) -> tuple[float, float]:
        found = log_evidence(np.random.default_rng(seed), x, 2 * np.asarray(labels) - 1, float(self.temperature))
        return found.log, found.se


@tree
@dataclass(frozen=True)
class Prior:
    """Control: a fresh draw of the generative model per world, whatever the data (Osband et al., 2022)."""

    native: ClassVar[bool] = True
    untaught: ClassVar[bool] = True  # needs no data

    def fit(self, key: Key, train: Data, facts: Facts) -> Belief:
        if facts.law == "logistic":
            return LinearPrior(jnp.asarray(facts.temperature), jnp.zeros(facts.inputs))
        if facts.law == "coins":
            return CoinsBelief(jnp.ones(facts.inputs), jnp.ones(facts.inputs))
        network = generative_network(facts)
        return SampledBelief(jnp.asarray(facts.temperature), DrawTempered(network), Tempered(network))

    def online(self, facts: Facts) -> Law:
        """Whatever is seen, worlds stay draws of the prior."""
        if facts.law != "network":
            raise CalibrantError(f"agent 'prior' does not know the law '{facts.law}' of this game")
        network = generative_network(facts)
        draw = DrawTempered(network)
        return Law(
            birth=lambda key: ((), ()),
            draw=lambda trained, fixed, key: draw(jnp.asarray(facts.temperature), key),
            network=Tempered(network),
            penalty=lambda trained, drawn: jnp.zeros(()),
            draws=1,
            decay={"paper": 0.0, "code": 0.0},
        )

    @property
    def networks(self) -> int:
        return GROUP  # nothing is trained, so cells gain nothing from running side by side
