"""Which input to have labelled next, from what some worlds say of every candidate's label.

A rule turns probabilities p [worlds, candidates, classes] into a priority [candidates]; the highest is labelled, equal
ones by lot. With m the mean over worlds and H the entropy:
    entropy     H(m)                                       Shannon; uncertainty of all kinds
    margin      minus the gap between the two largest m     Scheffer et al., 2001
    variation   1 - max m, as `margin` for two classes      Freeman, 1965
    bald        H(m) - mean H(p)                            Houlsby et al., 2011: what the label says about the world
    variance    variance of p over worlds, summed           spread of the worlds' opinions
    joint       mean over anchors a of I(Y; Y_a, Y_a, ...)  ours: what the label says about the labels of a dyad's other
                                                            anchor, asked again and again
`bald` also prizes what no other input will ever profit from; `joint` counts only what dyadic questions ask. With one
repeat it is the expected predictive information gain of Bickford Smith et al., 2023.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, xlogy

from calibrant.types import Array, Key

Priority = Callable[[Key, Array], Array]
ANCHORS = 32  # candidates that stand for the inputs of future questions
RESOLUTION = 1e-6  # nats
REPEATS = 9  # of an anchor, for two classes; with more classes an anchor is asked once


def uniform(key: Key, p: Array) -> Array:
    return jax.random.uniform(key, p.shape[1:2])


def entropy(key: Key, p: Array) -> Array:
    return _entropy(p.mean(axis=0))


def margin(key: Key, p: Array) -> Array:
    largest = jax.lax.top_k(p.mean(axis=0), 2)[0]
    return largest[:, 1] - largest[:, 0]


def variation(key: Key, p: Array) -> Array:
    return 1 - p.mean(axis=0).max(axis=1)


def bald(key: Key, p: Array) -> Array:
    return _information(_entropy(p.mean(axis=0)) - _entropy(p).mean(axis=0))


def variance(key: Key, p: Array) -> Array:
    return p.var(axis=0).sum(axis=1)


def joint(key: Key, p: Array) -> Array:
    """Mutual information with each anchor's labels, averaged over anchors drawn from the candidates."""
    drawn = jax.random.choice(key, p.shape[1], (min(ANCHORS, p.shape[1]),), replace=False)
    asked = _outcomes(p[:, drawn])  # [worlds, anchors, outcomes]
    both = jnp.einsum("wnc,wao->naco", p, asked) / len(p)
    gain = xlogy(both, both).sum(axis=(2, 3)) + _entropy(p.mean(axis=0))[:, None] + _entropy(asked.mean(axis=0))[None]
    return _information(gain.mean(axis=1))


PRIORITIES: dict[str, Priority] = {
    "uniform": uniform,
    "entropy": entropy,
    "margin": margin,
    "variation": variation,
    "bald": bald,
    "variance": variance,
    "joint": joint,
}


def _entropy(p: Array) -> Array:
    return -xlogy(p, p).sum(axis=-1)


def _information(nats: Array) -> Array:
    """What single precision leaves of nothing is nothing: ties are then broken by lot and not by rounding."""
    return jnp.where(nats > RESOLUTION, nats, 0.0)


def _outcomes(p: Array) -> Array:
    """The law of what is seen of each anchor, [..., outcomes]: how often class 1 comes up, or a single label."""
    if p.shape[-1] != 2:
        return p
    hits = jnp.arange(REPEATS + 1)
    ways = jnp.exp(gammaln(REPEATS + 1.0) - gammaln(hits + 1.0) - gammaln(REPEATS - hits + 1.0))
    return ways * p[..., 1:] ** hits * p[..., :1] ** (REPEATS - hits)
