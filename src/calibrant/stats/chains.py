"""Have chains mixed? Split R-hat and the effective sample size of any quantity that they were watched by.

Values have the axes [chains, draws, ...]; both answers have the axes that are left. Every chain is cut into halves
first, so that a chain which drifts disagrees with itself. Differences below `resolution` do not count: a quantity
that varies less than that, such as a probability that every draw puts next to one, is as good as constant, has an
R-hat of one and loses no draws.

Gelman et al., "Bayesian Data Analysis", third edition, 2013, section 11.4 (R-hat); Geyer, "Practical Markov Chain
Monte Carlo", Statistical Science 1992 (the truncated sum of autocorrelations, as BlackJAX computes it).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from blackjax.diagnostics import effective_sample_size as _initial_sequence_size

from calibrant.types import Array


@jax.jit
def split_rhat(values: Array, resolution: float = 0.0) -> Array:
    """sqrt(V / W): the variance of the pooled draws over the mean variance within a half-chain.

    One for chains that agree; beyond all bounds, unless `resolution` is given, for chains that stand still apart.
    """
    halves = _halves(values)
    draws = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0) + resolution**2
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return jnp.where(between > 0, jnp.sqrt((draws - 1) / draws + between / within), 1.0)


@jax.jit
def effective_sample_size(values: Array, resolution: float = 0.0) -> Array:
    """How many independent draws would know the mean as well as these; at most all of them."""
    halves = _halves(values)
    chains, draws, *rest = halves.shape
    size = _initial_sequence_size(halves.reshape(chains, draws, -1)).reshape(rest)
    varies = halves.var(axis=(0, 1)) > resolution**2
    return jnp.where(varies, jnp.minimum(size, chains * draws), chains * draws)


def _halves(values: Array) -> Array:
    """[chains, draws, ...] -> [2 chains, draws // 2, ...]; an odd first draw is left out.

    Values are told from the very first one, so that the rounding of a constant does not pass for variation.
    """
    chains, draws = values.shape[:2]
    half = draws // 2
    told = values - values[:1, :1]
    return told[:, draws - 2 * half :].reshape(2 * chains, half, *values.shape[2:])
