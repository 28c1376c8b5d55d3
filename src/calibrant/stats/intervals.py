"""Means over environments with honest intervals.

The unit is the environment: one seed of one problem spec. A problem spec is a **stratum**, a setting fixed by the
design of the suite; the seeds inside it are independent draws. Whatever was measured several times on one environment
is averaged before it comes here, so that a cluster is never split and replicates never pose as environments.

With n_h environments in stratum h, N in all, stratum means m_h and variances s_h^2:

    mean      sum_h (n_h / N) m_h, which is the plain mean over environments
    variance  sum_h (n_h / N)^2 s_h^2 / n_h: settings are not sampled, so only the spread inside them counts
    interval  Student's t, with Satterthwaite's degrees of freedom, as the s_h^2 may differ between strata

A stratum with one environment has no spread of its own. Such strata are collapsed into one; a lone one joins the
largest stratum. That adds differences between settings to the variance, so in expectation the variance is never too
small, whatever the settings' means and variances are. A single environment in all has no interval: (nan, nan).

The intervals are not cut to a metric's range. They are exact for normal values in one stratum and approximate else; for
the skewed values that divergences are, coverage falls a little short when environments are few (see the tests).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from calibrant.types import Array, CalibrantError

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate over n environments with its confidence limits, which are nan where there are none."""

    mean: float
    low: float
    high: float
    n: int

    def excludes(self, value: float) -> bool:
        """Whether `value` lies outside; False where there are no limits."""
        return self.low > value or self.high < value


@dataclass(frozen=True)
class Estimates:
    """Many means at once: each field is [rows]. `se` and `df` are nan in rows with fewer than two environments."""

    mean: Array
    se: Array
    df: Array
    n: Array

    def intervals(self, level: float = LEVEL) -> list[Interval]:
        half = quantile(self.df, level) * self.se
        columns = (self.mean, self.mean - half, self.mean + half)
        rows = zip(*(column.tolist() for column in columns), self.n.tolist(), strict=True)
        return [Interval(mean, low, high, n) for mean, low, high, n in rows]


def interval(values: Array, strata: Array, level: float = LEVEL) -> Interval:
    """The mean of `values` [n] with its interval; `strata` [n] names each environment's setting, nan is missing.

    >>> interval([1.0, 3.0, 11.0, 13.0], ["easy", "easy", "hard", "hard"])
    Interval(mean=7.0, low=3.957..., high=10.042..., n=4)
    """
    return estimates(np.asarray(values, float)[None], strata).intervals(level)[0]


def estimates(values: Array, strata: Array) -> Estimates:
    """The stratified mean of every row of `values` [rows, n]; nan marks an environment that the row misses."""
    values = np.asarray(values, float)
    if np.isinf(values).any():
        raise CalibrantError("values to be averaged should be finite, with nan for missing environments")
    present = ~np.isnan(values)
    flat, shape = _groups(np.unique(np.asarray(strata), return_inverse=True)[1], present)
    known = values[present]

    count = np.bincount(flat, minlength=shape[0] * shape[1])
    total = np.bincount(flat, known, minlength=count.size)
    centre = total / np.maximum(count, 1)
    square = np.bincount(flat, (known - centre[flat]) ** 2, minlength=count.size)

    count, square = count.reshape(shape), square.reshape(shape)
    n, freedom = count.sum(1), np.maximum(count - 1, 0)
    part = _divide(count * square, freedom * n[:, None] ** 2.0, 0.0)  # each stratum's share of the variance of the mean
    variance = np.where(n > 1, part.sum(1), np.nan)
    share = _divide(part, variance[:, None], 0.0)
    spread = _divide(share**2, freedom, 0.0).sum(1)
    df = np.where(n > 1, _divide(1.0, spread, freedom.sum(1)), np.nan)  # without any spread all freedoms are equal
    return Estimates(_divide(total.reshape(shape).sum(1), n, np.nan), np.sqrt(variance), df, n)


def quantile(df: Array, level: float) -> Array:
    """How many standard errors a two-sided interval reaches to each side."""
    return stdtrit(df, (1 + level) / 2)


def _groups(codes: Array, present: Array) -> tuple[Array, tuple[int, int]]:
    """For each known value the flat index of its (row, stratum) in a table of the given shape, singles collapsed."""
    rows, strata = len(present), int(codes.max(initial=-1)) + 1
    offset = (strata + 1) * np.arange(rows)[:, None]
    count = np.bincount((codes + offset)[present], minlength=rows * (strata + 1)).reshape(rows, strata + 1)
    single = count == 1
    home = np.where((single.sum(1) == 1) & (count.sum(1) > 1), count.argmax(1), strata)
    group = np.where(single[:, codes], home[:, None], codes)
    return (group + offset)[present], (rows, strata + 1)


def _divide(top: Array, bottom: Array, otherwise: Array | float) -> Array:
    """top / bottom where bottom is positive."""
    fill = np.broadcast_to(np.asarray(otherwise, float), np.broadcast_shapes(np.shape(top), np.shape(bottom))).copy()
    return np.divide(top, bottom, out=fill, where=np.asarray(bottom) > 0)
