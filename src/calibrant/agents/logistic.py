"""Logistic regression: a network without hidden layers, to show that the problems need deep learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calibrant.nets.mlp import reference_network
from calibrant.nets.trees import tree
from calibrant.train.beliefs import FiniteBelief
from calibrant.train.online import Members, weight_decay
from calibrant.train.recipe import Recipe
from calibrant.types import Data, Facts, Key


@tree
@dataclass(frozen=True)
class Logistic(Recipe):
    """Regularised logistic regression, trained like `mlp` (Osband et al., 2022, Figure 4)."""

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        return self.train_independent(key, reference_network(facts, hidden=()), 1, train, facts)

    def online(self, facts: Facts) -> Members:
        return Members(reference_network(facts, hidden=()), 1, weight_decay(self.l2, facts))

    @property
    def networks(self) -> int:
        return 1
