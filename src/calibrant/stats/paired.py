"""Two agents on the environments that both have answered.

Environments differ far more than agents do, so agents are compared environment by environment; what only one of them
has answered says nothing about their difference and is left out. Strata and units are those of `stats.intervals`.

The relative score is the **ratio of the means**, as when a figure is normalised by one agent. Its interval is
Fieller's: every ratio r for which the mean of `agent - r * baseline` is not significantly different from 0. Unlike the
delta method it takes no straight line for the curve 1 / baseline; the two agree when the baseline's mean is sharp. The
degrees of freedom are those of the difference, so this interval excludes 1 exactly when the difference's excludes 0.
Where the baseline's own mean cannot be told from 0 no bounded interval exists and the limits are nan.
"""

from __future__ import annotations

import numpy as np

from calibrant.stats.intervals import LEVEL, Estimates, Interval, estimates, quantile
from calibrant.types import Array

ROUNDING = 1e-6  # of a score: answers are in single precision, whose rounding adds up over the labels of a tuple


def difference(agent: Array, baseline: Array, strata: Array, level: float = LEVEL) -> Interval:
    """Mean of agent - baseline over shared environments; all arguments are [n], nan is missing.

    >>> difference([1.0, 2.0, 9.0], [1.5, 3.5, float("nan")], ["a", "a", "a"]).mean
    -1.0
    """
    return differences(np.asarray(agent, float)[None], baseline, strata).intervals(level)[0]


def ratio(agent: Array, baseline: Array, strata: Array, level: float = LEVEL) -> Interval:
    """Mean of agent over mean of baseline, both over shared environments, with Fieller's interval.

    >>> ratio([1.0, 2.0], [2.0, 4.0], ["a", "a"]).mean
    0.5
    """
    return ratios(np.asarray(agent, float)[None], baseline, strata, level)[0]


def differences(agents: Array, baseline: Array, strata: Array) -> Estimates:
    """The paired difference of every row of `agents` [rows, n] to `baseline` [n]."""
    return estimates(_gaps(np.asarray(agents, float), np.asarray(baseline, float)), strata)


def ratios(agents: Array, baseline: Array, strata: Array, level: float = LEVEL) -> list[Interval]:
    """The ratio of every row of `agents` [rows, n] to `baseline` [n].

    With z = (agent - R baseline) / B and u = baseline / B, where B is the baseline's mean and R the ratio, Fieller's
    set is R + d for all d with d^2 <= t^2 Var(z - d u): between the roots of a quadratic when t^2 Var(u) < 1.
    """
    agents, baseline = np.asarray(agents, float), np.asarray(baseline, float)
    gap = _gaps(agents, baseline)
    paired = estimates(gap, strata)
    base = np.where(np.isnan(gap), np.nan, baseline)
    scale = estimates(base, strata).mean
    scale = np.where(scale == 0, np.nan, scale)
    centre = 1 + paired.mean / scale

    u = base / scale[:, None]
    z = gap / scale[:, None] - (centre - 1)[:, None] * u
    var_z, var_u, var_zu = (estimates(values, strata).se ** 2 for values in (z, u, z - u))
    covariance = (var_z + var_u - var_zu) / 2

    t2 = quantile(paired.df, level) ** 2
    lead = np.where(t2 * var_u < 1, 1 - t2 * var_u, np.nan)
    root = np.sqrt(t2 * (t2 * covariance**2 + lead * var_z))
    low, high = (centre + (-t2 * covariance + side * root) / lead for side in (-1, 1))
    rows = zip(centre.tolist(), low.tolist(), high.tolist(), paired.n.tolist(), strict=True)
    return [Interval(mean, below, above, n) for mean, below, above, n in rows]


def _gaps(agents: Array, baseline: Array) -> Array:
    """agents - baseline, where a gap of mere rounding is none: it would look like a tiny but certain difference."""
    gap = agents - baseline
    return np.where(np.abs(gap) <= ROUNDING * np.abs(baseline), 0.0, gap)
