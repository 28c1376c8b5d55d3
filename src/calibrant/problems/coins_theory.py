"""What theory says of the bag of coins without training data: expected KL of three agents, exactly.

For n tosses of one coin with uniform probability of heads, the number of heads is uniform on 0 .. n, so they have
entropy  H(n) = log(n + 1) + mean_k log C(n, k);  given the coin they have n / 2 nats. Hence, with n_c tosses of coin c,
    posterior     sum_c H(n_c) - tau / 2     the least that any agent can have: what tosses tell about coins
    independent   tau log 2 - tau / 2        Proposition 1: the same wherever all n_c <= 1
    shared        log(tau + 1) + E log C(tau, K) - tau / 2,  K all heads: a sum of uniform numbers on 0 .. n_c
Monadic tuples have one n_c = tau: shared equals posterior (Proposition 2). In i.i.d. tuples every n_c is binomial, so
    independent - posterior = M E[n log 2 - H(n)] = C(tau, 2) (5/3 log 2 - log 3) / M + O(tau^3 / M^2),
which is within the O(tau^3 / M) of Proposition 1 and one order of tau smaller.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom

from calibrant.types import Array

AGENTS = ("posterior", "independent", "shared")


def expected_kl(agent: str, coins: int, tau: int, kappa: int | None = None) -> float:
    """Nats per tuple of `tau` tosses; `kappa` coins drawn from the bag, or i.i.d. coins when None.

    >>> round(expected_kl("independent", coins=100, tau=10), 4)
    1.9315
    """
    if agent == "independent":
        return float(tau * (np.log(2) - 0.5))
    cases = [(1.0, np.array([tau]))] if kappa == 1 else _dyads(coins, tau) if kappa == 2 else None
    if cases is None and kappa is not None:
        raise ValueError(f"kappa={kappa} has no closed form here: expected None, 1 or 2")
    if agent == "posterior":
        if cases is None:
            n = np.arange(tau + 1)
            return float(coins * binom.pmf(n, tau, 1 / coins) @ [toss_entropy(m) for m in range(tau + 1)] - tau / 2)
        return float(sum(p * sum(toss_entropy(m) for m in n) for p, n in cases) - tau / 2)
    heads = _heads_iid(coins, tau) if cases is None else sum(p * _heads(n, tau) for p, n in cases)
    return float(np.log(tau + 1) + heads @ _log_choose(tau) - tau / 2)


def toss_entropy(n: int) -> float:
    """Nats in n tosses of a coin whose probability of heads is uniform."""
    return float(np.log(n + 1) + _log_choose(n).mean())


def _log_choose(n: int) -> Array:
    k = np.arange(n + 1)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _dyads(coins: int, tau: int) -> list[tuple[float, Array]]:
    """Probability and tosses per coin of all dyads: two coins, or the same one twice."""
    split = [
        ((1 - 1 / coins) * p, np.array([n, tau - n])) for n, p in enumerate(binom.pmf(np.arange(tau + 1), tau, 0.5))
    ]
    return [*split, (1 / coins, np.array([tau]))]


def _heads(tosses: Array, tau: int) -> Array:
    """Law of the number of heads [tau + 1]."""
    law = np.ones(1)
    for n in tosses:
        law = np.convolve(law, np.full(n + 1, 1 / (n + 1)))
    return np.pad(law, (0, tau + 1 - len(law)))


def _heads_iid(coins: int, tau: int) -> Array:
    """The same over i.i.d. coins: tau! times the coefficient of s^tau in (sum_n (s / M)^n / n! U_n)^M."""
    n = np.arange(tau + 1)
    one = np.where(n <= n[:, None], np.exp(-n * np.log(coins) - gammaln(n + 1) - np.log(n + 1))[:, None], 0.0)
    result = np.zeros_like(one)
    result[0, 0] = 1.0
    left = coins
    while left:
        if left % 2:
            result = _product(result, one)
        one = _product(one, one)
        left //= 2
    return np.asarray(result[tau] * np.exp(gammaln(tau + 1)))


def _product(a: Array, b: Array) -> Array:
    """Of polynomials in two unknowns, without the powers above tau."""
    out = np.zeros_like(a)
    for i in range(len(a)):
        for j in range(i + 1):
            out[i:, j:] += a[i, j] * b[: len(a) - i, : len(a) - j]
    return out
