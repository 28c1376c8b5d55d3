"""Deep ensembles: networks that differ only by their random birth and the order in which they see the data.

Lakshminarayanan, Pritzel and Blundell, "Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles",
NeurIPS 2017. Each member is trained by the same recipe (see `train.recipe`). Members are independent: the original
draws 100 members with replacement per step, so that a third of them pauses; ours all learn at every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge

from calibrant.nets.mlp import reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import FiniteBelief
from calibrant.train.online import Members, weight_decay
from calibrant.train.recipe import Recipe
from calibrant.types import Data, Facts, Key


@tree
@dataclass(frozen=True)
class Ensemble(Recipe):
    """Deep ensemble (Lakshminarayanan et al., 2017)."""

    size: Annotated[int, Ge(1)] = static(100)
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)  # None: the network that the facts name

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        return self.train_independent(key, reference_network(facts, self.hidden), self.size, train, facts)

    def online(self, facts: Facts) -> Members:
        return Members(reference_network(facts, self.hidden), self.size, weight_decay(self.l2, facts, self.size))

    @property
    def networks(self) -> int:
        return self.size
