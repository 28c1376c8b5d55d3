"""Expectation propagation for logistic models: a Gaussian near the posterior, and the evidence that it gives.

Minka, "Expectation Propagation for Approximate Bayesian Inference", UAI 2001; all sites in parallel and damped. A site
needs the moments of a Gaussian times sigma(f). The logistic function is a scale mixture of normal ones,
    sigma(f) = E Phi(f / (2 K)),  K of Kolmogorov's law  (Andrews and Mallows, JRSS B 1974),
so with quadrature nodes for K (they reproduce sigma to 3e-7) these moments are closed sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr

from calibrant.types import Array

DAMPING, ROUNDS, SETTLED = 0.7, 100, 1e-4
TINY = 1e-10


@dataclass(frozen=True)
class Normal:
    """N(mean, (factor factor')^-1)."""

    mean: Array  # [dim]
    factor: Array  # [dim, dim] lower triangle

    @property
    def half_log_det(self) -> float:
        return float(np.log(np.diag(self.factor)).sum())

    def through(self, x: Array) -> Array:
        """x times the square root of the covariance: [rows, dim]."""
        return np.ascontiguousarray(solve_triangular(self.factor, x.T, lower=True).T)

    def at(self, z: Array) -> Array:
        """The point [n, dim] that standard normal numbers [n, dim] stand for."""
        return self.mean + solve_triangular(self.factor, z.T, lower=True, trans="T").T


def propagate(signed: Array) -> tuple[Normal, float]:
    """The Gaussian for the likelihood prod_t sigma(signed_t phi) [tau, dim], and the log-evidence it gives.

    Likelihoods that are log-concave give sites of positive precision, so that every Gaussian on the way is proper.
    """
    precision, shift = np.zeros((2, len(signed)))
    for _ in range(ROUNDS):
        q = _gaussian(signed, precision, shift)
        mean, variance = signed @ q.mean, (q.through(signed) ** 2).sum(axis=1)
        left = np.maximum(1 - precision * variance, TINY)
        cavity_mean, cavity_variance = (mean - variance * shift) / left, variance / left
        log, slope, bend = site(cavity_mean, cavity_variance)
        change = np.abs(cavity_mean + cavity_variance * slope - mean) / np.sqrt(variance)
        if change.max(initial=0.0) < SETTLED:
            break
        shrink = np.maximum(1 - bend * cavity_variance, TINY)
        precision = precision + DAMPING * (bend / shrink - precision)
        shift = shift + DAMPING * ((slope + bend * cavity_mean) / shrink - shift)
    # every site is scaled so that it gives its cavity the mass that the true factor gives
    scale = log + np.log1p(precision * cavity_variance) / 2 + cavity_mean**2 / cavity_variance / 2
    scale -= (cavity_mean / cavity_variance + shift) ** 2 / (1 / cavity_variance + precision) / 2
    return q, float(scale.sum() + (signed.T @ shift) @ q.mean / 2 - q.half_log_det)


def _gaussian(signed: Array, precision: Array, shift: Array) -> Normal:
    factor = np.linalg.cholesky(np.eye(signed.shape[1]) + (signed * precision[:, None]).T @ signed)
    half = solve_triangular(factor, signed.T @ shift, lower=True)
    return Normal(solve_triangular(factor, half, lower=True, trans="T"), factor)


def site(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """log E sigma(f), f ~ N(mean, variance): its value, its slope in the mean, and minus its second derivative."""
    scale = 1 / np.sqrt(NODES[:, None] ** 2 + variance)
    u = scale * mean
    below = log_ndtr(u)
    parts = LOG_WEIGHTS[:, None] + below
    top = parts.max(axis=0)
    share = np.exp(parts - top)
    total = share.sum(axis=0)
    hazard = scale * np.exp(-0.5 * u**2 - 0.5 * np.log(2 * np.pi) - below) * (share / total)
    slope, second = hazard.sum(axis=0), -(hazard * scale * u).sum(axis=0)
    return top + np.log(total), slope, np.maximum(slope**2 - second, 0.0)


def _mixture(points: int = 24, low: float = 0.2, high: float = 3.2) -> tuple[Array, Array]:
    """Nodes and log-weights of sigma(f) = E Phi(f / (2 K)), K Kolmogorov's: Gauss-Legendre on its density."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    k = low + (high - low) * (nodes + 1) / 2
    j = np.arange(1, 40)[:, None]
    density = (8 * k * (-1.0) ** (j + 1) * j**2 * np.exp(-2 * j**2 * k**2)).sum(axis=0)
    weights = np.maximum(weights * density, 1e-300)
    return 2 * k, np.log(weights / weights.sum())


NODES, LOG_WEIGHTS = _mixture()
