"""The feature-major network against a plain one: values, gradients, laws of its birth."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from calibrant.nets import mlp
from calibrant.nets.prior_functions import AdditivePrior, WithPrior
from calibrant.problems import environment
from calibrant.types import Array, Facts

SIZES = (3, 5, 4, 2)


def as_numpy(params: Any) -> list[tuple[Array, Array]]:
    return [(np.asarray(weight, np.float64), np.asarray(bias, np.float64)) for weight, bias in params]


def plain(params: list[tuple[Array, Array]], x: Array, activation: str) -> Array:
    """Row by row, layer by layer, in double precision."""
    h = np.asarray(x, np.float64)
    for weight, bias in params[:-1]:
        h = environment.ACTIVATIONS[activation](h @ weight.T + bias)
    weight, bias = params[-1]
    return h @ weight.T + bias


def born(sizes: tuple[int, ...] = SIZES, activation: str = "relu") -> tuple[mlp.Mlp, Any, Array]:
    """A network whose biases are not zero, and inputs."""
    network = mlp.Mlp(sizes, activation)
    random = np.random.default_rng(0)
    params = tuple(
        (jnp.asarray(random.normal(size=(out, size)), jnp.float32), jnp.asarray(random.normal(size=out), jnp.float32))
        for size, out in pairwise(sizes)
    )
    return network, params, random.normal(size=(7, sizes[0])).astype(np.float32)


@pytest.mark.parametrize(("sizes", "activation"), [(SIZES, "relu"), ((3, 2), "tanh"), ((1, 6, 3), "selu")])
def test_forward(sizes: tuple[int, ...], activation: str) -> None:
    network, params, x = born(sizes, activation)
    expected = plain(as_numpy(params), x, activation)
    np.testing.assert_allclose(jax.jit(network)(params, x), expected, rtol=1e-5, atol=1e-5)
    assert network.parameters == sum(leaf.size for leaf in jax.tree.leaves(params))


def test_gradient_against_finite_differences() -> None:
    """A smooth activation, so that differences of the double-precision network are good to 1e-8."""
    network, params, x = born(activation="tanh")
    weights = np.random.default_rng(1).normal(size=(7, 2))
    gradient = jax.jit(jax.grad(lambda p: (weights * network(p, x)).sum()))(params)
    layers = as_numpy(params)
    for layer, pair in enumerate(as_numpy(gradient)):
        for part, found in enumerate(pair):
            target, step = layers[layer][part], 1e-5
            for index in np.ndindex(target.shape):
                kept = target[index]
                values = []
                for move in (step, -step):
                    target[index] = kept + move
                    values.append((weights * plain(layers, x, "tanh")).sum())
                target[index] = kept
                assert found[index] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(("law", "first_bias"), [("truncated", "zero"), ("normal", "truncated"), ("xavier", "normal")])
def test_birth(law: str, first_bias: str) -> None:
    """Kolmogorov-Smirnov at 1e-6 for every layer's weights and the first bias."""
    sizes = (20, 300, 20)
    network = mlp.Mlp(sizes, init_law=law, first_bias=first_bias)
    (w1, b1), (w2, b2) = as_numpy(jax.jit(network.init)(jax.random.key(0)))
    known = {"truncated": stats.truncnorm(-2, 2), "normal": stats.norm(), "xavier": stats.uniform(-1, 2)}
    for weight in (w1, w2):
        out, fan_in = weight.shape
        scale = np.sqrt(6 / (out + fan_in)) if law == "xavier" else 1 / np.sqrt(fan_in)
        assert stats.kstest(weight.ravel() / scale, known[law].cdf).pvalue > 1e-6
    assert not b2.any()
    if first_bias == "zero":
        assert not b1.any()
    else:
        assert stats.kstest(b1 * np.sqrt(20), known[first_bias].cdf).pvalue > 1e-6
    assert not np.isin(w1.ravel()[:50], w2.ravel()).any()  # layers do not share numbers


def test_networks_of_the_facts() -> None:
    facts = Facts(3, 4, 10, 0.1, hidden=(6, 7), activation="tanh", init="xavier")
    agents, worlds = mlp.reference_network(facts), mlp.generative_network(facts)
    assert agents.sizes == worlds.sizes == (3, 6, 7, 4)
    assert agents.activation == worlds.activation == "tanh"
    assert (agents.init_law, agents.first_bias) == ("truncated", "zero")
    assert (worlds.init_law, worlds.first_bias) == ("xavier", "normal")
    assert mlp.reference_network(facts, ()).sizes == (3, 4)
    assert mlp.reference_network(facts, (9,), "truncated").first_bias == "truncated"


def test_a_prior_function_is_added_and_not_learnt() -> None:
    network, params, x = born()
    other = mlp.Mlp((3, 2))
    fixed = other.init(jax.random.key(1))
    both = AdditivePrior(network, other)
    found = both(WithPrior(params, fixed, 2.5), x)
    np.testing.assert_allclose(found, network(params, x) + 2.5 * other(fixed, x), rtol=1e-5, atol=1e-5)
