"""The exact posterior of the bag of coins: each coin's probability of heads is Beta(1 + heads, 1 + tails), on its own.

Osband et al., "Evaluating High-Order Predictive Distributions in Deep Learning" (UAI 2022), Example 1.
Joint probabilities are products over coins of ratios of Beta functions, so scores of this belief have no Monte-Carlo
error; its worlds are draws of all coins for whoever asks for worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import betaln

from calibrant.nets.trees import tree
from calibrant.train.beliefs import NetworkWorlds
from calibrant.train.online import Seen, Told
from calibrant.types import Array, CalibrantError, Data, Facts, Key

LEAST = 1e-6  # a probability in single precision stays this far from 0 and 1


@dataclass(frozen=True)
class ByCoin:
    """The two logits of the coin that an input names."""

    def __call__(self, params: Any, x: Array) -> Array:
        return params[jnp.argmax(x, axis=1)]


@tree
@dataclass(frozen=True)
class CoinsBelief:
    """Independent Beta laws."""

    heads: Array  # [coins] the first parameter of each
    tails: Array  # [coins] the second

    @property
    def atoms(self) -> None:
        return None

    def worlds(self, key: Key, n: int) -> NetworkWorlds:
        p = jax.random.beta(key, self.heads, self.tails, (n, len(self.heads)))
        p = jnp.clip(p, LEAST, 1 - LEAST)
        return NetworkWorlds(jnp.stack([jnp.log1p(-p), jnp.log(p)], axis=2), ByCoin())

    def log_joint(self, x: Array, counts: Array) -> Array:
        """Tosses of the same coin are put together, wherever they stand in the tuple."""
        named, tossed = np.argmax(x, axis=1), counts
        coins, place = np.unique(named, return_inverse=True)
        if len(coins) < len(named):
            tossed = np.einsum("kac,au->kuc", counts, np.eye(len(coins))[place])
        else:
            coins = named
        heads, tails = (np.asarray(part, np.float64)[coins] for part in (self.heads, self.tails))
        return np.asarray((betaln(heads + tossed[..., 1], tails + tossed[..., 0]) - betaln(heads, tails)).sum(axis=1))


@dataclass(frozen=True)
class CoinsLearner(Told):
    """Counts of heads and tails are all there is to learn; a world is a draw of all coins."""

    atoms: None = None  # type: ignore[assignment]

    def worlds(self, trained: Any, fixed: Any, key: Key, n: int, seen: Seen) -> Any:
        return CoinsBelief(1 + seen.counts[:, 1], 1 + seen.counts[:, 0]).worlds(key, n).params

    def answer(self, world: Any, fixed: Any, x: Array, notes: Any) -> Array:
        return ByCoin()(world, x)


@tree
@dataclass(frozen=True)
class CoinsPosterior:
    """Floor: the exact posterior, every coin by itself (Osband et al., UAI 2022, Example 1)."""

    native: ClassVar[bool] = True
    untaught: ClassVar[bool] = True  # needs no data

    def fit(self, key: Key, train: Data, facts: Facts) -> CoinsBelief:
        only_coins("coins_posterior", facts)
        shown = jnp.asarray(train.x) * (jnp.arange(len(train.x)) < facts.train_size)[:, None]  # [rows, coins]
        heads = (shown * (jnp.asarray(train.y) == 1)[:, None]).sum(axis=0)
        return CoinsBelief(1 + heads, 1 + shown.sum(axis=0) - heads)

    def online(self, facts: Facts) -> CoinsLearner:
        """Exact Thompson sampling of coins: a game's row is a coin, a reward is heads."""
        only_coins("coins_posterior", facts)
        return CoinsLearner(lambda x: jnp.zeros((len(x), 0)))

    @property
    def networks(self) -> int:
        return 1


def only_coins(agent: str, facts: Facts) -> None:
    if facts.law != "coins":
        raise CalibrantError(f"agent '{agent}' knows environments of law 'coins', not '{facts.law}'")
