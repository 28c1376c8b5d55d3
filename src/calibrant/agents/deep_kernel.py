"""Deep kernel: a trained network's last hidden layer as the kernel of a Gaussian process around its logits.

Osband et al., 2022, appendix C.9. With unit-norm features phi, training features Phi and noise sigma^2 = noise
temperature, the posterior covariance is sigma^2 phi' (sigma^2 I + Phi' Phi)^-1 phi by Woodbury's identity, so with the
Cholesky factor L of sigma^2 I + Phi' Phi a world is
    f(x) = network(x) + scale sigma phi(x) L^-T zeta,   zeta ~ N(0, I) [features, classes].
`scale` 1 is the appendix; the original code multiplies by 2 / sqrt(T temperature) (`form=code`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt

from calibrant.nets.mlp import Mlp, reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import SampledBelief
from calibrant.train.online import Members, Seen, weight_decay
from calibrant.train.recipe import Recipe
from calibrant.types import Array, Data, Facts, Key


@dataclass(frozen=True)
class LinearOnFeatures:
    """A network whose logits are shifted by a random linear function of its unit-norm features."""

    network: Mlp

    def __call__(self, params: Any, x: Array) -> Array:
        layers, shift = params
        logits, features = self.network.with_features(layers, x)
        return logits + unit(features) @ shift


@dataclass(frozen=True)
class DrawShift:
    """Draws scale sigma L^-T zeta for every class."""

    classes: int

    def __call__(self, state: Any, key: Key) -> Any:
        layers, factor, spread = state
        zeta = jax.random.normal(key, (len(factor), self.classes))
        return layers, spread * jax.scipy.linalg.solve_triangular(factor.T, zeta, lower=False)


@dataclass(frozen=True)
class KernelLearner(Members):
    """A network that learns while it plays; the features of all rows observed so far, by its present weights."""

    spread: Any = 1.0  # scale sigma
    variance: Any = 1.0  # sigma^2

    def worlds(self, trained: Any, fixed: Any, key: Key, n: int, seen: Seen) -> Any:
        layers = jax.tree.map(lambda leaf: leaf[0], trained)
        features = unit(self.network.with_features(layers, seen.x)[1])
        weighted = features * seen.counts.sum(axis=1, keepdims=True)
        factor = jnp.linalg.cholesky(self.variance * jnp.eye(features.shape[1]) + features.T @ weighted)
        draw = DrawShift(self.network.sizes[-1])
        return jax.vmap(lambda k: draw((layers, factor, self.spread), k))(jax.random.split(key, n))

    def answer(self, world: Any, fixed: Any, x: Array, notes: Any) -> Array:
        return LinearOnFeatures(self.network)(world, x)


@tree
@dataclass(frozen=True)
class DeepKernel(Recipe):
    """Gaussian process on the features of a trained network (Osband et al., 2022, appendix C.9)."""

    noise: Annotated[float, Gt(0)] = 4.0  # sigma^2 over the temperature
    scale: Annotated[float, Ge(0)] = 1.0
    form: Literal["appendix", "code"] = static("appendix")
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> SampledBelief:
        network = reference_network(facts, self.hidden)
        trained = self.train_independent(key, network, 1, train, facts)
        layers = jax.tree.map(lambda leaf: leaf[0], trained.params)
        features = unit(network.with_features(layers, jnp.asarray(train.x))[1])
        features = features * (jnp.arange(len(train.x)) < facts.train_size)[:, None]
        variance = self.noise * facts.temperature
        factor = jnp.linalg.cholesky(variance * jnp.eye(features.shape[1]) + features.T @ features)
        heuristic = 2 / jnp.sqrt(facts.train_size * facts.temperature) if self.form == "code" else 1.0
        spread = self.scale * heuristic * jnp.sqrt(variance)
        return SampledBelief((layers, factor, spread), DrawShift(facts.classes), LinearOnFeatures(network))

    def online(self, facts: Facts) -> KernelLearner:
        """As in the appendix: the heuristic of the original's code depends on T and is not for games."""
        variance = self.noise * facts.temperature
        return KernelLearner(
            reference_network(facts, self.hidden), 1, weight_decay(self.l2, facts),
            spread=self.scale * jnp.sqrt(variance), variance=variance,
        )  # fmt: skip

    @property
    def networks(self) -> int:
        return 1


def unit(features: Array) -> Array:
    """Rows of length one; a row of zeros stays zero."""
    return features / jnp.maximum(jnp.linalg.norm(features, axis=1, keepdims=True), 1e-12)
