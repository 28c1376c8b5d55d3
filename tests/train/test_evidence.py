"""The evidence of logistic models, held against quadrature, Gaussian limits and its own stated error."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit, ndtr

from calibrant.train import evidence
from calibrant.train.evidence import graded_normal, log_evidence, log_likelihood, reduced
from calibrant.train.propagation import LOG_WEIGHTS, NODES, propagate, site
from calibrant.types import Array


def labelled(seed: int, tau: int, dim: int, temp: float) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x, phi = rng.standard_normal((tau, dim)), rng.standard_normal(dim)
    return x, np.where(rng.random(tau) < expit(x @ phi / temp), 1, -1)


def plane_quadrature(x: Array, signs: Array, temp: float) -> float:
    """log of the integral over the plane in polar coordinates: independent of everything in `evidence`."""
    radius, weight = np.polynomial.legendre.leggauss(60)
    radius, weight = 4.5 * (radius + 1), 4.5 * weight
    angle = (np.arange(16_000) + 0.5) / 16_000 * 2 * np.pi
    along = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ (x * signs[:, None]).T / temp  # [angles, tau]
    logs = [
        log_expit(r * along).sum(axis=1) - r**2 / 2 + np.log(w * r / len(angle))
        for r, w in zip(radius, weight, strict=True)
    ]
    return float(np.logaddexp.reduce(np.concatenate(logs)))


@pytest.mark.parametrize(("tau", "temp"), [(1, 0.01), (10, 0.01), (100, 0.5), (30, 10.0)])
def test_one_dimension_is_exact(tau: int, temp: float) -> None:
    x, signs = labelled(0, tau, 1, temp)
    margin = (x[:, 0] * signs) / temp

    def integrand(phi: float) -> float:
        return float(np.exp(log_expit(margin * phi).sum() - phi**2 / 2) / np.sqrt(2 * np.pi))

    parts = [quad(integrand, a, b, epsabs=0, limit=500)[0] for a, b in ((-9, -0.1), (-0.1, 0), (0, 0.1), (0.1, 9))]
    found = log_evidence(np.random.default_rng(0), x, signs, temp)
    assert found.log == pytest.approx(np.log(sum(parts)), abs=1e-6)
    assert found.se == 0


@pytest.mark.parametrize(
    ("seed", "tau", "temp"), [(1, 3, 0.01), (2, 10, 0.01), (3, 30, 0.1), (4, 20, 1.0), (5, 15, 0.05)]
)
def test_two_dimensions_agree_with_quadrature(seed: int, tau: int, temp: float) -> None:
    """Within five of its own standard errors (of eight islands: t with 7 degrees), and 0.01 for se of nearly 0.

    False alarms: below 0.2 % per case.
    """
    x, signs = labelled(seed, tau, 2, temp)
    found = log_evidence(np.random.default_rng(seed), x, signs, temp)
    assert found.se < 0.15
    assert found.log == pytest.approx(plane_quadrature(x, signs, temp), abs=5 * found.se + 0.01)


def test_the_stated_error_is_the_spread() -> None:
    """Forty runs: their spread is within a factor 2 of the mean stated error (chi-square 39: false alarms below 1e-6),
    and their mean within five errors of the mean of the quadrature."""
    x, signs = labelled(7, 12, 2, 0.02)
    runs = [log_evidence(np.random.default_rng(seed), x, signs, 0.02) for seed in range(40)]
    logs, errors = np.array(runs).T
    assert 0.5 < logs.std(ddof=1) / np.sqrt((errors**2).mean()) < 2
    assert logs.mean() == pytest.approx(plane_quadrature(x, signs, 0.02), abs=5 * logs.std() / np.sqrt(40) + 0.005)


@pytest.mark.parametrize("dim", [5, 40])
def test_low_signal_has_a_gaussian_limit(dim: int) -> None:
    """Labels that say little are linear measurements of phi with noise: the evidence is then a Gaussian integral."""
    temp, tau = 100.0, 3000
    x, signs = labelled(0, tau, dim, temp)
    pull, stiff = x.T @ signs / (2 * temp), np.eye(dim) + x.T @ x / (4 * temp**2)
    limit = pull @ np.linalg.solve(stiff, pull) / 2 - np.linalg.slogdet(stiff)[1] / 2 - tau * np.log(2)
    found = log_evidence(np.random.default_rng(0), x, signs, temp)
    assert found.log == pytest.approx(limit, abs=0.02)
    assert np.linalg.slogdet(stiff)[1] / 2 > 0.1  # the labels do say something: not just fair coins


def test_orthogonal_inputs_factorise() -> None:
    """Every input its own weight: each label has probability one half whatever the temperature, in any dimension."""
    for dim in (5, 15, 40):
        found = log_evidence(np.random.default_rng(0), 3 * np.eye(dim), np.ones(dim), 0.01)
        assert found.log == pytest.approx(-dim * np.log(2), abs=5 * found.se + 0.01)


def test_repeated_input_is_a_line() -> None:
    """Twenty times the same input of thirty dimensions has one dimension that matters, rounding hides it."""
    x = np.repeat(np.random.default_rng(0).standard_normal((1, 30)), 20, axis=0)
    signs = np.where(np.arange(20) < 17, 1, -1)
    exact = evidence.on_a_line(np.linalg.norm(x[0]) * signs / 4.0)
    found = log_evidence(np.random.default_rng(1), x, signs, 4.0)
    assert found.log == pytest.approx(exact, abs=5 * found.se + 0.01)


def test_more_inputs_than_labels_lose_nothing() -> None:
    x, _ = labelled(0, 6, 40, 1.0)
    small = reduced(x)
    assert small.shape == (6, 6)
    np.testing.assert_allclose(small @ small.T, x @ x.T, rtol=1e-10)


def test_expectation_propagation_is_within_its_allowance() -> None:
    """Above MIXED dimensions it stands alone, so at MIXED it must be as good as claimed. False alarms below 1 %."""
    x, signs = labelled(0, 60, evidence.MIXED, 0.01)
    particles = log_evidence(np.random.default_rng(0), x, signs, 0.01)
    _, gaussian = propagate(x * signs[:, None] / 0.01)
    assert particles.log == pytest.approx(gaussian, abs=evidence.ALLOWANCE + 3 * particles.se)


def test_expectation_propagation_is_exact_for_one_label() -> None:
    q, log = propagate(np.array([[2.0, 1.0]]))
    assert log == pytest.approx(np.log(0.5), abs=1e-6)
    nodes, weights = graded_normal(32)
    tilted = weights * expit(np.sqrt(5) * nodes) * 2
    along = np.array([2.0, 1.0]) / np.sqrt(5)
    assert q.mean @ along == pytest.approx(tilted @ nodes, abs=1e-3)


def test_the_mixture_is_the_logistic_function() -> None:
    f = np.linspace(-15, 15, 61)
    mixed = np.exp(LOG_WEIGHTS) @ ndtr(f / NODES[:, None])
    np.testing.assert_allclose(mixed, expit(f), atol=1e-6)


def test_site_derivatives() -> None:
    mean, variance, step = np.array([-3.0, 0.2, 5.0]), np.array([0.5, 40.0, 2.0]), 1e-3
    values = [site(mean + d, variance)[0] for d in (-step, 0.0, step)]
    _, slope, bend = site(mean, variance)
    np.testing.assert_allclose(slope, (values[2] - values[0]) / (2 * step), rtol=1e-4)
    np.testing.assert_allclose(bend, -(values[2] - 2 * values[1] + values[0]) / step**2, rtol=1e-3, atol=1e-6)


def test_log_likelihood_in_chunks() -> None:
    margins = np.random.default_rng(0).normal(0, 300, (3, 1300))
    np.testing.assert_allclose(log_likelihood(margins), log_expit(margins).sum(axis=1), rtol=1e-12)
    assert log_likelihood(margins[:, :0]).tolist() == [0, 0, 0]


def test_graded_normal_has_the_moments() -> None:
    nodes, weights = graded_normal(16)
    assert len(nodes) <= 1000
    for power, moment in ((0, 1), (2, 1), (4, 3), (6, 15)):
        assert weights @ nodes**power == pytest.approx(moment, rel=1e-9)
    for width in (1e-6, 1e-3, 1.0):  # narrow questions about 0 are answered as well as wide ones
        assert weights @ np.exp(-(nodes**2) / (2 * width**2)) == pytest.approx(width / np.sqrt(1 + width**2), rel=1e-9)
