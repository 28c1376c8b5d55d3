"""Nearest neighbours: votes of the closest training points as probabilities.

Cover and Hart, "Nearest Neighbor Pattern Classification", 1967; as in Osband et al., 2022, C.8: one pseudo-point
of every class at x = 0, probabilities clipped to [0.01, 0.99]. A point belief: it has no joint predictions to offer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Lt

from calibrant.protocols import Belief
from calibrant.types import Data, Facts


@dataclass(frozen=True)
class Knn:
    """k-nearest neighbours (Cover and Hart, 1967), by scikit-learn."""

    neighbours: Annotated[int, Ge(1)] = 3
    weights: Literal["uniform", "distance"] = "uniform"
    clip: Annotated[float, Gt(0), Lt(0.5)] = 0.01

    def fit(self, seed: int, train: Data, facts: Facts) -> Belief:
        from sklearn.neighbors import KNeighborsClassifier

        from calibrant.adapters.sklearn import SklearnAgent, with_origin

        model = KNeighborsClassifier(n_neighbors=self.neighbours, weights=self.weights)
        return SklearnAgent(model, self.clip).fit(seed, with_origin(train, facts), facts)
