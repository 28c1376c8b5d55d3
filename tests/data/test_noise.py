"""Shot noise: the published law, and the same numbers everywhere."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import stats

from calibrant.data import noise
from calibrant.data.noise import shot_noise


def test_golden() -> None:
    """A change here is another dataset: the catalogue's sha256 would have to change with it."""
    ramp = np.arange(256, dtype=np.uint8).repeat(40).reshape(10, 32, 32)
    noisy = shot_noise(ramp, "golden")
    assert noisy.dtype == np.uint8 and noisy.shape == ramp.shape
    assert (
        hashlib.sha256(noisy.tobytes()).hexdigest()
        == "0bec1c059c3f54eb02aecdcdfc535e819494cecd63e4ddd3b15475a15abe0c34"
    )


def test_law() -> None:
    """min(Poisson(3 p), 3) photons: chi-square of 200000 pixels for each of 3 brightnesses, false alarms 3e-6."""
    for value in (20, 128, 255):
        noisy = shot_noise(np.full((1, 200_000), value, np.uint8), "law", value)
        mean = 3 * value / 255
        cut = [stats.poisson.pmf(k, mean) for k in range(3)]
        seen = np.bincount(noisy.ravel() // 85, minlength=4)
        assert stats.chisquare(seen, np.array([*cut, 1 - sum(cut)]) * 200_000).pvalue > 1e-6


def test_only_four_brightnesses_and_black_stays_black() -> None:
    noisy = shot_noise(np.tile(np.array([0, 255], np.uint8), (5000, 1)), "values")
    assert (noisy[:, 0] == 0).all()
    assert np.unique(noisy[:, 1]).tolist() == [0, 85, 170, 255]


def test_the_table_is_the_poisson_distribution() -> None:
    for k, at_most in enumerate(noise._poisson()):
        np.testing.assert_allclose(at_most, stats.poisson.cdf(k, np.arange(256) / 85), rtol=1e-14)


def test_blocks_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(0).integers(0, 256, (7, 4, 4), np.uint8)
    whole = shot_noise(images, "blocks")
    monkeypatch.setattr(noise, "BLOCK", 3)
    np.testing.assert_array_equal(shot_noise(images, "blocks"), whole)
