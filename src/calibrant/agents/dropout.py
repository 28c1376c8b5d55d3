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

from calibrant.nets.mlp import Mlp, Params, reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import SampledBelief
from calibrant.train.likelihoods import l2_strength, sum_of_squares
from calibrant.train.loop import train_sampled
from calibrant.types import Array, Data, Facts, Key

Masks = tuple[Array, ...]  # one per layer of units that are dropped, already scaled


@dataclass(frozen=True)
class DroppedMlp:
    """A network whose layers are multiplied by masks before they are passed on."""

    network: Mlp
    inputs: bool

    def __call__(self, params: tuple[Params, Masks], x: Array) -> Array:
        layers, masks = params
        if self.inputs:
            return self.network(layers, x * masks[0], masks[1:])
        return self.network(layers, x, masks)


@dataclass(frozen=True)
class DrawMasks:
    """Draws a world: the trained layers with a fresh mask."""

    sizes: tuple[int, ...]

    def __call__(self, state: tuple[Params, Array], key: Key) -> tuple[Params, Masks]:
        layers, rate = state
        kept = jax.random.bernoulli(key, 1 - rate, (sum(self.sizes),)) / (1 - rate)
        ends = [sum(self.sizes[: layer + 1]) for layer in range(len(self.sizes) - 1)]
        return layers, tuple(jnp.split(kept, ends))


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
        dropped = DroppedMlp(network, self.drop_inputs)
        draw = DrawMasks(((facts.inputs,) if self.drop_inputs else ()) + self.hidden)
        birth, training = jax.random.split(key)

        def world(params: Params, key: Key) -> tuple[Params, Masks]:
            return draw((params, jnp.asarray(self.rate)), key)

        params = train_sampled(
            training,
            dropped,
            world,
            network.init(birth),
            train,
            facts,
            penalty=lambda layers, _: self._strength(facts) * sum_of_squares(layers),
            draws=1,
            steps=self.steps,
            batch=self.batch,
            lr=self.lr,
        )
        return SampledBelief((params, jnp.asarray(self.rate)), draw, dropped)

    @property
    def networks(self) -> int:
        return 1

    def _strength(self, facts: Facts) -> Any:
        if self.l2_form == "adaptive":
            return l2_strength(self.length, "adaptive", facts)
        return self.length**2 * (1 - self.rate) / (2 * facts.train_size)
