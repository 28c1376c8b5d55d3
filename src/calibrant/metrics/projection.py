"""Joint log-likelihood by random projection: how the Neural Testbed's own code estimates it for more than ten labels.

Osband et al., 2022: worlds are put into at most 2^bits clusters by the signs of random projections of their probits,
a cluster predicts every label with the mean probability of its worlds, and the joint likelihood is the mean over
clusters of the product over labels,
    log sum_k n_k / M  prod_t q_kt(y_t),    q_kt = mean over worlds of cluster k of p_m(y_t | x_t).
Constants are the original's: 7 projections, probits cut at 5, 1e-6 added to sums and counts.

No world that is nearly right has to be among those drawn, because a cluster's mean never says that a label is
impossible; so the estimate stays finite where the mean over worlds (`drawn_kl`) does not. But it is that of another
belief: within a cluster labels are independent, so what its worlds know jointly is lost. It is neither unbiased nor
consistent in the number of worlds; how far it is off: `docs/results/dyadic-theory.md`. No board uses it.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from calibrant.metrics.logspace import logsumexp
from calibrant.types import Array

BITS = 7
CUT = 5.0  # of probits
SMALL = 1e-6
BLOCK = 512  # labels at a time: memory beyond the probabilities themselves does not grow with their number


def projected_log_likelihood(rng: np.random.Generator, p: Array, labels: Array, bits: int = BITS) -> float:
    """Of labels [tau] under the worlds' probabilities p [worlds, tau, classes]."""
    codes = cluster(rng, p, bits)
    known, member = np.unique(codes, return_inverse=True)
    chosen = np.arange(len(known))[:, None] == member  # [clusters, worlds]
    count = chosen.sum(axis=1)
    logs = np.log(count / len(p))
    for start in range(0, len(labels), BLOCK):
        rows = slice(start, start + BLOCK)
        said = np.take_along_axis(p[:, rows], labels[None, rows, None], axis=2)[..., 0]  # [worlds, block]
        logs += np.log((chosen @ said.astype(np.float64) + SMALL) / (count[:, None] + SMALL)).sum(axis=1)
    return float(logsumexp(logs[:, None])[0])


def cluster(rng: np.random.Generator, p: Array, bits: int = BITS) -> Array:
    """Which cluster every world is in [worlds]: the signs of its projections, as a number."""
    sums = np.tile(rng.standard_normal(bits), (len(p), 1))
    for start in range(0, p.shape[1], BLOCK):
        probits = np.clip(ndtri(np.asarray(p[:, start : start + BLOCK], np.float64)), -CUT, CUT)
        flat = probits.reshape(len(p), -1)
        sums += flat @ rng.standard_normal((flat.shape[1], bits))
    codes: Array = (sums > 0) @ (1 << np.arange(bits))
    return codes
