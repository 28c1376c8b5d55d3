"""Seeds: the same numbers on every version of every library, and the laws they claim to follow."""

from __future__ import annotations

import hashlib

import jax
import numpy as np
import pytest
from scipy import stats

from calibrant.seeds import Stream, child, jax_key

GOLDEN_UNIFORM = [0.41059855684829155, 0.6453021173176514, 0.7324219176988935]
GOLDEN_NORMAL = [-0.22600553718359534, 0.3726677184590857, 0.620154362318961]
GOLDEN_TRUNCATED = [-0.2155574933263792, 0.354961632582142, 0.588336155771944]
GOLDEN_INTEGERS = [4, 6, 7, 8, 4, 9, 3, 0]


def test_children_are_hashes_of_their_path() -> None:
    digest = hashlib.sha256(b"testbed?temp=0.1/3/labels").digest()[:16]
    assert child("testbed?temp=0.1", 3, "labels") == int.from_bytes(digest, "big")
    assert child("a", 1) == 158438774082000871979204984473315690190
    seen = {child(name, seed) for name in ("environment", "train-x", "train-y") for seed in range(100)}
    assert len(seen) == 300


def test_stream_values() -> None:
    """Golden: a change here changes every problem ever drawn."""
    np.testing.assert_allclose(Stream("golden").uniform(3), GOLDEN_UNIFORM, rtol=1e-15)
    np.testing.assert_allclose(Stream("golden").normal(3), stats.norm.ppf(GOLDEN_UNIFORM), rtol=1e-12)
    np.testing.assert_allclose(Stream("golden").normal(3), GOLDEN_NORMAL, rtol=1e-12)
    np.testing.assert_allclose(Stream("golden").truncated_normal(3), GOLDEN_TRUNCATED, rtol=1e-12)
    assert Stream("golden").integers(10, 8).tolist() == GOLDEN_INTEGERS


def test_a_stream_goes_on() -> None:
    stream, whole = Stream("on"), Stream("on").uniform(6)
    np.testing.assert_array_equal(np.concatenate([stream.uniform(2), stream.uniform(4)]), whole)
    np.testing.assert_array_equal(Stream("on").uniform(2, 3), whole.reshape(2, 3))
    assert Stream("on").uniform(0, 5).shape == (0, 5)


@pytest.mark.parametrize(("draw", "law"), [
    (lambda s, n: s.uniform(n), stats.uniform()),
    (lambda s, n: s.normal(n), stats.norm()),
    (lambda s, n: s.truncated_normal(n), stats.truncnorm(-2, 2)),
    (lambda s, n: s.truncated_normal(n, at=0.5), stats.truncnorm(-0.5, 0.5)),
])  # fmt: skip
def test_laws(draw: object, law: stats.rv_continuous) -> None:
    """Kolmogorov-Smirnov of 50000 draws at 1e-6, and no serial correlation at 4.9 standard errors."""
    values = draw(Stream("laws"), 50_000)  # type: ignore[operator]
    assert stats.kstest(values, law.cdf).pvalue > 1e-6
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 4.9 / np.sqrt(50_000)


def test_uniform_is_strictly_inside() -> None:
    values = Stream("inside").uniform(100_000)
    assert 0 < values.min() < values.max() < 1
    assert np.isfinite(Stream("inside").normal(100_000)).all()
    assert np.abs(Stream("inside").truncated_normal(100_000)).max() < 2


@pytest.mark.parametrize("high", [1, 2, 7, 1000])
def test_integers(high: int) -> None:
    """Chi-square at 1e-6."""
    values = Stream("integers", high).integers(high, 40_000)
    counts = np.bincount(values, minlength=high)
    assert len(counts) == high
    assert high == 1 or stats.chisquare(counts).pvalue > 1e-6


def test_jax_keys() -> None:
    words = np.asarray(jax.random.key_data(jax_key("a", 1)))
    assert words.tolist() == [(child("a", 1) >> 32) & 0xFFFFFFFF, child("a", 1) & 0xFFFFFFFF]
    keys = {tuple(jax.random.key_data(jax_key("cell", name)).tolist()) for name in ("agent", "worlds", "metric")}
    assert len(keys) == 3
