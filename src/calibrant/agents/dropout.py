"""Monte-Carlo dropout: a world is a mask over hidden units, held fixed while the world is asked.

Gal and Ghahramani, "Dropout as a Bayesian Approximation", ICML 2016. Training and asking drop hidden units with
probability `rate` and scale the rest by 1/(1 - rate). One mask serves all inputs of a world, so a world is one coherent
function. Weight decay is length sqrt(temperature) inputs / T (`adaptive`) or length^2 (1 - rate) / (2 T) (`fixed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt, Lt

from calibrant.nets.mlp import Params, reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import SampledBelief
from calibrant.train.likelihoods import l2_strength, sum_of_squares
from calibrant.train.loop import train_sampled
from calibrant.train.online import Law, weight_decay
from calibrant.types import Data, Facts, Key


@tree
@dataclass(frozen=True)
class Dropping:
    """The trained layers and the probability with which a unit is dropped."""

    layers: Params
    rate: Any


@dataclass(frozen=True)
class DrawMask:
    """Draws a world: to drop a unit is to ignore it in the next layer, so its column of weights there becomes zero."""

    inputs: bool  # whether inputs are dropped as hidden units are

    def __call__(self, state: Dropping, key: Key) -> Params:
        first, *rest = state.layers
        dropped = state.layers if self.inputs else tuple(rest)
        sizes = [weight.shape[1] for weight, _ in dropped]
        kept = jax.random.bernoulli(key, 1 - state.rate, (sum(sizes),)) / (1 - state.rate)
        masks = jnp.split(kept, [sum(sizes[: layer + 1]) for layer in range(len(sizes) - 1)])
        masked = tuple((weight * mask, bias) for (weight, bias), mask in zip(dropped, masks, strict=True))
        return masked if self.inputs else (first, *masked)


@tree
@dataclass(frozen=True)
class Dropout:
    """Monte-Carlo dropout (Gal and Ghahramani, 2016)."""

    rate: Annotated[float, Ge(0), Lt(1)] = 0.1
    drop_inputs: bool = static(False)
    length: Annotated[float, Ge(0)] = 1.0  # the prior's length scale
    l2_form: Literal["adaptive", "fixed"] = static("adaptive")
    lr: Annotated[float, Gt(0)] = 1e-3
    steps: Annotated[int, Ge(1)] = static(1000)
    batch: Annotated[int, Ge(1)] = static(100)
    hidden: tuple[Annotated[int, Ge(1)], ...] = static((100, 100))

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> SampledBelief:
        network = reference_network(facts, self.hidden, first_bias="truncated")
        draw, rate = DrawMask(self.drop_inputs), jnp.asarray(self.rate)
        birth, training = jax.random.split(key)
        layers = train_sampled(
            training,
            network,
            lambda layers, k: draw(Dropping(layers, rate), k),
            network.init(birth),
            train,
            facts,
            penalty=lambda layers, _: self._strength(facts) * sum_of_squares(layers),
            draws=1,
            steps=self.steps,
            batch=self.batch,
            lr=self.lr,
        )
        return SampledBelief(Dropping(layers, rate), draw, network)

    def online(self, facts: Facts) -> Law:
        network = reference_network(facts, self.hidden, first_bias="truncated")
        mask, rate = DrawMask(self.drop_inputs), jnp.asarray(self.rate)
        return Law(
            birth=lambda key: (network.init(key), ()),
            draw=lambda layers, _, key: mask(Dropping(layers, rate), key),
            network=network,
            penalty=lambda layers, _: sum_of_squares(layers),
            draws=1,
            decay=weight_decay(self.length, facts),
        )

    @property
    def networks(self) -> int:
        return 1

    def _strength(self, facts: Facts) -> Any:
        if self.l2_form == "adaptive":
            return l2_strength(self.length, "adaptive", facts)
        return self.length**2 * (1 - self.rate) / (2 * facts.train_size)
