"""How likely a logistic model with a Gaussian prior finds many labels together.

    log E_phi prod_t sigma(s_t x_t phi / temp),   phi ~ N(0, I),   s_t = +-1.

The mean over draws of the prior is hopeless as soon as labels say much: a posterior that fills a share e^-50 of the
prior needs e^50 draws. `log_evidence` goes by the dimension that matters, which is min(inputs, tau) because only phi
in the span of the inputs does:

1            Quadrature on a grid that is graded towards 0: exact.
2 to MIXED   Sequential Monte Carlo (Del Moral, Doucet and Jasra, JRSS B 2006) from a Gaussian q near the posterior to
             the posterior, along q (prior likelihood / q)^b, moved by elliptical slice sampling around q (Murray,
             Adams and MacKay, AISTATS 2010; Nishihara, Murray and Adams, JMLR 2014), which has no step size. The
             evidence itself is unbiased but for the choice of b, its logarithm is low by about variance / 2. Islands
             of particles share nothing but b; their disagreement is the standard error.
above MIXED  The evidence of q itself, by expectation propagation (Minka, UAI 2001; `calibrant.train.propagation`). It
             has no Monte-Carlo error; how far it is off (less than ALLOWANCE nats in all cases tried, and less in
             higher dimensions, where sums over many weights are nearly normal) stands in for one. Particles would do
             worse in the same time: at 100 dimensions they are low by one nat.

Labels that q is sure of by more than `SURE` nats, `WIDE` standard deviations around its mean, add less than 1e-12
each and are left out; the particles at the end are checked against all labels, and the run repeated with all if they
disagree. So 10,000 labels at temperature 0.01 cost as much as the few that a boundary could still cross.
Measured against quadrature and long runs: `docs/results/dyadic-theory.md`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant.train.propagation import Normal, propagate
from calibrant.types import Array

MIXED = 20  # dimensions up to which particles correct the Gaussian
ALLOWANCE = 0.3  # nats
ISLANDS, PARTICLES = 8, 64
KEEP = 0.8  # the smallest effective share of an island's particles
SWEEPS = 5  # moves of every particle at each stage
STAGES = 200
SURE, WIDE = 30.0, 8.0
CHUNK = 512
OCTAVES = (-26, 4)  # of the graded grid: from 1e-8 to 8
TOLERANCE = 1e-6  # nats by which leaving sure labels out may change a particle's log-likelihood


class Evidence(NamedTuple):
    """The log-probability of all labels, and its standard error."""

    log: float
    se: float


def log_evidence(rng: np.random.Generator, x: Array, signs: Array, temp: float) -> Evidence:
    """Of labels `signs` [tau] at inputs x [tau, inputs], under phi ~ N(0, I)."""
    signed = reduced(np.asarray(x, np.float64)) * (np.asarray(signs, np.float64)[:, None] / temp)
    if signed.shape[1] == 1:
        return Evidence(on_a_line(signed[:, 0]), 0.0)
    q, log = propagate(signed)
    if signed.shape[1] > MIXED:
        return Evidence(log, ALLOWANCE)
    mean, spread = signed @ q.mean, np.sqrt((q.through(signed) ** 2).sum(axis=1))
    unsure = mean - WIDE * spread < SURE
    found, z = anneal(rng, signed[unsure], q)
    full, part = (log_likelihood(q.at(z) @ rows.T) for rows in (signed, signed[unsure]))
    if np.abs(full - part).max() > TOLERANCE:
        found, _ = anneal(rng, signed, q)
    return found


def on_a_line(signed: Array) -> float:
    """log E prod_t sigma(signed_t phi), phi a standard normal number, by quadrature."""
    nodes, weights = graded_normal(64)
    logs = np.concatenate([log_likelihood(block[:, None] * signed) for block in np.array_split(nodes, 64)])
    return float(np.logaddexp.reduce(logs + np.log(weights)))


def graded_normal(points: int) -> tuple[Array, Array]:
    """Nodes and weights of a standard normal number: Gauss-Legendre with `points` nodes in every octave about 0.

    What is asked of such a number may be as narrow as 1e-6 around 0 (many labels, high signal) or as wide as the prior.
    """
    edges = np.concatenate([[0.0], 2.0 ** np.arange(*OCTAVES)])
    x, w = np.polynomial.legendre.leggauss(points)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    nodes, weights = (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()
    nodes, weights = np.concatenate([-nodes[::-1], nodes]), np.concatenate([weights[::-1], weights])
    weights = weights * np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


def reduced(x: Array) -> Array:
    """The same inner products with a standard normal vector, in no more dimensions than there are rows."""
    if len(x) >= x.shape[1]:
        return x
    triangle: Array = np.linalg.qr(x.T, mode="r")
    return triangle.T


def log_likelihood(margins: Array) -> Array:
    """sum_t log sigma(margin_t), [n, tau] -> [n]; logarithms of products of CHUNK numbers between 1 and 2."""
    starts = np.arange(0, margins.shape[1], CHUNK)
    if not len(starts):
        return np.zeros(len(margins))
    products = np.multiply.reduceat(1 + np.exp(-np.abs(margins)), starts, axis=1)
    return np.minimum(margins, 0).sum(axis=1) - np.log(products).sum(axis=1)


# --- from the Gaussian to the posterior ---------------------------------------------------------------


class Cloud(NamedTuple):
    """Particles: q's standard normal numbers z, and what is linear in them; log(prior likelihood / q) at each."""

    z: Array  # [n, dim]
    phi: Array  # [n, dim] without q's mean
    margins: Array  # [n, tau] likewise
    ratio: Array  # [n]


