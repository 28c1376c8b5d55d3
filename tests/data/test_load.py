"""Loading: iris from end to end, the seeded split, the published rows, and no network behind anybody's back."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets

from calibrant.data import sources
from calibrant.data.cards import Card, Expected
from calibrant.data.catalogue import CATALOGUE, card
from calibrant.data.load import load, seeded_split
from calibrant.data.store import keep
from calibrant.data.verify import digest
from calibrant.types import CalibrantError


def test_iris_from_end_to_end(tmp_path: Path) -> None:
    """Every flower of scikit-learn's copy once, the labels with their measurements."""
    iris = load("iris", tmp_path)
    assert iris.train_x.shape == (120, 4) and iris.test_x.shape == (30, 4) and iris.facts is card("iris")
    true = sklearn.datasets.load_iris()
    train, test = seeded_split(iris.facts)
    np.testing.assert_array_equal(iris.train_x, true.data[train])
    np.testing.assert_array_equal(iris.test_y, true.target[test])
    assert sorted([*train, *test]) == list(range(150))
    again = load("iris", tmp_path)
    np.testing.assert_array_equal(again.train_y, iris.train_y)


def test_the_split_is_the_same_everywhere() -> None:
    """Golden: a change here changes every number on structured data."""
    assert seeded_split(card("iris"))[0][:5].tolist() == [79, 28, 88, 32, 112]
    assert seeded_split(card("wine_quality"))[1][-5:].tolist() == [1608, 1148, 3898, 4633, 4255]


@pytest.mark.parametrize("name", [name for name, one in CATALOGUE.items() if one.split == "seeded"])
def test_splits_are_whole_and_disjoint(name: str) -> None:
    train, test = seeded_split(card(name))
    assert len(train) == card(name).train and len(test) == card(name).test
    assert sorted([*train, *test]) == list(range(card(name).arrays[0].shape[0]))


def test_official_splits_are_memory_mapped_and_published_rows_come_first(tmp_path: Path) -> None:
    x, y = np.arange(40, dtype=np.uint8).reshape(10, 2, 2), np.array([0, 1] * 5, np.uint8)
    expected = (
        Expected("train_x", x.shape, "uint8", digest(x)), Expected("train_y", (10,), "uint8", digest(y), (5, 5)),
        Expected("test_x", (4, 2, 2), "uint8", digest(x[:4])), Expected("test_y", (4,), "uint8", digest(y[:4]), (2, 2)),
    )  # fmt: skip
    toy = Card("toy", "Toy", "image", 2, 6, 3, expected, (), "nobody", "none")
    keep(toy, {"train_x": x, "train_y": y, "test_x": x[:4], "test_y": y[:4]}, tmp_path, "a test")
    found = load(toy, tmp_path)
    assert isinstance(found.train_x, np.memmap) and found.train_x.shape == (10, 2, 2)
    assert found.published.train_x.shape == (6, 2, 2) and found.published.test_y.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(found.published.train_x, x[:6])


def test_loading_does_not_use_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("downloaded", "fetched"):
        monkeypatch.setattr(sources, place, lambda *_: pytest.fail("the network was asked"))
    monkeypatch.setattr(sources, "installed", lambda _: None)
    with pytest.raises(CalibrantError, match="calibrant data get mnist"):
        load("mnist", tmp_path)


def test_damage_is_not_repaired_silently(tmp_path: Path) -> None:
    load("iris", tmp_path)
    (tmp_path / "iris" / "y.npy").unlink()
    with pytest.raises(CalibrantError, match="damaged"):
        load("iris", tmp_path)


def test_a_dataset_that_nobody_carries(tmp_path: Path) -> None:
    lost = dataclasses.replace(card("iris"), name="lost", origins=())
    with pytest.raises(CalibrantError, match="'lost' could not be obtained"):
        load(lost, tmp_path)
