"""A bandit of coins: arms that say nothing of one another, so that the exact posterior is known.

Each of `coins` arms pays with its own probability, uniform on (0, 1); its input is a row of the identity matrix. The
agent `coins_posterior` plays exact Thompson sampling here (Beta-Bernoulli), which any other agent can be held against.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Le

from calibrant.problems.games import BanditGame, Size
from calibrant.seeds import Stream
from calibrant.types import Arena, Facts


@dataclass(frozen=True)
class CoinBandit(BanditGame):
    """Arms with unknown, unrelated chances of a reward (Thompson, 1933)."""

    coins: Annotated[int, Ge(2), Le(4000)] = 10
    steps: Size = 2000

    version: ClassVar[int] = 1  # raise when a change alters what a seed draws or how it is played

    @property
    def dim(self) -> int:
        return self.coins

    def sample(self, seed: int) -> Arena:
        heads = Stream("coin_bandit", self.version, self.coins, seed, "heads").uniform(self.coins, 1)
        return Arena(np.eye(self.coins, dtype=np.float32), heads, (1,), Facts(self.coins, 2, 0, 1.0, law="coins"))

    def shape(self) -> Hashable:
        return ("coin_bandit", self.coins, *self.settings())
