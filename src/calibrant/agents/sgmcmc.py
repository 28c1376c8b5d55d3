"""Stochastic-gradient Langevin dynamics, with or without momentum, at a constant step size.

Welling and Teh, "Bayesian Learning via Stochastic Gradient Langevin Dynamics", ICML 2011; momentum as Chen, Fox and
Guestrin, "Stochastic Gradient Hamiltonian Monte Carlo", ICML 2014. With U the mean cross-entropy plus
(1 / prior_variance) (sqrt(temperature) inputs / T) sum of squares, and xi noise of mean 0 and variance 1,
    m <- momentum m + sqrt(lr) grad U + sqrt(2 (1 - momentum) / T) xi,    theta <- theta - sqrt(lr) m,
which for small steps samples exp(-T U): the likelihood times N(0, prior_variance / (2 inputs sqrt(temperature))) on
every parameter. momentum=0 is plain SGLD, really without momentum (in the original's sweep it never ran).
By default xi is not normal but plus or minus 1, one random bit: the simplified weak Euler scheme (Kloeden and Platen,
"Numerical Solution of Stochastic Differential Equations", 1992, 14.1) has the same weak order, and normal numbers
(`noise=normal`) would be more than half the cost of a step on small data.
RMSprop preconditioning (Li et al., 2016, without its correction term, as in the original) divides by a running scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt, Lt
from jax.flatten_util import ravel_pytree

from calibrant.nets.mlp import reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import FiniteBelief
from calibrant.train.likelihoods import cross_entropy, l2_strength
from calibrant.train.minibatches import shuffled, take
from calibrant.types import Array, Data, Facts, Key

DECAY, EPSILON = 0.99, 1e-7  # of the RMSprop scale
WORD = 32  # bits


def signs(key: Key, count: int) -> Array:
    """Plus or minus 1 with equal chance, from one random bit each."""
    words = jax.random.bits(key, (-(-count // WORD), 1))
    bits = (words >> jnp.arange(WORD, dtype=jnp.uint32)) & 1
    return 2.0 * bits.reshape(-1)[:count] - 1.0


NOISE = {"normal": lambda key, count: jax.random.normal(key, (count,)), "signs": signs}


@tree
@dataclass(frozen=True)
class Sgmcmc:
    """Stochastic-gradient Langevin dynamics (Welling and Teh, 2011)."""

    lr: Annotated[float, Gt(0)] = 1e-4
    prior_variance: Annotated[float, Gt(0)] = 0.1
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.9
    preconditioner: Literal["none", "rmsprop"] = static("none")
    noise: Literal["normal", "signs"] = static("signs")
    burn_in: Annotated[int, Ge(0)] = static(100_000)
    samples: Annotated[int, Ge(1)] = static(401)  # the first right after burn-in
    thin: Annotated[int, Ge(1)] = static(1000)  # steps between samples
    batch: Annotated[int, Ge(1)] = static(100)
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        network = reference_network(facts, self.hidden)
        birth, order, dynamics = jax.random.split(key, 3)
        start, restore = ravel_pytree(network.init(birth))
        batches = shuffled(order, facts.train_size, len(train.x), self.thin, self.batch)
        strength = l2_strength(1 / self.prior_variance, "adaptive", facts)

        def energy(theta: Array, step: Array) -> Array:
            rows, share = batches.at(step)
            nll = cross_entropy(network(restore(theta), take(rows, train.x)), take(rows, train.y))
            return (share * nll).sum() + strength * (theta**2).sum()

        def advance(carry: Any, place: tuple[Array, Key]) -> tuple[Any, None]:
            theta, momentum, scale, lived = carry
            step, noise_key = place
            gradient = jax.grad(energy)(theta, step)
            scale, shape = self._precondition(scale, gradient)
            noise = NOISE[self.noise](noise_key, len(theta)) * jnp.sqrt(shape)
            kick = jnp.sqrt(2 * (1 - self.momentum) / facts.train_size) * noise
            momentum = self.momentum * momentum + jnp.sqrt(self.lr) * gradient + kick
            theta = theta - jnp.sqrt(self.lr) * momentum / shape
            return (theta, momentum, scale, lived + jnp.isfinite(theta.sum())), None

        def travel(carry: Any, key: Key, steps: int) -> Any:
            """Enters the shuffled stream at a random place, so that no two stretches see it alike."""
            entry_key, noise = jax.random.split(key)
            places = (jnp.arange(steps) + jax.random.randint(entry_key, (), 0, self.thin)) % self.thin
            return jax.lax.scan(advance, carry, (places, jax.random.split(noise, steps)))[0]

        def sample(carry: Any, key: Key) -> tuple[Any, Array]:
            return travel(carry, key, self.thin), carry[0]

        carry = (start, jnp.zeros_like(start), jnp.ones_like(start), jnp.asarray(0))
        stretches = self.burn_in // self.thin
        keys = jax.random.split(dynamics, stretches + self.samples)
        carry, _ = jax.lax.scan(lambda c, k: (travel(c, k, self.thin), None), carry, keys[:stretches])
        (*_, lived), thetas = jax.lax.scan(sample, carry, keys[stretches:])
        steps = len(keys) * self.thin
        return FiniteBelief(
            jax.vmap(restore)(thetas), network, {"diverged_at": jnp.where(lived == steps, -1, lived + 1)}
        )

    @property
    def networks(self) -> int:
        return 1

    def _precondition(self, scale: Array, gradient: Array) -> tuple[Array, Array | float]:
        if self.preconditioner == "none":
            return scale, 1.0
        scale = DECAY * scale + (1 - DECAY) * gradient**2
        return scale, EPSILON + jnp.sqrt(scale)
