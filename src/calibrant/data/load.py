"""A dataset as arrays: training and test rows, and what is known of them.

Images come as published, uint8 with their shape; what to do with them (flatten, scale, take the first T rows) is the
business of a problem. Rows of a structured dataset that nobody divided are shuffled by a seed that is part of the
product, so everyone has the same split, and its first T training rows are a random subset.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.data.cards import Card
from calibrant.data.catalogue import card as card_of
from calibrant.data.get import get
from calibrant.data.store import data_folder, open_arrays
from calibrant.seeds import Stream
from calibrant.types import Array


@dataclass(frozen=True)
class Dataset:
    train_x: Array  # [rows, ...] uint8 for images, memory-mapped; measurements otherwise
    train_y: Array  # [rows] uint8
    test_x: Array
    test_y: Array
    facts: Card

    @property
    def published(self) -> Dataset:
        """The rows of the published experiment: the first `facts.train` and `facts.test` ones."""
        train, test = slice(self.facts.train), slice(self.facts.test)
        return Dataset(self.train_x[train], self.train_y[train], self.test_x[test], self.test_y[test], self.facts)


def load(dataset: str | Card, folder: str | Path | None = None, *, offline: bool = True) -> Dataset:
    """Open a dataset. One that is not kept yet is looked for as `get` does, by default without any network.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     iris = load("iris", folder)
    >>> iris.train_x.shape, iris.test_y.shape, iris.facts.classes
    ((120, 4), (30,), 3)
    """
    card = card_of(dataset) if isinstance(dataset, str) else dataset
    place = data_folder(folder)
    arrays = open_arrays(card, place)
    if arrays is None:
        get(card, place, offline=offline)
        arrays = open_arrays(card, place)
        assert arrays is not None
    if card.split == "official":
        return Dataset(arrays["train_x"], arrays["train_y"], arrays["test_x"], arrays["test_y"], card)
    train, test = seeded_split(card)
    x, y = arrays["x"], arrays["y"]
    return Dataset(x[train], y[train], x[test], y[test], card)


def seeded_split(card: Card) -> tuple[Array, Array]:
    """Row numbers of the training and the test part, in the order in which `load` gives them."""
    rows = card.arrays[0].shape[0]
    order = np.argsort(Stream("data", card.name, "split").uniform(rows), kind="stable")
    return order[: card.train], order[card.train : card.train + card.test]
