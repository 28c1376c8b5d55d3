"""Right about every single input of a logistic model and wrong about how inputs go together.

Osband et al., "Evaluating High-Order Predictive Distributions in Deep Learning" (UAI 2022), section 3.1:
one lambda ~ N(0, 1) for all inputs, P(y = 1 | lambda, x) = sigma(lambda |x| / temp). At one input that is the law of
phi x / temp with phi ~ N(0, I), so marginal and monadic predictions are optimal; at two inputs it claims a dependence
that is not there. A belief about one number is its quadrature: worlds are nodes with weights, and nothing is left to
chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp

from calibrant.nets.trees import tree
from calibrant.train.beliefs import WeightedBelief
from calibrant.train.evidence import graded_normal
from calibrant.train.loop import GROUP
from calibrant.types import Array, CalibrantError, Data, Facts, Key

POINTS = 16  # nodes per octave, 960 in all: fewer than the worlds that are asked for


@dataclass(frozen=True)
class ByLength:
    """Logits 0 and lambda |x| / temp."""

    def __call__(self, params: Any, x: Array) -> Array:
        logit = params * jnp.linalg.norm(x, axis=1)
        return jnp.stack([jnp.zeros_like(logit), logit], axis=1)


@tree
@dataclass(frozen=True)
class Marginal:
    """Control for logistic problems: optimal at every single input, wrong about pairs (Osband et al., UAI 2022)."""

    native: ClassVar[bool] = True
    untaught: ClassVar[bool] = True  # needs no data

    def fit(self, key: Key, train: Data, facts: Facts) -> WeightedBelief:
        if facts.law != "logistic":
            raise CalibrantError(f"agent 'marginal' knows environments of law 'logistic', not '{facts.law}'")
        nodes, weights = graded_normal(POINTS)
        return WeightedBelief(jnp.asarray(nodes) / facts.temperature, jnp.asarray(weights), ByLength())

    @property
    def networks(self) -> int:
        return GROUP  # nothing is trained, so cells gain nothing from running side by side