def anneal(rng: np.random.Generator, signed: Array, q: Normal) -> tuple[Evidence, Array]:
    """Carry particles from q to the posterior; the evidence and where they ended [n, dim]."""
    target = Target(q, signed)
    now, beta, logs, stage = target.draw(rng, ISLANDS * PARTICLES), 0.0, np.zeros(ISLANDS), 0
    while beta < 1:
        stage += 1
        ratio = now.ratio.reshape(ISLANDS, -1)
        following = _next(ratio, beta) if stage < STAGES else 1.0
        gain = (following - beta) * ratio
        top = gain.max(axis=1, keepdims=True)
        weights = np.exp(gain - top)
        logs += top[:, 0] + np.log(weights.mean(axis=1))
        chosen = _resample(rng, weights)
        now, beta = Cloud(*(part[chosen] for part in now)), following
        for _ in range(SWEEPS if beta < 1 else 0):
            now = _slice(rng, now, beta, target)
    high = logs.max()
    shares = np.exp(logs - high)
    mean = shares.mean()
    return Evidence(float(high + np.log(mean)), float(shares.std(ddof=1) / np.sqrt(ISLANDS) / mean)), now.z


@dataclass(frozen=True)
class Target:
    """What particles are carried to: the posterior, seen from q."""

    q: Normal
    signed: Array  # [tau, dim]

    def draw(self, rng: np.random.Generator, n: int) -> Cloud:
        """Fresh draws of q."""
        return self.judged(*self.drawn(rng, n))

    def drawn(self, rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
        z = rng.standard_normal((n, self.signed.shape[1]))
        phi = self.q.at(z) - self.q.mean
        return z, phi, phi @ self.signed.T

    def judged(self, z: Array, phi: Array, margins: Array) -> Cloud:
        prior = -0.5 * ((phi + self.q.mean) ** 2).sum(axis=1)
        ratio = log_likelihood(margins + self.offset) + prior + 0.5 * (z**2).sum(axis=1) - self.q.half_log_det
        return Cloud(z, phi, margins, ratio)

    @functools.cached_property
    def offset(self) -> Array:
        return self.signed @ self.q.mean


def _next(ratio: Array, beta: float) -> float:
    """The largest b at which every island keeps its effective share."""

    def allowed(b: float) -> bool:
        gain = (b - beta) * ratio
        weights = np.exp(gain - gain.max(axis=1, keepdims=True))
        effective = weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)
        return bool(effective.min() >= KEEP * ratio.shape[1])

    if allowed(1.0):
        return 1.0
    low, high = beta, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return max(low, beta + 1e-6)


def _resample(rng: np.random.Generator, weights: Array) -> Array:
    """Systematically, island by island: indices [islands * particles]."""
    islands, particles = weights.shape
    shelves = np.cumsum(weights, axis=1)
    marks = (np.arange(particles) + rng.random((islands, 1))) / particles * shelves[:, -1:]
    chosen = [np.minimum(np.searchsorted(shelves[i], marks[i]), particles - 1) + i * particles for i in range(islands)]
    return np.concatenate(chosen)


def _slice(rng: np.random.Generator, now: Cloud, beta: float, target: Target) -> Cloud:
    """One elliptical slice move of every particle: a point of the ellipse through it and a fresh draw of q."""
    n = len(now.z)
    here, there = now[:3], target.drawn(rng, n)
    level = beta * now.ratio + np.log(rng.random(n))
    angle = 2 * np.pi * rng.random(n)
    low, high = angle - 2 * np.pi, angle.copy()
    moved = Cloud(*(part.copy() for part in now))
    left = np.arange(n)  # particles whose angle is still to be found
    while len(left):
        c, s = np.cos(angle[left])[:, None], np.sin(angle[left])[:, None]
        tried = target.judged(*(a[left] * c + b[left] * s for a, b in zip(here, there, strict=True)))
        good = beta * tried.ratio >= level[left]
        for part, new in zip(moved, tried, strict=True):
            part[left[good]] = new[good]
        left = left[~good]
        below = angle[left] < 0
        low[left[below]], high[left[~below]] = angle[left[below]], angle[left[~below]]
        angle[left] = low[left] + (high[left] - low[left]) * rng.random(len(left))
    return moved
