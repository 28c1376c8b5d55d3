"""Active learning in random environments: which of many candidates should be labelled?

The environment is the testbed's; `per_dim` times `dim` candidates are drawn from N(0, I), each with one label. The
agent asks for `labels` of them, one after another, by the rule `priority`, and is asked the testbed's questions at
given numbers of labels (1, 2, 5, 10, 20, ...): learning curves. Candidates, labels and questions depend neither on the
rule nor on how agents learn, so rules are compared on the same draws.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt

from calibrant.problems.testbed import Testbed
from calibrant.types import CalibrantError, Instance

Size = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class Active:
    """Labels are asked for one by one; the testbed's questions show what each was worth."""

    dim: Size = 2
    per_dim: Size = 100  # candidates per dimension
    temp: Annotated[float, Gt(0)] = 0.1  # logits are divided by it
    labels: Size = 100  # asked for in all
    priority: Literal["uniform", "entropy", "margin", "variation", "bald", "variance", "joint"] = "bald"
    looks: Annotated[int, Ge(2)] = 30  # worlds that the priority is computed from; a finite belief has at most its own
    capacity: Size = 10_000
    batch: Size = 128  # labels per gradient step, drawn with replacement
    updates: Size = 20  # gradient steps per label
    lr: Annotated[float, Gt(0)] = 1e-3  # of Adam, for every agent
    decay: Literal["paper", "code"] = "paper"
    tuples: Annotated[int, Ge(2)] = 200  # tuples asked per family and mark
    worlds: Annotated[int, Ge(2)] = 200  # worlds asked of a belief without finite support

    played: ClassVar[bool] = True
    version: ClassVar[int] = 1  # raise when a change alters what a seed draws or how it is played

    def __post_init__(self) -> None:
        if self.labels > self.per_dim * self.dim:
            raise CalibrantError(f"labels={self.labels} is more than the {self.per_dim * self.dim} candidates")

    @property
    def train(self) -> int:
        return self.per_dim * self.dim

    def sample(self, seed: int) -> Instance:
        """The candidates stand as training data: no agent sees a label that it has not asked for."""
        return self._testbed().sample(seed)

    @property
    def marks(self) -> tuple[int, ...]:
        """How many labels have been seen whenever the question is asked."""
        rising = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
        return (*(count for count in rising if count < self.labels), self.labels)

    def shape(self) -> Hashable:
        asked = (self.labels, self.priority, self.looks, self.capacity, self.batch, self.updates, self.decay)
        return ("active", self._testbed().shape(), self.train, asked)

    def _testbed(self) -> Testbed:
        return Testbed(train=self.train, temp=self.temp, dim=self.dim, tuples=self.tuples, worlds=self.worlds)
