"""The multilayer perceptron as a pure pair of functions.

Activations are kept feature-major, [features, batch]: the three large products of a training step are then plain
row-major batched products, which XLA's CPU backend runs at nearly twice the speed of the usual [batch, features]
layout (measured in `benchmarks/`).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from calibrant.types import Array, Facts, Key

Params = tuple[tuple[Array, Array], ...]  # (weight [out, in], bias [out]) per layer

ACTIVATIONS = {
    "relu": jax.nn.relu,
    "leaky_relu": jax.nn.leaky_relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "swish": jax.nn.swish,
    "selu": jax.nn.selu,
    "gelu": jax.nn.gelu,
}


@dataclass(frozen=True)
class Mlp:
    """A network of given layer sizes. `first_bias` is the law of the first layer's bias at birth."""

    sizes: tuple[int, ...]
    activation: str = "relu"
    init_law: str = "truncated"
    first_bias: str = "zero"  # zero, truncated or normal: the last two with scale 1/sqrt(inputs)

    def init(self, key: Key) -> Params:
        """Numbers of one law are drawn in one call: a call costs far more to compile than to run."""
        weight_key, bias_key = jax.random.split(key)
        shapes = list(zip(self.sizes[1:], self.sizes[:-1], strict=True))
        counts = [out * size for out, size in shapes]
        ends = [sum(counts[: layer + 1]) for layer in range(len(counts) - 1)]
        drawn = jnp.split(_draw(weight_key, self.init_law, sum(counts)), ends)
        weights = [
            flat.reshape(shape) * _spread(self.init_law, *shape) for flat, shape in zip(drawn, shapes, strict=True)
        ]
        biases = [jnp.zeros(out) for out, _ in shapes]
        if self.first_bias != "zero":
            biases[0] = _draw(bias_key, self.first_bias, self.sizes[1]) / np.sqrt(self.sizes[0])
        return tuple(zip(weights, biases, strict=True))

    def __call__(self, params: Params, x: Array) -> Array:
        """Logits [batch, classes] at inputs [batch, inputs]."""
        return self.with_features(params, x)[0]

    def with_features(self, params: Params, x: Array) -> tuple[Array, Array]:
        """The logits, and the last hidden layer [batch, units] that they are a linear function of."""
        act = ACTIVATIONS[self.activation]
        h = x.T
        for weight, bias in params[:-1]:
            h = act(weight @ h + bias[:, None])
        weight, bias = params[-1]
        return (weight @ h + bias[:, None]).T, h.T

    @property
    def parameters(self) -> int:
        return sum((size + 1) * out for size, out in zip(self.sizes[:-1], self.sizes[1:], strict=True))


def reference_network(facts: Facts, hidden: tuple[int, ...] | None = None, first_bias: str = "zero") -> Mlp:
    """The network that comes with the facts, unless an agent brings its own hidden sizes.

    Agents start from the truncated law whatever law drew the environment, as the original agents do.
    """
    layers = facts.hidden if hidden is None else hidden
    return Mlp((facts.inputs, *layers, facts.classes), facts.activation, "truncated", first_bias)


def generative_network(facts: Facts) -> Mlp:
    """The law of the environment itself: what a sample of the true prior is drawn from."""
    sizes = (facts.inputs, *facts.hidden, facts.classes)
    return Mlp(sizes, facts.activation, facts.init, "normal")


def _draw(key: Key, law: str, count: int) -> Array:
    if law == "truncated":
        return jax.random.truncated_normal(key, -2.0, 2.0, (count,))
    if law == "normal":
        return jax.random.normal(key, (count,))
    return jax.random.uniform(key, (count,), minval=-1.0, maxval=1.0)


def _spread(law: str, out: int, size: int) -> float:
    return float(np.sqrt(6 / (size + out)) if law == "xavier" else 1 / np.sqrt(size))
