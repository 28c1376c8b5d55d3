"""The neural generative model: a random network that gives every input its class probabilities.

Osband et al., "The Neural Testbed: Evaluating Joint Predictions", NeurIPS 2022. Exactly as their code draws it:
weights from a normal of scale 1/sqrt(fan_in) cut at two standard deviations and NOT rescaled (so their true variance
is 0.774/fan_in), first-layer bias N(0, 1/inputs), other biases zero, logits divided by the temperature.
NumPy in double precision: an environment is the same on every version of every library (see `seeds`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit, log_softmax

from calibrant.seeds import Stream
from calibrant.types import Array

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda z: np.maximum(z, 0),
    "leaky_relu": lambda z: np.where(z > 0, z, 0.01 * z),
    "tanh": np.tanh,
    "sigmoid": expit,
    "swish": lambda z: z * expit(z),
    "selu": lambda z: _SELU_SCALE * np.where(z > 0, z, _SELU_ALPHA * np.expm1(np.minimum(z, 0))),
    "gelu": lambda z: 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))),
}


def _xavier(stream: Stream, fan_out: int, fan_in: int) -> Array:
    return (2 * stream.uniform(fan_out, fan_in) - 1) * np.sqrt(6 / (fan_in + fan_out))


INITIALISERS: dict[str, Callable[[Stream, int, int], Array]] = {
    "truncated": lambda stream, fan_out, fan_in: stream.truncated_normal(fan_out, fan_in) / np.sqrt(fan_in),
    "normal": lambda stream, fan_out, fan_in: stream.normal(fan_out, fan_in) / np.sqrt(fan_in),
    "xavier": _xavier,
}


@dataclass(frozen=True)
class Environment:
    """A drawn network: called at inputs [batch, inputs] it gives the true logits [batch, classes]."""

    weights: tuple[Array, ...]  # [out, in] per layer
    biases: tuple[Array, ...]  # [out] per layer
    activation: str
    temperature: float

    def __call__(self, x: Array) -> Array:
        act = ACTIVATIONS[self.activation]
        h = np.asarray(x, np.float64)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = act(h @ weight.T + bias)
        return (h @ self.weights[-1].T + self.biases[-1]) / self.temperature

    def logp(self, x: Array) -> Array:
        return log_softmax(self(x), axis=-1)


def draw_environment(
    stream: Stream, inputs: int, classes: int, hidden: tuple[int, ...], activation: str, init: str, temperature: float
) -> Environment:
    sizes = (inputs, *hidden, classes)
    draw = INITIALISERS[init]
    weights = tuple(draw(stream, out, size) for size, out in pairwise(sizes))
    biases = [np.zeros(out) for out in sizes[1:]]
    biases[0] = stream.normal(sizes[1]) / np.sqrt(inputs)
    return Environment(weights, tuple(biases), activation, temperature)


def draw_labels(stream: Stream, logp: Array) -> Array:
    """One label per row of log-probabilities [batch, classes]."""
    below = np.cumsum(np.exp(logp), axis=1)[:, :-1] < stream.uniform(len(logp))[:, None]
    return below.sum(axis=1).astype(np.int32)
