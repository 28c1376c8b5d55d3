"""Epistemic neural networks: a small network of an index, added to a base network on the base's own features.

Osband et al., "Epistemic Neural Networks", NeurIPS 2023. With base features phi(x) held fixed for the epinet,
    f(x, z) = base(x) + epinet([z, x, phi(x)]) . z + (prior_scale / temperature) sum_i z_i g_i(x),   z ~ N(0, I),
where the epinet gives one logit per class and index coordinate and the g_i are small fixed random networks. Weight
decay is l2 (inputs / T)^0.7 on all that is trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt

from calibrant.nets.mlp import ACTIVATIONS, Mlp, reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.likelihoods import sum_of_squares
from calibrant.train.loop import train_sampled
from calibrant.train.online import Likelihood, Loss, Seen, weight_decay
from calibrant.types import Array, Data, Facts, Key

DECAY_POWER = 0.7


@tree
@dataclass(frozen=True)
class Fitted:
    """(base, epinet) as trained, the fixed prior networks [index, ...] and their scale."""

    trained: Any
    priors: Any
    scale: Any


@tree
@dataclass(frozen=True)
class Prepared:
    """What all indices share at some inputs: computed once, however many worlds are asked."""

    logits: Array  # [batch, classes] of the base
    first: Array  # [units, batch] the epinet's first layer, without the index's part
    priors: Array  # [index, batch, classes], scaled


@dataclass(frozen=True)
class EpistemicNetwork:
    """The sum of base, epinet and prior functions."""

    base: Mlp
    epinet: Mlp
    prior: Mlp

    def prepare(self, fitted: Fitted, x: Array) -> Prepared:
        return self.learned(fitted.trained, x, fitted.scale * jax.vmap(self.prior, (0, None))(fitted.priors, x))

    def learned(self, trained: Any, x: Array, priors: Array) -> Prepared:
        """With the prior networks' scaled values given, [index, batch, classes]."""
        base, ((weight, bias), *_) = trained
        logits, features = self.base.with_features(base, x)
        seen = jnp.concatenate([x, jax.lax.stop_gradient(features)], axis=1)
        first = weight[:, -seen.shape[1] :] @ seen.T + bias[:, None]
        return Prepared(logits, first, priors)

    def at(self, fitted: Fitted, prepared: Prepared, z: Array) -> Array:
        """Logits [batch, classes] of the world of index z."""
        (weight, _), *rest = fitted.trained[1]
        hidden = prepared.first + (weight[:, : len(z)] @ z)[:, None]
        if rest:
            upper = Mlp(self.epinet.sizes[1:], self.epinet.activation)
            hidden = upper(tuple(rest), ACTIVATIONS[self.epinet.activation](hidden).T).T
        learned = jnp.tensordot(z, hidden.T.reshape(*prepared.logits.shape, len(z)), (0, 2))
        return prepared.logits + learned + jnp.tensordot(z, prepared.priors, 1)

    def __call__(self, world: tuple[Fitted, Array], x: Array) -> Array:
        return self.at(world[0], self.prepare(world[0], x), world[1])


@tree
@dataclass(frozen=True)
class EpinetWorlds:
    """Worlds at given indices."""

    fitted: Fitted
    indices: Array  # [n, index]
    network: EpistemicNetwork = static()
    weights: Any = None

    def __call__(self, x: Array) -> Array:
        prepared = self.network.prepare(self.fitted, x)
        return jax.lax.map(lambda z: self.network.at(self.fitted, prepared, z), self.indices)


@tree
@dataclass(frozen=True)
class EpinetBelief:
    """A world is an index z ~ N(0, I)."""

    fitted: Fitted
    network: EpistemicNetwork = static()
    index: int = static()

    @property
    def atoms(self) -> None:
        return None

    def worlds(self, key: Key, n: int) -> EpinetWorlds:
        return EpinetWorlds(self.fitted, jax.random.normal(key, (n, self.index)), self.network)


@dataclass(frozen=True)
class EpinetLearner:
    """An epinet that learns while it plays; its prior networks are evaluated once per row of the game's table."""

    network: EpistemicNetwork
    index: int
    draws: int
    scale: Any
    decay: Mapping[str, Any]

    @property
    def atoms(self) -> None:
        return None

    def init(self, key: Key) -> tuple[Any, Any]:
        base, epinet, prior = jax.random.split(key, 3)
        priors = jax.vmap(self.network.prior.init)(jax.random.split(prior, self.index))
        return (self.network.base.init(base), self.network.epinet.init(epinet)), priors

    def notes(self, fixed: Any, x: Array) -> Any:
        """The prior networks' values, [rows, index, classes]."""
        return self.scale * jnp.moveaxis(jax.vmap(self.network.prior, (0, None))(fixed, x), 0, 1)

    def loss(self, trained: Any, fixed: Any, key: Key, x: Array, notes: Any, nll: Likelihood) -> Loss:
        fitted, prepared = self._prepare(trained, x, notes)
        indices = jax.random.normal(key, (self.draws, self.index))
        return jax.vmap(lambda z: nll(self.network.at(fitted, prepared, z)))(indices).mean(), sum_of_squares(trained)

    def worlds(self, trained: Any, fixed: Any, key: Key, n: int, seen: Seen) -> Any:
        indices = jax.random.normal(key, (n, self.index))
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (n, *leaf.shape)), trained), indices

    def answer(self, world: Any, fixed: Any, x: Array, notes: Any) -> Array:
        trained, z = world
        return self.network.at(*self._prepare(trained, x, notes), z)

    def _prepare(self, trained: Any, x: Array, notes: Any) -> tuple[Fitted, Prepared]:
        return Fitted(trained, (), 0.0), self.network.learned(trained, x, jnp.moveaxis(notes, 1, 0))


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

    def fit(self, key: Key, train: Data, facts: Facts) -> EpinetBelief:
        network = self._network(facts)
        base_key, epinet_key, prior_key, training = jax.random.split(key, 4)
        priors = jax.vmap(network.prior.init)(jax.random.split(prior_key, self.index))
        scale = jnp.asarray(self.prior_scale / facts.temperature)
        strength = self.l2 * (facts.inputs / facts.train_size) ** DECAY_POWER
        trained = train_sampled(
            training,
            network,
            lambda params, k: (Fitted(params, priors, scale), jax.random.normal(k, (self.index,))),
            (network.base.init(base_key), network.epinet.init(epinet_key)),
            train,
            facts,
            penalty=lambda params, _: strength * sum_of_squares(params),
            draws=self.draws,
            steps=self.steps,
            batch=self.batch,
            lr=self.lr,
        )
        return EpinetBelief(Fitted(trained, priors, scale), network, self.index)

    def online(self, facts: Facts) -> EpinetLearner:
        scale = self.prior_scale / facts.temperature
        return EpinetLearner(self._network(facts), self.index, self.draws, scale, weight_decay(self.l2, facts))

    @property
    def networks(self) -> int:
        return self.draws

    def _network(self, facts: Facts) -> EpistemicNetwork:
        base = reference_network(facts, self.hidden)
        wide = self.index + facts.inputs + base.sizes[-2]
        epinet = Mlp((wide, *self.epinet_hidden, facts.classes * self.index), facts.activation)
        return EpistemicNetwork(base, epinet, reference_network(facts, self.prior_hidden))
