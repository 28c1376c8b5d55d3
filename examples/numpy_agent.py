"""An agent of your own in plain NumPy: Bayesian logistic regression on random features.

Run it beside the others, or check that it keeps the contract:

    calibrant run testbed --agent "examples/numpy_agent.py:Agent?features=50"
    calibrant check examples/numpy_agent.py:Agent

`fit` returns a function `sampler(x, seed)`: one seed is one world. The weights of a world follow from its seed alone,
so that it answers all inputs with the same function, however often and in whatever order they are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.types import Array, Data, Facts


@dataclass(frozen=True)
class Agent:
    """Laplace approximation around the most probable weights. The fields are what a spec can set."""

    features: int = 50  # random ReLU features of the inputs
    scale: float = 0.5  # prior standard deviation of a weight, times the temperature
    steps: int = 30  # Newton steps

    def fit(self, seed: int, train: Data, facts: Facts) -> Callable[[Array, int], Array]:
        rng = np.random.default_rng(seed)
        directions = rng.normal(size=(facts.inputs, self.features))
        offsets = rng.normal(size=self.features)

        def embed(x: Array) -> Array:
            hidden = np.maximum(x @ directions + offsets, 0) / np.sqrt(self.features)
            return np.column_stack([hidden, np.ones(len(x))])

        precision = np.eye(self.features + 1) * (facts.temperature / self.scale) ** 2
        posteriors = [self._laplace(embed(train.x), train.y == c, precision) for c in range(facts.classes)]

        def sampler(x: Array, seed: int) -> Array:
            normal = np.random.default_rng(seed).normal(size=(facts.classes, self.features + 1))
            weights = [mean + root @ z for (mean, root), z in zip(posteriors, normal, strict=True)]
            return -np.logaddexp(
                0, -embed(x) @ np.stack(weights, axis=1)
            )  # log-probability of each class against the rest

        return sampler

    def _laplace(self, features: Array, hit: Array, precision: Array) -> tuple[Array, Array]:
        """One class against the rest: the mean of its weights, and a root of their covariance."""
        weights = np.zeros(features.shape[1])
        for _ in range(self.steps):
            p = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
            gradient = features.T @ (p - hit) + precision @ weights
            curvature = (features.T * (p * (1 - p) + 1e-6)) @ features + precision
            step = np.linalg.solve(curvature, gradient)
            weights = weights - step / max(1.0, float(np.abs(step).max()))  # short steps cannot overshoot
        return weights, np.linalg.inv(np.linalg.cholesky(curvature)).T
