"""The Neural Testbed's bandit: arms are random inputs, a reward is the label of a random network.

Osband et al., "The Neural Testbed", NeurIPS 2022, section 5 and appendix E: `per_dim` times `dim` arms drawn from
N(0, I), an environment as in the testbed at temperature 0.1, 50,000 steps. An arm's reward is Bernoulli with the
environment's probability of class 1. Agents are told of the default network whatever draws the environment, as in the
suite `robustness`, so that laws can be compared. What is drawn depends neither on the rule nor on how agents learn:
games that differ in these are played in the same environments.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Gt, Len

from calibrant.problems.environment import draw_environment
from calibrant.problems.games import BanditGame, Size
from calibrant.seeds import Stream
from calibrant.types import Arena, Facts


@dataclass(frozen=True)
class Bandit(BanditGame):
    """Thompson sampling and its rivals in random environments (Osband et al., 2022, section 5)."""

    dim: Size = 2
    per_dim: Size = 20  # arms per dimension
    temp: Annotated[float, Gt(0)] = 0.1  # logits are divided by it
    hidden: Annotated[tuple[Size, ...], Len(1)] = (50, 50)  # of the network that draws rewards
    activation: Literal["relu", "leaky_relu", "tanh", "sigmoid", "swish", "selu", "gelu"] = "relu"

    version: ClassVar[int] = 1  # raise when a change alters what a seed draws or how it is played

    def sample(self, seed: int) -> Arena:
        drawn = f"{self.dim}/{self.per_dim}/{self.hidden}/{self.activation}/{float(self.temp)!r}"
        path = ("bandit", self.version, drawn, seed)
        environment = draw_environment(
            Stream(*path, "environment"), self.dim, 2, self.hidden, self.activation, "truncated", self.temp
        )
        table = Stream(*path, "arms").normal(self.per_dim * self.dim, self.dim).astype(np.float32)
        facts = Facts(self.dim, 2, 0, self.temp)
        return Arena(table, np.exp(environment.logp(table)[:, 1:]), (1,), facts)

    def shape(self) -> Hashable:
        return ("bandit", self.dim, self.per_dim, *self.settings())
