"""A single network trained by maximum a posteriori: the point estimate that joint predictions expose.

It is an ensemble of one (see `ensemble` for the loss): no epistemic uncertainty, one world.
"""

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
class Mlp:
    """One network, trained with weight decay (Osband et al., 2022, appendix C.1)."""

    l2: Annotated[float, Ge(0)] = 1.0
    l2_form: Literal["adaptive", "fixed"] = static("adaptive")
    lr: Annotated[float, Gt(0)] = 1e-3
    steps: Annotated[int, Ge(1)] = static(1000)
    batch: Annotated[int, Ge(1)] = static(100)
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        one = Ensemble(1, self.l2, self.l2_form, self.lr, self.steps, self.batch, self.hidden)
        return one.fit(key, train, facts)

    @property
    def networks(self) -> int:
        return 1
