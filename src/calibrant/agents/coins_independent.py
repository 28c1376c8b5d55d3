"""Every toss is a fair coin of its own: right about each single toss, and never learns from one.

Proposition 1 in Osband et al., "Evaluating High-Order Predictive Distributions in Deep Learning", UAI 2022.
With training data it still says one half. It answers as `uniform` does, and refuses problems that are no coins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calibrant.agents.coins_posterior import only_coins
from calibrant.agents.uniform import Uniform
from calibrant.nets.trees import tree
from calibrant.train.beliefs import FiniteBelief
from calibrant.types import Data, Facts, Key


@tree
@dataclass(frozen=True)
class CoinsIndependent:
    """All tosses independent and fair (Osband et al., UAI 2022, Proposition 1)."""

    native: ClassVar[bool] = True
    untaught: ClassVar[bool] = True  # needs no data

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        only_coins("coins_independent", facts)
        return Uniform().fit(key, train, facts)

    @property
    def networks(self) -> int:
        return 1
