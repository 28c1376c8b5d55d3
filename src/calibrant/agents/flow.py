"""Normalising-flow variational inference: a posterior over weights that is not made of independent Gaussians.

Rezende and Mohamed, "Variational Inference with Normalizing Flows", ICML 2015, in the form of van den Berg et al.,
"Sylvester Normalizing Flows for Variational Inference", UAI 2018, with a coupling flow (Dinh et al., 2017) inside. In
units of the prior's standard deviations, weights are
    theta = mu + sigma * (eps + U (F(t) - t)),   t = U' eps,   eps ~ N(0, I),
with orthonormal directions U [parameters, rank] and an invertible F: R^rank -> R^rank, a triangular map and then affine
couplings. The map from eps to theta is invertible and its log-determinant is sum log sigma + log |det F'(t)|: the
density is exact, without the auxiliary bound that multiplicative flows need, and one draw is one whole function, which
functional variational inference on a finite set of inputs does not give. F = identity is mean field.

Minimises  mean cross-entropy + KL(q || prior) / T: the negative evidence lower bound per row. All of the KL but the
average over the `rank` numbers t is in closed form. Prior and likelihood are those of `nuts` (see `train.chains`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import solve_triangular

from calibrant.nets.mlp import Mlp, reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import SampledBelief
from calibrant.train.chains import prior_scales
from calibrant.train.loop import train_sampled
from calibrant.types import Array, Data, Facts, Key

INITIAL_SCALE = 0.1  # of a weight's standard deviation, in units of the prior's
WIDTH = 16  # hidden units of a coupling's network


@tree
@dataclass(frozen=True)
class Posterior:
    """What is trained, in units of the prior's standard deviations."""

    mean: Any  # [parameters]
    log_scale: Any  # [parameters]
    basis: Any  # [parameters, rank], not yet orthonormal
    triangle: Any  # [rank, rank]: the lower triangular map, its diagonal by logarithm
    couplings: Any  # parameters of the couplings' networks, leaves [couplings, ...]


@tree
@dataclass(frozen=True)
class Drawn:
    """One world's weights, and the KL of the posterior to the prior as this draw estimates it."""

    layers: Any
    divergence: Any


@tree
@dataclass(frozen=True)
class State:
    """What worlds are drawn from; `unit` holds the prior's standard deviations, a tree of the network's shape."""

    posterior: Posterior
    unit: Any


def draw(state: State, key: Key) -> Drawn:
    q = state.posterior
    _, restore = ravel_pytree(state.unit)
    directions = _orthonormal(q.basis)
    eps = jax.random.normal(key, q.mean.shape)
    t = directions.T @ eps
    bent, log_det = bend(q, t)
    scale = jnp.exp(q.log_scale)
    theta = restore(q.mean + scale * (eps + directions @ (bent - t)))
    centre = q.mean + scale * (directions @ bent)
    around = scale**2 * (1 - (directions**2).sum(1))
    divergence = 0.5 * (centre**2 + around - 1).sum() - q.log_scale.sum() - log_det
    return Drawn(jax.tree.map(jnp.multiply, state.unit, theta), divergence)


def draw_layers(state: State, key: Key) -> Any:
    return draw(state, key).layers


def bend(q: Posterior, t: Array) -> tuple[Array, Array]:
    """F(t) and log |det F'(t)|: every coupling scales and shifts one half by the other, then swaps them."""
    diagonal = jnp.diagonal(q.triangle)
    lower = jnp.tril(q.triangle, -1) + jnp.diag(jnp.exp(diagonal))
    conditioner, half = _conditioner(len(t)), len(t) // 2

    def couple(carry: tuple[Array, Array], layers: Any) -> tuple[tuple[Array, Array], None]:
        t, log_det = carry
        raw, shift = jnp.split(conditioner(layers, t[None, :half])[0], 2)
        stretch = jnp.tanh(raw)
        moved = t[half:] * jnp.exp(stretch) + shift
        return (jnp.concatenate([moved, t[:half]]), log_det + stretch.sum()), None

    return jax.lax.scan(couple, (lower @ t, diagonal.sum()), q.couplings)[0]


@tree
@dataclass(frozen=True)
class Flow:
    """Variational inference with a normalising flow over the weights (Rezende and Mohamed, 2015)."""

    rank: Annotated[int, Ge(2)] = static(10)  # directions in which the posterior is bent
    couplings: Annotated[int, Ge(0)] = static(4)
    prior: Literal["fan_in", "adaptive"] = static("fan_in")
    prior_variance: Annotated[float, Gt(0)] = 0.77  # of a normal cut at two standard deviations
    kl_weight: Annotated[float, Gt(0)] = 1.0  # below 1 the posterior is colder than Bayes' rule says
    draws: Annotated[int, Ge(1)] = static(4)  # weights drawn per step
    lr: Annotated[float, Gt(0)] = 1e-2
    steps: Annotated[int, Ge(1)] = static(2000)
    batch: Annotated[int, Ge(1)] = static(100)
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)  # None: the network that the facts name

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> SampledBelief:
        network = reference_network(facts, self.hidden)
        birth, training = jax.random.split(key)
        scales = prior_scales(network, self.prior, self.prior_variance, facts)
        shapes = jax.eval_shape(network.init, birth)
        unit = tuple(_filled(layer, scale) for layer, scale in zip(shapes, scales, strict=True))
        posterior = train_sampled(
            training, lambda one, x: network(one.layers, x), lambda q, k: draw(State(q, unit), k),
            self._birth(birth, network, unit), train, facts,
            penalty=lambda _, drawn: self.kl_weight * drawn.divergence.mean() / facts.train_size,
            draws=self.draws, steps=self.steps, batch=self.batch, lr=self.lr,
        )  # fmt: skip
        return SampledBelief(State(posterior, unit), draw_layers, network)

    @property
    def networks(self) -> int:
        return self.draws

    def _birth(self, key: Key, network: Mlp, unit: Any) -> Posterior:
        """The network's own birth with little noise around it, and F the identity."""
        layers_key, basis_key, coupling_key = jax.random.split(key, 3)
        mean = ravel_pytree(jax.tree.map(jnp.divide, network.init(layers_key), unit))[0]
        rank = min(self.rank, len(mean))
        conditioner = _conditioner(rank)
        couplings = jax.vmap(conditioner.init)(jax.random.split(coupling_key, self.couplings))
        last = jax.tree.map(jnp.zeros_like, couplings[-1])
        basis = jax.random.normal(basis_key, (len(mean), rank)) / jnp.sqrt(len(mean))
        log_scale = jnp.full(len(mean), jnp.log(INITIAL_SCALE))
        return Posterior(mean, log_scale, basis, jnp.zeros((rank, rank)), (*couplings[:-1], last))


def _filled(layer: Any, value: Array) -> Any:
    return jax.tree.map(lambda leaf: jnp.full(leaf.shape, value), layer)


def _conditioner(rank: int) -> Mlp:
    half = rank // 2
    return Mlp((half, WIDTH, 2 * (rank - half)), "tanh")


def _orthonormal(basis: Array) -> Array:
    """The same span, by the inverse of the small Gram matrix's Cholesky factor, [parameters, rank]."""
    factor = jnp.linalg.cholesky(basis.T @ basis)
    return basis @ solve_triangular(factor, jnp.eye(len(factor)), lower=True).T
