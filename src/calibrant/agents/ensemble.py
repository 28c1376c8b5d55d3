"""Deep ensembles: networks that differ only by their random birth and the order in which they see the data.

Lakshminarayanan, Pritzel and Blundell, "Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles",
NeurIPS 2017. Each member minimises  mean cross-entropy + strength * sum of squares, with the strength
l2 sqrt(temperature) inputs / T (`adaptive`, the Neural Testbed's) or l2 / T (`fixed`). Members are independent: the
original draws 100 members with replacement per step, so that a third of them pauses; ours all learn at every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import jax
from annotated_types import Ge, Gt

from calibrant.nets.mlp import reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import FiniteBelief
from calibrant.train.likelihoods import l2_strength
from calibrant.train.loop import train_members
from calibrant.types import Data, Facts, Key


@tree
@dataclass(frozen=True)
class Ensemble:
    """Deep ensemble (Lakshminarayanan et al., 2017)."""

    size: Annotated[int, Ge(1)] = static(100)
    l2: Annotated[float, Ge(0)] = 1.0
    l2_form: Literal["adaptive", "fixed"] = static("adaptive")
    lr: Annotated[float, Gt(0)] = 1e-3
    steps: Annotated[int, Ge(1)] = static(1000)
    batch: Annotated[int, Ge(1)] = static(100)
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)  # None: the network that the facts name

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        network = reference_network(facts, self.hidden)
        birth, training = jax.random.split(key)
        params = train_members(
            training,
            network,
            jax.vmap(network.init)(jax.random.split(birth, self.size)),
            train,
            facts,
            l2=l2_strength(self.l2, self.l2_form, facts),
            steps=self.steps,
            batch=self.batch,
            lr=self.lr,
        )
        return FiniteBelief(params, network)

    @property
    def networks(self) -> int:
        return self.size
