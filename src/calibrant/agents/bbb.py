"""Bayes by Backprop: a Gaussian over every weight, fitted by stochastic variational inference.

Blundell et al., "Weight Uncertainty in Neural Networks", ICML 2015. Minimises
    -mean log-likelihood + (ratio / T) KL(q || prior),   q = prod_i N(mu_i, softplus(rho_i)^2),
with ratio sqrt(temperature) inputs (`adaptive`) or 1 (`fixed`). The prior is one Gaussian of scale sigma_1, whose KL is
closed, or the paper's scale mixture p N(0, sigma_1^2) + (1 - p) N(0, sigma_2^2), whose KL is averaged over the draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt, Le
from jax.flatten_util import ravel_pytree

from calibrant.nets.mlp import reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import SampledBelief
from calibrant.train.loop import train_sampled
from calibrant.train.online import Law
from calibrant.types import Array, Data, Facts, Key

INITIAL_SCALE = 0.01


@tree
@dataclass(frozen=True)
class MeanField:
    """Independent Gaussians: means and softplus-inverse scales, trees of the network's shape."""

    mean: Any
    rho: Any


def draw_weights(q: MeanField, key: Key) -> Any:
    flat, shape = ravel_pytree(q.mean)
    noise = shape(jax.random.normal(key, flat.shape))
    return jax.tree.map(lambda mean, rho, eps: mean + jax.nn.softplus(rho) * eps, q.mean, q.rho, noise)


def narrow(mean: Any) -> MeanField:
    """What is trained starts as a narrow law around a network's birth."""
    return MeanField(mean, jax.tree.map(lambda leaf: jnp.full(leaf.shape, jnp.log(jnp.expm1(INITIAL_SCALE))), mean))


@tree
@dataclass(frozen=True)
class Bbb:
    """Bayes by Backprop, mean-field variational inference (Blundell et al., 2015)."""

    prior: Literal["gaussian", "mixture"] = static("gaussian")
    sigma_1: Annotated[float, Gt(0)] = 1.0
    sigma_2: Annotated[float, Gt(0)] = 0.5  # of the mixture
    p: Annotated[float, Ge(0), Le(1)] = 0.5  # weight of sigma_1 in the mixture
    kl_form: Literal["adaptive", "fixed"] = static("adaptive")
    draws: Annotated[int, Ge(1)] = static(8)  # weights drawn per step
    lr: Annotated[float, Gt(0)] = 3e-3
    steps: Annotated[int, Ge(1)] = static(1000)
    batch: Annotated[int, Ge(1)] = static(100)
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> SampledBelief:
        network = reference_network(facts, self.hidden)
        birth, training = jax.random.split(key)
        ratio = jnp.sqrt(facts.temperature) * facts.inputs if self.kl_form == "adaptive" else 1.0
        q = train_sampled(
            training, network, draw_weights, narrow(network.init(birth)), train, facts,
            penalty=lambda q, drawn: ratio / facts.train_size * self._kl(q, drawn),
            draws=self.draws, steps=self.steps, batch=self.batch, lr=self.lr,
        )  # fmt: skip
        return SampledBelief(q, draw_weights, network)

    def online(self, facts: Facts) -> Law:
        """The KL is annealed as 1 / t in the paper, and times 2 sqrt(temperature) in its code."""
        network = reference_network(facts, self.hidden)
        return Law(
            birth=lambda key: (narrow(network.init(key)), ()),
            draw=lambda q, _, key: draw_weights(q, key),
            network=network,
            penalty=self._kl,
            draws=self.draws,
            decay={"paper": 1.0, "code": 2 * jnp.sqrt(facts.temperature)},
        )

    @property
    def networks(self) -> int:
        return self.draws

    def _kl(self, q: MeanField, drawn: Any) -> Array:
        """KL(q || prior); `drawn` holds the step's weights, leaves [draws, ...]."""
        mean, scale = ravel_pytree(q.mean)[0], jax.nn.softplus(ravel_pytree(q.rho)[0])
        if self.prior == "gaussian":
            spread = (scale**2 + mean**2) / self.sigma_1**2
            return 0.5 * (spread - 1 - 2 * jnp.log(scale / self.sigma_1)).sum()
        weights = jax.vmap(lambda one: ravel_pytree(one)[0])(drawn)
        log_q = jax.scipy.stats.norm.logpdf(weights, mean, scale)
        wide = jnp.log(self.p) + jax.scipy.stats.norm.logpdf(weights, 0, self.sigma_1)
        narrow = jnp.log1p(-self.p) + jax.scipy.stats.norm.logpdf(weights, 0, self.sigma_2)
        return (log_q - jnp.logaddexp(wide, narrow)).sum() / len(weights)
