"""The true environment: KL 0 by construction. If its score is not 0, the judge is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from calibrant.nets.trees import tree
from calibrant.train.online import Told
from calibrant.types import Array, CalibrantError, Data, Facts, Key


@dataclass(frozen=True)
class OneWorld:
    """A single known function: the belief, and its only world."""

    function: Any
    weights: None = None
    atoms: ClassVar[int] = 1

    def worlds(self, key: Key, n: int) -> OneWorld:
        return self

    def __call__(self, x: Array) -> Array:
        return np.asarray(self.function(x))[None]


@tree
@dataclass(frozen=True)
class Informed:
    """The oracle of a game: it knows the true logits at every row of the table."""

    logits: Array  # [rows, classes]

    def online(self, facts: Facts) -> Told:
        return Told(lambda x: jnp.asarray(self.logits))

    @property
    def networks(self) -> int:
        return 1


@dataclass(frozen=True)
class Oracle:
    """Control: answers with the true environment, which only it is told."""

    privileged: ClassVar[bool] = True
    untaught: ClassVar[bool] = True  # needs no data

    def fit(self, key: Key, train: Data, facts: Facts) -> OneWorld:
        if facts.environment is None:
            raise CalibrantError("the oracle needs a problem whose true environment is known")
        return OneWorld(facts.environment)

    def informed(self, logits: Array) -> Informed:
        """Itself in a game, whose table it has the true logits of."""
        return Informed(logits)
