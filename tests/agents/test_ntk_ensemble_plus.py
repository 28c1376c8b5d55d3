"""Tangent prior functions: their law, and the ensemble around them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from calibrant.agents.ensemble_plus import EnsemblePlus
from calibrant.agents.ntk_ensemble_plus import NtkEnsemblePlus
from calibrant.nets.mlp import Mlp, reference_network
from calibrant.nets.prior_functions import Tangent
from calibrant.types import Array, Data, Facts

KEY = jax.random.key(0)
FACTS = Facts(inputs=2, classes=2, train_size=5, temperature=0.25, hidden=(6, 6))
X = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
DATA = Data(X[:5], np.array([0, 1, 1, 0, 1], np.int32))


def test_covariance_is_the_tangent_kernel() -> None:
    """J S J' at three inputs and two outputs: 40,000 directions, each of 6 x 6 entries within 6 standard errors.

    A false alarm has a probability below 1e-7.
    """
    network, n = Mlp((2, 7, 5, 2), "tanh", first_bias="normal"), 40_000
    birth = network.init(KEY)
    prior = Tangent(network)

    def function(key: Any) -> Any:
        _, direction = prior.init(key)
        return prior((birth, direction), X[:3]).ravel()

    drawn = np.asarray(jax.jit(jax.vmap(function))(jax.random.split(jax.random.key(1), n)), np.float64)
    flat, restore = ravel_pytree(birth)
    jacobian = np.asarray(jax.jacrev(lambda theta: network(restore(theta), X[:3]).ravel())(flat), np.float64)
    fan_in = [jnp.full(leaf.shape, 1 / size) for layer, size in zip(birth, (2, 7, 5), strict=True) for leaf in layer]
    wanted = jacobian @ np.diag(ravel_pytree(fan_in)[0]) @ jacobian.T
    error = np.sqrt((np.outer(np.diag(wanted), np.diag(wanted)) + wanted**2) / n)
    assert (np.abs(drawn.T @ drawn / n - wanted) < 6 * error).all()
    assert (np.abs(drawn.mean(0)) < 6 * np.sqrt(np.diag(wanted) / n)).all()


def test_a_tangent_is_the_slope_of_the_network_along_its_direction() -> None:
    network = Mlp((2, 7, 2), "tanh")
    birth, direction = Tangent(network).init(KEY)
    step = 1e-2
    ahead, behind = (jax.tree.map(lambda w, d, s=s: w + s * d, birth, direction) for s in (step, -step))
    slope = (network(ahead, X) - network(behind, X)) / (2 * step)
    np.testing.assert_allclose(Tangent(network)((birth, direction), X), slope, atol=1e-3)


@jax.jit
def fit_and_ask(agent: EnsemblePlus) -> tuple[Any, Array]:
    belief = agent.fit(KEY, DATA, FACTS)
    return belief.params.trained, belief.worlds(KEY, 3)(X)


def test_members_are_a_trained_network_and_a_fixed_tangent() -> None:
    trained, answers = fit_and_ask(NtkEnsemblePlus(size=3, steps=20, prior_scale=2.0))
    network = reference_network(FACTS, first_bias="truncated")
    prior = Tangent(network)
    fixed = jax.vmap(prior.init)(jax.random.split(jax.random.split(KEY, 4)[1], 3))
    learned, added = jax.vmap(network, (0, None))(trained, X), jax.vmap(prior, (0, None))(fixed, X)
    np.testing.assert_allclose(answers, learned + 2.0 / np.sqrt(0.25) * added, rtol=1e-3, atol=1e-4)


def test_without_priors_it_is_the_same_ensemble() -> None:
    """The same births and minibatches: only the prior functions set it apart from `ensemble+`."""
    for scale, same in ((0.0, True), (1.0, False)):
        agents = (
            NtkEnsemblePlus(size=3, steps=20, prior_scale=scale),
            EnsemblePlus(size=3, steps=20, prior_scale=scale),
        )
        _, tangent = fit_and_ask(agents[0])
        _, plain = fit_and_ask(agents[1])
        assert np.allclose(tangent, plain, atol=1e-4) is same
