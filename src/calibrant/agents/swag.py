"""Stochastic weight averaging, Gaussian: the spread of stochastic gradient descent's own path as a posterior.

Maddox et al., "A Simple Baseline for Bayesian Uncertainty in Deep Learning", NeurIPS 2019. After training by Adam,
plain gradient descent on minibatches walks on at a constant step size and leaves a snapshot every `collect` steps. With
their mean m, their variances v and the deviations D [rank, parameters] of the last `rank` of them from m, a world is
    theta = m + sqrt(scale / 2) (sqrt(v) * z_1 + D' z_2 / sqrt(rank - 1)),   z_1, z_2 standard normal.
The paper keeps no early snapshots and takes deviations from the running mean; we keep all and take them from m.
Minibatches of the walk are small, because a minibatch that holds all rows equally often gives a walk without noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt
from jax.flatten_util import ravel_pytree

from calibrant.nets.mlp import Mlp, reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import SampledBelief
from calibrant.train.likelihoods import cross_entropy, l2_strength, sum_of_squares
from calibrant.train.minibatches import shuffled, take
from calibrant.train.recipe import Recipe
from calibrant.types import Array, Data, Facts, Key


@tree
@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of every weight, trees of the network's shape; directions, leaves [rank, ...]."""

    mean: Any
    deviation: Any
    directions: Any
    scale: Any


def draw_weights(spread: Spread, key: Key) -> Any:
    own, shared = jax.random.split(key)
    flat, restore = ravel_pytree(spread.mean)
    noise = restore(jax.random.normal(own, flat.shape))
    rank = len(jax.tree.leaves(spread.directions)[0])
    index = jax.random.normal(shared, (rank,)) / jnp.sqrt(rank - 1)
    size = jnp.sqrt(spread.scale / 2)
    return jax.tree.map(
        lambda mean, deviation, eps, directions: mean + size * (deviation * eps + jnp.tensordot(index, directions, 1)),
        *(spread.mean, spread.deviation, noise, spread.directions),
    )


@tree
@dataclass(frozen=True)
class Swag(Recipe):
    """Gaussian fitted to the path of stochastic gradient descent (Maddox et al., 2019)."""

    sgd_lr: Annotated[float, Gt(0)] = 0.03
    sgd_batch: Annotated[int, Ge(1)] = static(5)
    collect: Annotated[int, Ge(1)] = static(25)  # steps between snapshots
    snapshots: Annotated[int, Ge(2)] = static(40)
    rank: Annotated[int, Ge(2)] = static(20)  # at most the number of snapshots
    scale: Annotated[float, Ge(0)] = 1.0  # of the covariance
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)  # None: the network that the facts name

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> SampledBelief:
        network = reference_network(facts, self.hidden)
        training, walking = jax.random.split(key)
        trained = self.train_independent(training, network, 1, train, facts).params
        visited = self.walk(walking, network, jax.tree.map(lambda leaf: leaf[0], trained), train, facts)
        spread = summarise(visited, self.rank, self.scale)
        return SampledBelief(spread, draw_weights, network, {"diverged_at": self._lost(visited)})

    @property
    def networks(self) -> int:
        return 1

    def walk(self, key: Key, network: Mlp, start: Any, train: Data, facts: Facts) -> Any:
        """The weights after every `collect` steps, leaves [snapshots, ...]."""
        batches = shuffled(key, facts.train_size, len(train.x), self.snapshots * self.collect, self.sgd_batch)
        strength = l2_strength(self.l2, self.l2_form, facts)

        def loss(layers: Any, step: Array) -> Array:
            rows, share = batches.at(step)
            nll = cross_entropy(network(layers, take(rows, train.x)), take(rows, train.y))
            return (share * nll).sum() + strength * sum_of_squares(layers)

        def advance(layers: Any, step: Array) -> tuple[Any, None]:
            slope = jax.grad(loss)(layers, step)
            return jax.tree.map(lambda weight, slant: weight - self.sgd_lr * slant, layers, slope), None

        def stretch(layers: Any, steps: Array) -> tuple[Any, Any]:
            layers, _ = jax.lax.scan(advance, layers, steps)
            return layers, layers

        steps = jnp.arange(self.snapshots * self.collect).reshape(self.snapshots, self.collect)
        return jax.lax.scan(stretch, start, steps)[1]

    def _lost(self, visited: Any) -> Array:
        """The step of the first snapshot that is not finite, or -1."""
        finite = jax.vmap(lambda layers: jnp.isfinite(ravel_pytree(layers)[0]).all())(visited)
        return jnp.where(finite.all(), -1, self.collect * (1 + jnp.argmin(finite)))


def summarise(visited: Any, rank: int, scale: Array) -> Spread:
    """The Gaussian of a path's snapshots, leaves [snapshots, ...]."""
    mean = jax.tree.map(lambda leaf: leaf.mean(0), visited)
    deviation = jax.tree.map(lambda leaf: leaf.std(0), visited)
    directions = jax.tree.map(lambda leaf, centre: leaf[-rank:] - centre, visited, mean)
    return Spread(mean, deviation, directions, jnp.asarray(scale))
