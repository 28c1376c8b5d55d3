"""The true environment: KL 0 by construction. If its score is not 0, the judge is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

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


@dataclass(frozen=True)
class Oracle:
    """Control: answers with the true environment, which only it is told."""

    privileged: ClassVar[bool] = True
    untaught: ClassVar[bool] = True  # needs no data

    def fit(self, key: Key, train: Data, facts: Facts) -> OneWorld:
        if facts.environment is None:
            raise CalibrantError("the oracle needs a problem whose true environment is known")
        return OneWorld(facts.environment)
