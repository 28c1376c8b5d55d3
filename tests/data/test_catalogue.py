"""The catalogue: Table 2 of the paper, and nothing that is not pinned."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant
from calibrant.data.cards import Card, Derived, Package, Remote
from calibrant.data.catalogue import CATALOGUE, card, names
from calibrant.types import CalibrantError

TABLE_2 = {  # name: kind, classes, inputs, training rows, test rows
    "iris": ("structured", 3, 4, 120, 30),
    "wine_quality": ("structured", 11, 11, 3918, 980),
    "german_credit": ("structured", 2, 24, 800, 200),
    "mnist": ("image", 10, 784, 60_000, 10_000),
    "fashion_mnist": ("image", 10, 784, 60_000, 10_000),
    "mnist_shot_noise": ("image", 10, 784, 60_000, 10_000),
    "emnist_letters": ("image", 37, 784, 88_800, 14_800),
    "emnist_digits": ("image", 10, 784, 240_000, 40_000),
    "cmaterdb": ("image", 10, 3072, 5000, 1000),
    "cifar10": ("image", 10, 3072, 50_000, 10_000),
}
HEX = re.compile("[0-9a-f]{64}")
EVERY = pytest.mark.parametrize("one", CATALOGUE.values(), ids=lambda one: one.name)


def test_it_is_table_2() -> None:
    found = {one.name: (one.kind, one.classes, one.inputs, one.train, one.test) for one in CATALOGUE.values()}
    assert found == TABLE_2 and names() == tuple(TABLE_2)


@EVERY
def test_shapes_counts_and_splits_agree(one: Card) -> None:
    shapes = {array.name: array.shape for array in one.arrays}
    for array in one.arrays:
        assert bool(array.counts) == array.name.endswith("y")
        if array.counts:
            assert sum(array.counts) == array.shape[0] and len(array.counts) == one.classes
    if one.split == "seeded":
        assert one.train + one.test == shapes["x"][0] == shapes["y"][0]
    else:
        assert one.train <= shapes["train_x"][0] == shapes["train_y"][0]
        assert one.test <= shapes["test_x"][0] == shapes["test_y"][0]


def test_classes_that_occur() -> None:
    assert {name: card(name).present for name in ("iris", "wine_quality", "emnist_letters", "cifar10")} == {
        "iris": 3, "wine_quality": 7, "emnist_letters": 26, "cifar10": 10,
    }  # fmt: skip


@EVERY
def test_everything_is_pinned(one: Card) -> None:
    """Each array by its sha256; where none is known, each container by its own."""
    for array in one.arrays:
        assert array.sha256 is None or HEX.fullmatch(array.sha256)
    for origin in one.origins:
        if isinstance(origin, Derived):
            assert origin.base in CATALOGUE and one.hashed
            continue
        assert all(HEX.fullmatch(file.sha256) and file.bytes > 0 for file in origin.files)
        assert origin.files or one.hashed
        if isinstance(origin, Package):
            assert origin.members
        if isinstance(origin, Remote):
            assert origin.url.endswith("/") and (len(origin.files) == 1 or not origin.members)
    assert one.citation and one.licence and one.title


def test_only_emnist_was_never_held() -> None:
    assert [one.name for one in CATALOGUE.values() if not one.hashed] == ["emnist_letters", "emnist_digits"]


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(CalibrantError, match="unknown dataset 'minst', did you mean 'mnist'"):
        card("minst")


def test_no_registry_is_named() -> None:
    """Which registry a client asks is the business of the machine it runs on."""
    for path in (Path(calibrant.__file__).parent / "data").glob("*.py"):
        assert not re.search(r"pypi|pythonhosted|npmjs|debian\.org", path.read_text().lower()), path


def test_naming_datasets_is_light() -> None:
    code = "import sys; from calibrant.data.catalogue import names; print('numpy' in sys.modules, len(names()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "10"]
