"""R-hat and effective sample size on chains whose mixing is known."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from calibrant.stats.chains import effective_sample_size, split_rhat
from calibrant.types import Array


def independent(chains: int = 4, draws: int = 1000, *shape: int) -> Array:
    return np.random.default_rng(0).normal(size=(chains, draws, *shape))


def autoregressive(phi: float, chains: int = 4, draws: int = 10_000) -> Array:
    """x' = phi x + sqrt(1 - phi^2) noise: N(0, 1) with autocorrelations phi^lag, worth (1 - phi) / (1 + phi) a draw."""
    noise = np.random.default_rng(1).normal(size=(chains, draws))
    values = noise.copy()
    for draw in range(1, draws):
        values[:, draw] = phi * values[:, draw - 1] + np.sqrt(1 - phi**2) * noise[:, draw]
    return values


def test_chains_that_agree() -> None:
    """R-hat^2 = 1 - 1/500 + chi2_7 / (7 x 500) stays below 1.01^2 but for a chance of 1e-12."""
    assert 0.998 < split_rhat(independent()) < 1.01


def test_chains_that_never_meet() -> None:
    """Two at 0, two at 10: V = W + var of the means = 1 + 200/7, so R-hat is 5.4."""
    apart = independent() + np.array([0, 0, 10, 10])[:, None]
    assert split_rhat(apart) == pytest.approx(np.sqrt(1 + 200 / 7), rel=0.05)
    assert effective_sample_size(apart) < 10


def test_chains_that_drift_together() -> None:
    """Whole chains agree on their mean; their halves, around 2.5 and 7.5, do not: W = 1 + 25/12, V = W + 50/7."""
    drifting = independent() + np.linspace(0, 10, 1000)
    assert split_rhat(drifting) == pytest.approx(np.sqrt(1 + 50 / 7 / (1 + 25 / 12)), rel=0.05)


def test_chains_that_stand_still() -> None:
    still = np.ones((4, 100)) * np.array([0.1, 0.2, 0.3, 0.4])[:, None]
    assert split_rhat(still) > 1e4
    assert 50 < split_rhat(still, resolution=1e-3) < 500
    assert effective_sample_size(still) == 0
    agreed = np.full((4, 100), 0.7)
    assert split_rhat(agreed) == 1
    assert effective_sample_size(agreed) == 400


def test_what_is_below_the_resolution_does_not_count() -> None:
    """Chains that disagree by a millionth of a probability."""
    close = 1 - 1e-6 * np.arange(4)[:, None] + 1e-9 * independent(4, 100)
    assert split_rhat(close) > 5
    assert split_rhat(close, resolution=1e-3) == pytest.approx(1, abs=0.02)
    assert effective_sample_size(close, resolution=1e-3) == 400


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_the_effective_size_of_an_autoregressive_chain(phi: float) -> None:
    """The estimate's relative standard error is about 2% here (5% at 0.9): four of them, false-alarm rate 1e-4."""
    known = 40_000 * (1 - phi) / (1 + phi)
    assert effective_sample_size(autoregressive(phi)) == pytest.approx(known, rel=0.2 if phi == 0.9 else 0.08)


def test_axes_and_tracing() -> None:
    values = independent(3, 101, 2, 1)  # an odd number of draws
    for judge in (split_rhat, effective_sample_size):
        whole = judge(values)
        assert whole.shape == (2, 1)
        np.testing.assert_allclose(jax.jit(lambda x, judge=judge: judge(x))(values), whole, rtol=1e-5)
        np.testing.assert_allclose(jax.jit(jax.vmap(judge, 2))(values)[:, 0], whole[:, 0], rtol=1e-5)
        np.testing.assert_allclose(judge(values[:, :, 1, 0]), whole[1, 0], rtol=1e-5)
