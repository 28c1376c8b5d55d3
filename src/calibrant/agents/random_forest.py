"""Random forests: the average vote of randomised trees as probabilities.

Breiman, "Random Forests", 2001; as in Osband et al., 2022, appendix C.8: one pseudo-point of every class at x = 0,
probabilities clipped to [0.01, 0.99]. A point belief, unless `worlds=trees` takes every tree as a world.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Lt

from calibrant.protocols import Belief
from calibrant.types import Data, Facts


@dataclass(frozen=True)
class RandomForest:
    """Random forest (Breiman, 2001), by scikit-learn."""

    trees: Annotated[int, Ge(1)] = 100
    criterion: Literal["gini", "entropy"] = "gini"
    worlds: Literal["one", "trees"] = "one"
    clip: Annotated[float, Gt(0), Lt(0.5)] = 0.01

    def fit(self, seed: int, train: Data, facts: Facts) -> Belief:
        from sklearn.ensemble import RandomForestClassifier

        from calibrant.adapters.sklearn import SklearnAgent, with_origin

        model = RandomForestClassifier(n_estimators=self.trees, criterion=self.criterion)
        return SklearnAgent(model, self.clip, self.worlds).fit(seed, with_origin(train, facts), facts)
