"""How networks are trained: what every agent that minimises cross-entropy with weight decay shares.

A member minimises  mean cross-entropy + strength * sum of squares  by Adam on minibatches, with the strength
l2 sqrt(temperature) inputs / T (`adaptive`, the Neural Testbed's) or l2 / T (`fixed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import jax
from annotated_types import Ge, Gt

from calibrant.nets.mlp import Mlp
from calibrant.nets.trees import static
from calibrant.train.beliefs import FiniteBelief
from calibrant.train.likelihoods import l2_strength
from calibrant.train.loop import train_members
from calibrant.types import Array, Data, Facts, Key


@dataclass(frozen=True)
class Recipe:
    """The fields that such agents have in common, and training by them."""

    l2: Annotated[float, Ge(0)] = 1.0
    l2_form: Literal["adaptive", "fixed"] = static("adaptive")
    lr: Annotated[float, Gt(0)] = 1e-3
    steps: Annotated[int, Ge(1)] = static(1000)
    batch: Annotated[int, Ge(1)] = static(100)

    def train(
        self,
        key: Key,
        network: Mlp,
        params: Any,  # leaves [members, ...]
        train: Data,
        facts: Facts,
        offsets: Array | None = None,
        emphasis: Array | None = None,
    ) -> Any:
        return train_members(
            key,
            network,
            params,
            train,
            facts,
            l2=l2_strength(self.l2, self.l2_form, facts),
            steps=self.steps,
            batch=self.batch,
            lr=self.lr,
            offsets=offsets,
            emphasis=emphasis,
        )

    def train_independent(self, key: Key, network: Mlp, size: int, train: Data, facts: Facts) -> FiniteBelief:
        """`size` members that differ by their random birth and by the order in which they see the data."""
        birth, training = jax.random.split(key)
        members = jax.vmap(network.init)(jax.random.split(birth, size))
        return FiniteBelief(self.train(training, network, members, train, facts), network)
