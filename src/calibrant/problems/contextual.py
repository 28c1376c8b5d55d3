"""A classification dataset as a contextual bandit: an arm is a class, and pays when it is the row's own.

Riquelme, Tucker and Snoek, "Deep Bayesian Bandits Showdown", ICLR 2018. At every step one row is offered, in an order
that the seed draws; playing the row's class pays 1, any other class 0, and nothing is said of the arms that were not
played. A dataset with fewer rows than steps is gone through again in a new order. Features are normalised by all rows
offered, which reveals no label. What an agent believes of an arm is the probability of that class; what it learns from
is that the label is this class, or that it is some other one.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from calibrant.problems.games import BanditGame, Size
from calibrant.problems.normalise import normalise
from calibrant.problems.real import Name, Real
from calibrant.seeds import Stream
from calibrant.types import Arena, Array, Facts


@dataclass(frozen=True)
class Contextual(BanditGame):
    """A row is shown, a class is played, and only its reward is seen (Riquelme et al., 2018)."""

    data: Name = "iris"
    steps: Size = 2000
    temp: Annotated[float, Gt(0)] = 0.01  # what agents are told

    version: ClassVar[int] = 1  # raise when a change alters what a seed draws or how it is played

    @property
    def dim(self) -> int:
        return self._source().dim

    @property
    def train(self) -> int:  # type: ignore[override]
        """Rows of the table: what a chunk's size in memory goes by."""
        return min(self.steps, self._source().card.train)

    def require(self) -> None:
        self._source().require()

    def sample(self, seed: int) -> Arena:
        source = self._source()
        raw, labels, *_ = source.rows(seed)
        x, _ = normalise(raw[: self.train], raw[:1], "feature", source.card.kind == "image")
        classes = source.card.classes
        reward = (labels[: self.train, None] == np.arange(classes)).astype(np.float64)
        facts = Facts(source.dim, classes, 0, self.temp, law="data")
        order = _order(self.train, self.steps, "contextual", self.version, self.data, seed)
        return Arena(x, reward, tuple(range(classes)), facts, order)

    def shape(self) -> Hashable:
        return ("contextual", self.data, *self.settings())

    def _source(self) -> Real:
        return Real(self.data, train="full")


def _order(rows: int, steps: int, *path: object) -> Array:
    """One pass after another through the rows, each in an order of its own."""
    passes = -(-steps // rows)
    luck = Stream(*path, "order").uniform(passes, rows)
    return np.argsort(luck, axis=1, kind="stable").reshape(-1)[:steps]
