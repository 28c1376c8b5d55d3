"""Equal probability for every class at every input: the floor that any agent must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp

from calibrant.nets.trees import tree
from calibrant.train.beliefs import FiniteBelief
from calibrant.train.online import Told
from calibrant.types import Array, Data, Facts, Key


@dataclass(frozen=True)
class Flat:
    """The function that is zero everywhere."""

    classes: int

    def __call__(self, params: Any, x: Array) -> Array:
        return jnp.zeros((len(x), self.classes)) + params


@tree
@dataclass(frozen=True)
class Uniform:
    """Control: equal probabilities everywhere, whatever the data."""

    native: ClassVar[bool] = True
    untaught: ClassVar[bool] = True  # needs no data

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        return FiniteBelief(jnp.zeros(1), Flat(facts.classes))

    def online(self, facts: Facts) -> Told:
        return Told(lambda x: jnp.zeros((len(x), facts.classes)))

    @property
    def networks(self) -> int:
        return 1
