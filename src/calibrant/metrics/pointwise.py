"""Scores of single predictions, from the mean over worlds of the class probabilities.

Where the truth is known, labels are summed out: every expectation over labels is closed. Only `ece`, which the paper
defines on drawn labels, uses them; `ece_expected` is the same number without their noise.
"""

from __future__ import annotations

import numpy as np

from calibrant.metrics.logspace import summarise
from calibrant.metrics.reading import Marginal, Reading
from calibrant.types import Array, Scores

BINS = 10


def nll(reading: Reading) -> Scores:
    m = reading.marginal
    return summarise(_cross_entropy(m, m.logq).mean(axis=1), _cross_entropy(m, m.logq_left_out).mean(axis=(1, 2)))


def kl_tau1(reading: Reading) -> Scores | None:
    if reading.truth.logp is None:
        return None
    m = reading.marginal
    left_out = (_cross_entropy(m, m.logq_left_out) - m.entropy).mean(axis=(1, 2))
    return summarise((_cross_entropy(m, m.logq) - m.entropy).mean(axis=1), left_out)


def accuracy(reading: Reading) -> Scores:
    m = reading.marginal
    return summarise(_chosen(m.logq, m.p).mean(axis=1))


def brier(reading: Reading) -> Scores:
    m = reading.marginal
    q = np.exp(m.logq)
    return summarise((q**2 - 2 * q * m.p + m.p).sum(axis=-1).mean(axis=1))


def confidence(reading: Reading) -> Scores:
    return summarise(np.exp(reading.marginal.logq[:, 0].max(axis=-1)))


def hit_rate(reading: Reading) -> Scores:
    return summarise(_drawn_hits(reading.marginal))


def ece(reading: Reading) -> Scores:
    m = reading.marginal
    return Scores(binned_gap(np.exp(m.logq[:, 0].max(axis=-1)), _drawn_hits(m)), n=len(m.logq))


def ece_expected(reading: Reading) -> Scores:
    m = reading.marginal
    return Scores(binned_gap(np.exp(m.logq.max(axis=-1)).ravel(), _chosen(m.logq, m.p).ravel()), n=m.labels.size)


def binned_gap(top: Array, hit: Array) -> float:
    """Expected calibration error: sum over bins of |hits - confidence| / n, bins [i/10, (i+1)/10), 1.0 in the last."""
    index = np.minimum((top * BINS).astype(int), BINS - 1)
    gaps = np.bincount(index, weights=hit - top, minlength=BINS)
    return float(np.abs(gaps).sum() / len(top))


def _cross_entropy(m: Marginal, logq: Array) -> Array:
    return -(m.p * np.where(m.p > 0, logq, 0.0)).sum(axis=-1)


def _chosen(logq: Array, p: Array) -> Array:
    """Probability that the top class is the label; tied classes share it, as if one were chosen at random."""
    top = logq >= logq.max(axis=-1, keepdims=True)
    return (p * top).sum(axis=-1) / top.sum(axis=-1)


def _drawn_hits(m: Marginal) -> Array:
    observed = m.labels[:, 0, None] == np.arange(m.p.shape[-1])
    return _chosen(m.logq[:, 0], observed.astype(np.float64))
