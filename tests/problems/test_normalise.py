"""Inputs of order one by training statistics only: against scikit-learn, and by laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from calibrant.problems import normalise as subject
from calibrant.problems.normalise import How, normalise, statistics

HOWS: tuple[How, ...] = ("feature", "paper")


def rows_of(seed: int, rows: int, features: int) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(rng.normal(size=features) * 10, rng.uniform(0.1, 20, features), (rows, features))


@given(st.integers(0, 99), st.integers(2, 40), st.integers(1, 8))
@settings(max_examples=25, deadline=None)
def test_tables_are_standardised_as_scikit_learn_does(seed: int, rows: int, features: int) -> None:
    train, test = rows_of(seed, rows, features), rows_of(seed + 1, 7, features)
    ours, asked = normalise(train, test, "feature", one_unit=False)
    reference = StandardScaler().fit(train)
    np.testing.assert_allclose(ours, reference.transform(train), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(asked, reference.transform(test), rtol=1e-4, atol=1e-4)
    assert ours.dtype == asked.dtype == np.float32


@given(st.integers(0, 99), st.sampled_from(HOWS), st.booleans())
@settings(max_examples=25, deadline=None)
def test_nothing_leaks_from_the_test_rows(seed: int, how: How, one_unit: bool) -> None:
    """Other test rows leave the training inputs as they are, and each test input depends on its own row only."""
    train, test = rows_of(seed, 12, 5), rows_of(seed + 1, 6, 5)
    before, asked = normalise(train, test, how, one_unit)
    changed = test.copy()
    changed[1:] = 1e6
    after, again = normalise(train, changed, how, one_unit)
    np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(asked[0], again[0])
    assert not np.allclose(asked[1:], again[1:]) or how == "paper"


@given(st.integers(0, 99), st.floats(0.01, 100), st.floats(-50, 50))
@settings(max_examples=25, deadline=None)
def test_units_do_not_matter(seed: int, factor: float, shift: float) -> None:
    train, test = rows_of(seed, 12, 5), rows_of(seed + 1, 6, 5)
    for how, one_unit in (("feature", False), ("feature", True), ("paper", False)):
        ours = normalise(train, test, how, one_unit)  # type: ignore[arg-type]
        theirs = normalise(factor * train + shift, factor * test + shift, how, one_unit)  # type: ignore[arg-type]
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-3)


def test_the_paper_standardises_rows() -> None:
    train, test = rows_of(0, 9, 6), rows_of(1, 4, 6)
    for raw, done in zip((train, test), normalise(train, test, "paper", one_unit=False), strict=True):
        want = (raw - raw.mean(1, keepdims=True)) / raw.std(1, keepdims=True)
        np.testing.assert_allclose(done, want, rtol=1e-5, atol=1e-6)


def test_constant_features_are_centred_only() -> None:
    train, test = np.array([[3.0, 1.0], [3.0, 5.0]]), np.array([[4.0, 3.0]])
    ours, asked = normalise(train, test, "feature", one_unit=False)
    assert ours[:, 0].tolist() == [0, 0] and asked.tolist() == [[1, 0]]
    flat, _ = normalise(np.full((2, 3), 7, np.uint8), np.zeros((1, 3), np.uint8), "paper", one_unit=True)
    assert flat.tolist() == [[0, 0, 0]] * 2


def test_a_nearly_blank_pixel_is_not_blown_up() -> None:
    """One speck in ten images: by its own deviation a white test pixel would become 850."""
    rng = np.random.default_rng(0)
    train = rng.integers(0, 256, (10, 4, 4), np.uint8)
    train[:, 0, 0] = 0
    train[3, 0, 0] = 1
    test = np.full((1, 4, 4), 255, np.uint8)
    own = (255 - 0.1) / train[:, 0, 0].std()
    ours, asked = normalise(train, test, "feature", one_unit=True)
    assert own > 800 and np.abs(asked).max() < 10
    assert ours.shape == (10, 16) and ours.std() <= 1.0
    _, scale = statistics(train.reshape(10, -1), one_unit=True)
    deviations = train.reshape(10, -1).std(0)
    assert scale.min() == pytest.approx(np.sqrt((deviations**2).mean()))
    assert (scale >= deviations - 1e-9).all()


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = rows_of(0, 50, 7), rows_of(1, 20, 7)
    for how in HOWS:
        monkeypatch.setattr(subject, "BLOCK_NUMBERS", 2**16)
        whole = normalise(train, test, how, one_unit=True)
        monkeypatch.setattr(subject, "BLOCK_NUMBERS", 15)
        for mine, other in zip(whole, normalise(train, test, how, one_unit=True), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
