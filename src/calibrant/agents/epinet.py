"""Epistemic neural networks: a small network of an index, added to a base network on the base's own features.

Osband et al., "Epistemic Neural Networks", NeurIPS 2023. With base features phi(x) held fixed for the epinet,
    f(x, z) = base(x) + epinet([z, x, phi(x)]) . z + (prior_scale / temperature) sum_i z_i g_i(x),   z ~ N(0, I),
where the epinet gives one logit per class and index coordinate and the g_i are small fixed random networks. Weight
decay is l2 (inputs / T)^0.7 on all that is trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt

from calibrant.nets.mlp import Mlp, reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import SampledBelief
from calibrant.train.likelihoods import sum_of_squares
from calibrant.train.loop import train_sampled
from calibrant.types import Array, Data, Facts, Key

DECAY_POWER = 0.7


@tree
@dataclass(frozen=True)
class EpinetState:
    """What worlds are drawn from: (base, epinet) as trained, the fixed prior networks [index, ...] and their scale."""

    trained: Any
    priors: Any
    scale: Any


@tree
@dataclass(frozen=True)
class EpinetWorld:
    """A world: the state at one index."""

    state: EpinetState
    z: Any


@dataclass(frozen=True)
class EpistemicNetwork:
    """The sum of base, epinet and prior functions at one index."""

    base: Mlp
    epinet: Mlp
    prior: Mlp

    def __call__(self, world: EpinetWorld, x: Array) -> Array:
        (base, epinet), z = world.state.trained, world.z
        logits, features = self.base.with_features(base, x)
        given = [jnp.broadcast_to(z, (len(x), len(z))), x, jax.lax.stop_gradient(features)]
        learned = self.epinet(epinet, jnp.concatenate(given, axis=1)).reshape(*logits.shape, len(z)) @ z
        prior = jnp.tensordot(z, jax.vmap(self.prior, (0, None))(world.state.priors, x), 1)
        return logits + learned + world.state.scale * prior


@dataclass(frozen=True)
class DrawIndex:
    index: int

    def __call__(self, state: EpinetState, key: Key) -> EpinetWorld:
        return EpinetWorld(state, jax.random.normal(key, (self.index,)))


@tree
@dataclass(frozen=True)
class Epinet:
    """Epinet with additive prior functions (Osband et al., 2023)."""

    index: Annotated[int, Ge(1)] = static(8)
    epinet_hidden: tuple[Annotated[int, Ge(1)], ...] = static((15, 15))
    prior_scale: Annotated[float, Ge(0)] = 0.3
    prior_hidden: tuple[Annotated[int, Ge(1)], ...] = static((5, 5))
    l2: Annotated[float, Ge(0)] = 0.2
    draws: Annotated[int, Ge(1)] = static(8)  # indices per step
    lr: Annotated[float, Gt(0)] = 1e-3
    steps: Annotated[int, Ge(1)] = static(1000)
    batch: Annotated[int, Ge(1)] = static(100)
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> SampledBelief:
        base = reference_network(facts, self.hidden)
        wide = self.index + facts.inputs + base.sizes[-2]
        epinet = Mlp((wide, *self.epinet_hidden, facts.classes * self.index), facts.activation)
        prior = reference_network(facts, self.prior_hidden)
        network, draw = EpistemicNetwork(base, epinet, prior), DrawIndex(self.index)
        base_key, epinet_key, prior_key, training = jax.random.split(key, 4)
        priors = jax.vmap(prior.init)(jax.random.split(prior_key, self.index))
        scale = jnp.asarray(self.prior_scale / facts.temperature)
        strength = self.l2 * (facts.inputs / facts.train_size) ** DECAY_POWER
        trained = train_sampled(
            training,
            network,
            lambda params, k: draw(EpinetState(params, priors, scale), k),
            (base.init(base_key), epinet.init(epinet_key)),
            train,
            facts,
            penalty=lambda params, _: strength * sum_of_squares(params),
            draws=self.draws,
            steps=self.steps,
            batch=self.batch,
            lr=self.lr,
        )
        return SampledBelief(EpinetState(trained, priors, scale), draw, network)

    @property
    def networks(self) -> int:
        return self.draws
