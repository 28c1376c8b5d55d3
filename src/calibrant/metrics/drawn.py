"""KL as the Neural Testbed's own code estimates it, to tell a difference in method from a difference in results.

Osband et al., 2022: for every tuple one labelling is drawn from the truth, and 1000 worlds from the belief with
replacement; KL is the mean over tuples of  log P(y) - log mean_m prod_t p_m(y_t | x_t).  Their probabilities are
softmax in single precision, so one below the smallest normal number is 0 and its logarithm -inf; an infinite tuple
then takes the largest finite value of its problem, and a negative mean over tuples is set to 0. Noisier and biased: the
other metrics are what we recommend.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.metrics.logspace import logsumexp, summarise
from calibrant.metrics.reading import Reading
from calibrant.seeds import Stream
from calibrant.types import Array, Scores

WORLDS = 1000
UNDERFLOW = float(np.log(np.finfo(np.float32).tiny))  # -87.3


def drawn_kl_tau1(reading: Reading) -> Scores | None:
    """Of the first input of every item."""
    return _drawn(reading, np.asarray(reading.question.marginal)[:, :1], "one")


def drawn_kl(reading: Reading, family: int) -> Scores | None:
    """Of a family of i.i.d. tuples; the original asks no others of its 2-D testbed."""
    tuples = reading.question.tuples[family]
    if tuples.name:
        return None
    places = np.array([np.repeat(a, r) for a, r in zip(tuples.anchors, tuples.repeats, strict=True)])
    return _drawn(reading, places, tuples.name)


def _drawn(reading: Reading, places: Array, name: str) -> Scores | None:
    if reading.true_logp is None:
        return None
    stream = Stream(reading.key, "drawn", name, places.shape[1])
    truth = reading.true_logp[places]  # [n, tau, classes]
    below = np.cumsum(np.exp(truth), axis=2)[..., :-1]
    labels = (stream.uniform(*places.shape)[..., None] > below).sum(axis=2)
    picked = np.take_along_axis(truth, labels[..., None], axis=2)[..., 0].sum(axis=1)
    kl = picked - _log_likelihood(reading, places, labels, stream)
    finite = np.isfinite(kl)
    if not finite.any():
        return None
    kl = np.where(finite, kl, kl[finite].max())
    summary = summarise(kl, keep=False)
    return replace(summary, mean=max(summary.mean, 0.0))


def _log_likelihood(reading: Reading, places: Array, labels: Array, stream: Stream) -> Array:
    """log mean over worlds of the product over places [n]; -inf where every world underflows."""
    joint = np.zeros((len(places), reading.by_input.shape[2]))
    for at, label in zip(places.T, labels.T, strict=True):
        chosen = reading.by_input[at, label]  # [n, worlds]
        joint += np.where(chosen < UNDERFLOW, -np.inf, chosen)
    with np.errstate(divide="ignore"):
        return logsumexp(joint.T + np.log(_shares(reading, stream))[:, None])


def _shares(reading: Reading, stream: Stream) -> Array:
    """Weights [worlds]: of WORLDS draws with replacement from a finite support; sampled worlds are draws already."""
    weights: Array = reading.groups.weights
    if not reading.answers.exact:
        return weights
    drawn = np.searchsorted(np.cumsum(weights), stream.uniform(WORLDS))
    return np.bincount(np.minimum(drawn, len(weights) - 1), minlength=len(weights)) / WORLDS
