"""The joint score of a belief that knows its joint probabilities in closed form: nothing is averaged over worlds.

As in `calibrant.metrics.joint`, labels are summed out: all outcomes of a tuple where there are at most ENUMERATE, else
DRAWS labellings from the truth for the dependence part. Marginal predictions come from the same closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from calibrant.metrics.joint import ENUMERATE, JointParts, draw_counts, marginal_parts, outcomes_of, patterns
from calibrant.seeds import Stream
from calibrant.types import Array, Tuples

LogJoint = Callable[[Array, Array], Array]


def closed_marginals(log_joint: LogJoint, x: Array, classes: int) -> Array:
    """Log-probabilities of single labels [inputs, classes]."""
    return np.stack([log_joint(row[None], np.eye(classes)[:, None, :]) for row in np.asarray(x)])


def closed_parts(
    log_joint: LogJoint,
    x: Array,  # [unique, inputs]
    tuples: Tuples,
    logq: Array,  # [unique, classes] from `closed_marginals`
    truth: Array | None,  # [unique, classes]
    labels: Array,  # [unique]
    stream: Stream,
) -> JointParts:
    """Score every tuple of a family."""
    marginal, entropy = marginal_parts(tuples, logq, truth, labels)
    kl = np.zeros(len(tuples.anchors))
    classes = logq.shape[1]
    for members, anchors, pattern in patterns(tuples):
        few = math.prod(math.comb(repeats + classes - 1, classes - 1) for repeats in pattern) <= ENUMERATE
        table = outcomes_of(pattern, range(len(pattern)), classes) if few else None
        for row, at in zip(members, anchors, strict=True):
            shape = (-1, len(pattern), classes)
            if truth is None:
                counts = (labels[at][:, None] == np.arange(classes)) * np.array(pattern)[:, None]
                kl[row] = -log_joint(x[at], counts[None])[0]
            elif table:
                log_p = table.counts @ truth[at].reshape(-1)
                p = np.exp(log_p + table.multiplicity)
                kl[row] = (p * (log_p - log_joint(x[at], table.counts.reshape(shape)))).sum()
            else:
                drawn = draw_counts(stream, np.exp(truth[at])[None], pattern)[0]
                product = drawn @ logq[at].reshape(-1)
                kl[row] = marginal[row] + (product - log_joint(x[at], drawn.reshape(shape))).mean()
    return JointParts(kl, marginal, entropy, kl.mean(keepdims=True))
