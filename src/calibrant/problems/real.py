"""Real datasets, subsampled: what an agent knows after T rows, asked at test rows, alone and in dyads.

Osband et al., "Evaluating High-Order Predictive Distributions in Deep Learning", UAI 2022, section 5: the ten datasets
of its Table 2 at T = 10, 100, 1000 and all rows. There is no true distribution: the label that was observed has
probability one, and KL is the negative log-likelihood. The tau places of a dyad repeat the labels of its two rows.

Seeds. A seed draws the training rows and the test rows that are asked, both without replacement, and the dyads. Where
the publisher divided the data, each comes from its own part. Tables that nobody divided (iris, wine, credit) are
divided anew by every seed, in the published proportion, so that intervals include the luck of the split.

Facts. Agents are told temperature 0.01, as by the original's program ("low temperature": labels are nearly certain),
and the two hidden layers of 50 that its agents have. The law is `data`: no agent can know where it came from.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Len

from calibrant.data.cards import Card
from calibrant.data.catalogue import card as card_of
from calibrant.data.load import Dataset, load
from calibrant.problems.normalise import How, normalise
from calibrant.problems.tuples import polyadic_tuples
from calibrant.seeds import Stream
from calibrant.types import Array, CalibrantError, Data, Facts, Instance, Question, Truth, Tuples

Size = Annotated[int, Ge(1)]
Name = Literal[
    "iris", "wine_quality", "german_credit", "mnist", "fashion_mnist", "mnist_shot_noise", "emnist_letters",
    "emnist_digits", "cmaterdb", "cifar10",
]  # fmt: skip


@dataclass(frozen=True)
class Real:
    """T rows of a real dataset; test rows are asked alone and in dyads (Osband et al., 2022)."""

    data: Name = "iris"
    train: Size | Literal["full"] = 10  # training rows; `full` becomes the number of all
    normalise: How = "feature"
    temp: Annotated[float, Gt(0)] = 0.01  # what agents are told
    hidden: Annotated[tuple[Size, ...], Len(1)] = (50, 50)
    activation: Literal["relu", "leaky_relu", "tanh", "sigmoid", "swish", "selu", "gelu"] = "relu"
    test: Annotated[int, Ge(2)] = 1000  # test rows that are asked, at most
    tuples: Annotated[int, Ge(2)] = 1000  # tuples asked per family
    tau: Annotated[tuple[Annotated[int, Ge(2)], ...], Len(1)] = (10,)
    kappa: Annotated[tuple[Size, ...], Len(1)] = (2,)
    worlds: Annotated[int, Ge(2)] = 1000

    version: ClassVar[int] = 1  # raise when a change alters what a seed draws: ids of cells then change with it

    def __post_init__(self) -> None:
        """`full` and its number are one spec; what the dataset cannot give is refused before anything runs."""
        if self.train == "full":
            object.__setattr__(self, "train", self.card.train)
        if self.size > self.card.train:
            raise CalibrantError(f"train={self.train} is more than the {self.card.train} training rows of {self.data}")
        if max(self.kappa) > self.asked:
            raise CalibrantError(f"kappa={max(self.kappa)} is more than the {self.asked} test rows that are asked")

    @property
    def card(self) -> Card:
        return card_of(self.data)

    @property
    def size(self) -> int:
        return int(self.train)

    @property
    def dim(self) -> int:
        return self.card.inputs

    @property
    def asked(self) -> int:
        return min(self.test, self.card.test)

    def require(self) -> None:
        """Raise one sentence that says which command gets the dataset, unless it is here."""
        self._dataset()

    def sample(self, seed: int) -> Instance:
        train_x, train_y, test_x, test_y = self.rows(seed)
        x, asked = normalise(train_x, test_x, self.normalise, self.card.kind == "image")
        facts = Facts(self.dim, self.card.classes, self.size, self.temp, self.hidden, self.activation, law="data")
        question = Question(asked, self._families(seed), np.arange(self.asked)[:, None], self.worlds)
        return Instance(Data(x, train_y.astype(np.int32)), facts, question, Truth(test_y.astype(np.int32)))

    def rows(self, seed: int) -> tuple[Array, Array, Array, Array]:
        """Raw training rows and their labels, raw test rows and theirs, in the order in which the seed drew them."""
        found, card, path = self._dataset(), self.card, self._path(seed)
        if card.split == "official":
            train = _order(len(found.train_y), *path, "train")[: self.size]
            test = _order(len(found.test_y), *path, "test")[: self.asked]
            return found.train_x[train], found.train_y[train], found.test_x[test], found.test_y[test]
        x, y = (np.concatenate(parts) for parts in ((found.train_x, found.test_x), (found.train_y, found.test_y)))
        order = _order(len(y), *path, "split")
        train, test = order[: self.size], order[card.train :][: self.asked]
        return x[train], y[train], x[test], y[test]

    def shape(self) -> Hashable:
        """The dataset is part of it: one that is not here must not take others with it."""
        asked = (self.asked, self.tuples, self.tau, self.kappa, self.worlds)
        return ("real", self.data, self.hidden, self.activation, asked)

    def _dataset(self) -> Dataset:
        try:
            return load(self.data)
        except CalibrantError as error:
            raise CalibrantError(f"run `calibrant data get {self.data}` first: {error}") from error

    def _path(self, seed: int) -> tuple[object, ...]:
        """What a seed draws depends neither on what is asked nor on how rows are normalised."""
        return ("real", self.version, self.data, self.size, seed)

    def _families(self, seed: int) -> tuple[Tuples, ...]:
        path = self._path(seed)
        return tuple(
            replace(
                polyadic_tuples(Stream(*path, "places", kappa, tau), self.tuples, tau, kappa),
                anchors=distinct(Stream(*path, "anchors", kappa, tau), self.tuples, kappa, self.asked),
            )
            for kappa in self.kappa
            for tau in self.tau
        )


def distinct(stream: Stream, n: int, kappa: int, rows: int) -> Array:
    """n draws of `kappa` different row numbers below `rows`, [n, kappa]: each is counted among those not yet taken."""
    taken = np.empty((n, 0), np.int64)
    for place in range(kappa):
        row = stream.integers(rows - place, n)
        for smaller in np.sort(taken, axis=1).T:
            row = row + (row >= smaller)
        taken = np.concatenate([taken, row[:, None]], axis=1)
    return taken


def _order(rows: int, *path: object) -> Array:
    return np.argsort(Stream(*path).uniform(rows), kind="stable")
