"""A single network trained by maximum a posteriori: the point estimate that joint predictions expose.

Osband et al., "The Neural Testbed", NeurIPS 2022, appendix C.1. No epistemic uncertainty: its belief is one world.
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
class Mlp(Recipe):
    """One network, trained with weight decay (Osband et al., 2022, appendix C.1)."""

    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)  # None: the network that the facts name

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        return self.train_independent(key, reference_network(facts, self.hidden), 1, train, facts)

    def online(self, facts: Facts) -> Members:
        return Members(reference_network(facts, self.hidden), 1, weight_decay(self.l2, facts))

    @property
    def networks(self) -> int:
        return 1
