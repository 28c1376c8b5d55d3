"""Linear hypermodels: weights are a linear function of a small random index, plus a fixed random prior function.

Dwaracherla et al., "Hypermodels for Exploration", ICLR 2020. theta(z) = A z + b with z ~ N(0, I) / sqrt(index);
f(x, z) = network(x; theta(z)) + (prior_scale / sqrt(temperature)) prior(x, z). The prior is a small network in which
every weight is a unit-norm linear map of its layer's own part of z. Minimises cross-entropy averaged over fresh indices
plus weight decay on A and b. Bootstrapped, row i weighs 2 where b_i z > 0 and else 0, or -log Phi(sqrt(index) b_i z),
with b_i a random direction of its own: mean 1 over indices, and each index has its own data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, Gt

from calibrant.nets.mlp import Mlp, reference_network
from calibrant.nets.prior_functions import AdditivePrior, WithPrior
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import SampledBelief
from calibrant.train.likelihoods import l2_strength, sum_of_squares
from calibrant.train.loop import train_sampled
from calibrant.train.online import Law, no_bootstrap, weight_decay
from calibrant.types import Array, Data, Facts, Key

TRUNCATED_STD = 0.8796256610342398  # of a standard normal cut at two


@tree
@dataclass(frozen=True)
class Hyper:
    """What is trained: per weight tensor a map [index, ...] and an offset [...]."""

    maps: Any
    offsets: Any


@tree
@dataclass(frozen=True)
class Indexed:
    """What a world is drawn from: the trained maps, and the fixed prior's [part of index, ...] with its scale."""

    hyper: Hyper
    prior_maps: Any
    scale: Any


@dataclass(frozen=True)
class DrawIndex:
    """Draws an index and turns it into the weights of the network and of its prior function."""

    index: int

    def z(self, key: Key) -> Array:
        return jax.random.normal(key, (self.index,)) / np.sqrt(self.index)

    def __call__(self, state: Indexed, key: Key) -> WithPrior:
        z = self.z(key)
        parts = jnp.array_split(z, len(state.prior_maps))
        fixed = tuple(
            tuple(jnp.tensordot(part, maps, 1) for maps in layer)
            for part, layer in zip(parts, state.prior_maps, strict=True)
        )
        hyper = state.hyper
        trained = jax.tree.map(lambda maps, offset: jnp.tensordot(z, maps, 1) + offset, hyper.maps, hyper.offsets)
        return WithPrior(trained, fixed, state.scale)


