"""Randomised prior functions: a fixed random network added to a trained one.

Osband, Aslanides and Cassirer, "Randomized Prior Functions for Deep Reinforcement Learning", NeurIPS 2018:
f(x) = g(x; trained) + scale * p(x; fixed). Only g learns; p keeps members apart where there is no data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrant.nets.trees import static, tree
from calibrant.types import Array


@tree
@dataclass(frozen=True)
class WithPrior:
    """The parameters of one member: what was trained, what is fixed, and the scale of the fixed part."""

    trained: Any
    fixed: Any
    scale: Any


@dataclass(frozen=True)
class AdditivePrior:
    """A network with a fixed prior function of another network's law added to its logits."""

    network: Any = static()
    prior: Any = static()

    def __call__(self, params: WithPrior, x: Array) -> Array:
        return self.network(params.trained, x) + params.scale * self.prior(params.fixed, x)
