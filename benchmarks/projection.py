"""How the original's random-projection estimator does on logistic regression, beside two others.

KL at order TAU of the belief `prior`, which is the best there is, by three estimates of the same joint probability: the
suite's (`train.evidence`), the mean over 1000 worlds, and the mean over clusters of these worlds. KL of `uniform` over
each says at which dimension an estimator still tells the two agents apart by a factor of 2.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from benchmarks.measure import Row
from calibrant.metrics.logspace import logsumexp
from calibrant.metrics.projection import projected_log_likelihood
from calibrant.problems.logistic import Logistic
from calibrant.train.evidence import log_evidence, log_likelihood

DIMS = (1, 2, 3, 5, 10, 30, 100)
TAU, TEMP, WORLDS = 10_000, 0.01, 1000
SEEDS = 8


def rows() -> list[Row]:
    return [_row(dim) for dim in DIMS]


def _row(dim: int) -> Row:
    found = np.array([_kl(dim, seed) for seed in range(SEEDS)])  # [seeds, uniform and three estimates]
    names = ("evidence", "random projection", f"{WORLDS} worlds")
    means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(SEEDS)
    said = [
        f"{name} {mean:,.0f} ± {error:,.0f} ({means[0] / mean:.2f} times)"
        for name, mean, error in zip(names, means[1:], errors[1:], strict=True)
    ]
    return Row(f"KL of `prior`, D={dim}, τ={TAU:,}; `uniform` has {means[0]:,.0f}", "; ".join(said), "")


def _kl(dim: int, seed: int) -> tuple[float, float, float, float]:
    """Of one environment and one tuple: `uniform`, then `prior` by each estimate."""
    long = Logistic(dim=dim, temp=TEMP, tau=(TAU,), long=2).sample(seed).question.long
    assert long is not None
    x, logp, labels = long.draw(0)
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((WORLDS, dim)).astype(np.float32) @ x.T / np.float32(TEMP)
    signs = 2 * labels - 1
    each = log_likelihood(np.asarray(logits * signs, np.float64))
    by_worlds = float(logsumexp(each[:, None])[0] - np.log(WORLDS))
    projected = projected_log_likelihood(rng, np.stack([expit(-logits), expit(logits)], axis=2), labels)
    evidence = log_evidence(rng, x, signs, TEMP).log
    true = float(np.take_along_axis(logp, labels[:, None], axis=1).sum())
    return true + TAU * float(np.log(2)), true - evidence, true - projected, true - by_worlds