@tree
@dataclass(frozen=True)
class Hypermodel:
    """Linear hypermodel with an additive prior function (Dwaracherla et al., 2020)."""

    index: Annotated[int, Ge(1)] = static(6)
    prior_scale: Annotated[float, Ge(0)] = 1.0
    prior_form: Literal["sqrt", "linear"] = static("sqrt")  # divided by sqrt(temperature), or by the temperature
    prior_hidden: tuple[Annotated[int, Ge(1)], ...] = static((10,))
    l2: Annotated[float, Ge(0)] = 1.0
    l2_form: Literal["adaptive", "fixed"] = static("adaptive")
    bootstrap: Literal["none", "bernoulli", "exponential"] = static("none")
    draws: Annotated[int, Ge(1)] = static(16)  # indices per step
    lr: Annotated[float, Gt(0)] = 1e-3
    steps: Annotated[int, Ge(1)] = static(2000)
    batch: Annotated[int, Ge(1)] = static(100)
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> SampledBelief:
        network = reference_network(facts, self.hidden)
        prior = reference_network(facts, self.prior_hidden)
        draw = DrawIndex(self.index)
        birth, fixing, training = jax.random.split(key, 3)
        fixed, scale = _prior_maps(fixing, prior, self.index), self._scale(facts)
        hyper = train_sampled(
            training, AdditivePrior(network, prior), lambda hyper, k: draw(Indexed(hyper, fixed, scale), k),
            _birth(birth, network, self.index), train, facts,
            penalty=lambda hyper, _: l2_strength(self.l2, self.l2_form, facts) * sum_of_squares(hyper),
            draws=self.draws, steps=self.steps, batch=self.batch, lr=self.lr,
            emphasis=self._emphasis(jax.random.fold_in(fixing, 1), draw, len(train.x)),
        )  # fmt: skip
        return SampledBelief(Indexed(hyper, fixed, scale), draw, AdditivePrior(network, prior))

    def online(self, facts: Facts) -> Law:
        no_bootstrap(self.bootstrap)
        network, prior = reference_network(facts, self.hidden), reference_network(facts, self.prior_hidden)
        index, scale = DrawIndex(self.index), self._scale(facts)

        def birth(key: Key) -> tuple[Hyper, Any]:
            born, fixing = jax.random.split(key)
            return _birth(born, network, self.index), _prior_maps(fixing, prior, self.index)

        return Law(
            birth=birth,
            draw=lambda hyper, fixed, key: index(Indexed(hyper, fixed, scale), key),
            network=AdditivePrior(network, prior),
            penalty=lambda hyper, _: sum_of_squares(hyper),
            draws=self.draws,
            decay=weight_decay(self.l2, facts),
        )

    @property
    def networks(self) -> int:
        return self.draws

    def _scale(self, facts: Facts) -> Array:
        divisor = jnp.sqrt(facts.temperature) if self.prior_form == "sqrt" else facts.temperature
        return jnp.asarray(self.prior_scale / divisor)

    def _emphasis(self, key: Key, draw: DrawIndex, rows: int) -> Callable[[Key], Array] | None:
        """A row's weight as a function of the index: how far the index reaches in the row's own random direction."""
        if self.bootstrap == "none":
            return None
        drawn = jax.random.normal(key, (rows, self.index))
        directions = drawn / jnp.linalg.norm(drawn, axis=1, keepdims=True)
        weigh = {"bernoulli": _double_or_nothing, "exponential": _exponential}[self.bootstrap]
        return lambda key: weigh(np.sqrt(self.index) * directions @ draw.z(key))


def _double_or_nothing(reach: Array) -> Array:
    """A standard normal number as a weight of 0 or 2 with equal chance."""
    return 2.0 * (reach > 0)


def _exponential(reach: Array) -> Array:
    """A standard normal number as a weight with the exponential law of mean 1."""
    return -jax.scipy.stats.norm.logcdf(reach)


def _birth(key: Key, network: Mlp, index: int) -> Hyper:
    """Maps of variance 2 / (index + size) and offsets of variance 1 / size, truncated normals, tensor by tensor."""
    shapes = jax.eval_shape(network.init, key)
    leaves, structure = jax.tree.flatten(shapes)
    keys = jax.random.split(key, 2 * len(leaves))
    maps = [
        _truncated(k, (index, *leaf.shape), np.sqrt(2 / (index + leaf.size)))
        for k, leaf in zip(keys[::2], leaves, strict=True)
    ]
    offsets = [_truncated(k, leaf.shape, 1 / np.sqrt(leaf.size)) for k, leaf in zip(keys[1::2], leaves, strict=True)]
    return Hyper(jax.tree.unflatten(structure, maps), jax.tree.unflatten(structure, offsets))


def _prior_maps(key: Key, network: Mlp, index: int) -> Any:
    """Unit-norm maps of each layer's own part of the index; layers after the first are scaled by 1/sqrt(fan_in)."""
    shapes = jax.eval_shape(network.init, key)
    sizes = [len(part) for part in np.array_split(np.arange(index), len(shapes))]
    layers = []
    for number, (size, layer) in enumerate(zip(sizes, shapes, strict=True)):
        shrink = 1.0 if number == 0 else 1 / np.sqrt(network.sizes[number])
        keys = jax.random.split(jax.random.fold_in(key, number), len(layer))
        drawn = [jax.random.normal(k, (size, *leaf.shape)) for k, leaf in zip(keys, layer, strict=True)]
        layers.append(tuple(shrink * maps / jnp.linalg.norm(maps, axis=0, keepdims=True) for maps in drawn))
    return tuple(layers)


def _truncated(key: Key, shape: tuple[int, ...], scale: float) -> Array:
    return jax.random.truncated_normal(key, -2.0, 2.0, shape) * (scale / TRUNCATED_STD)
