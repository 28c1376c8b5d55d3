"""Logistic regression: a network without hidden layers, to show that the problems need deep learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt

from calibrant.agents.ensemble import Ensemble
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import FiniteBelief
from calibrant.types import Data, Facts, Key


@tree
@dataclass(frozen=True)
class Logistic:
    """Regularised logistic regression, trained like `mlp` (Osband et al., 2022, appendix C)."""

    l2: Annotated[float, Ge(0)] = 1.0
    l2_form: Literal["adaptive", "fixed"] = static("adaptive")
    lr: Annotated[float, Gt(0)] = 1e-3
    steps: Annotated[int, Ge(1)] = static(1000)
    batch: Annotated[int, Ge(1)] = static(100)

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        linear = Ensemble(1, self.l2, self.l2_form, self.lr, self.steps, self.batch, hidden=())
        return linear.fit(key, train, facts)

    @property
    def networks(self) -> int:
        return 1
