"""Samples of the true generative prior: an agent that knows how problems are made and never looks at the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp

from calibrant.nets.mlp import Mlp, generative_network
from calibrant.nets.trees import tree
from calibrant.train.beliefs import SampledBelief
from calibrant.train.loop import GROUP
from calibrant.types import Array, Data, Facts, Key


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


@tree
@dataclass(frozen=True)
class Prior:
    """Control: a fresh draw of the generative model per world, whatever the data (Osband et al., 2022)."""

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> SampledBelief:
        network = generative_network(facts)
        return SampledBelief(jnp.asarray(facts.temperature), DrawTempered(network), Tempered(network))

    @property
    def networks(self) -> int:
        return GROUP  # nothing is trained, so cells gain nothing from running side by side
