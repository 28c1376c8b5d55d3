"""Learners: what each agent is between two observations, held against the agent that learns all at once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from calibrant import registry
from calibrant.agents.deep_kernel import unit
from calibrant.agents.epinet import Fitted
from calibrant.train.likelihoods import cross_entropy
from calibrant.train.online import Members, Seen, weight_decay
from calibrant.types import Array, Facts

FACTS = Facts(3, 2, 0, 0.1)
AGENTS = (
    *("mlp", "logistic", "ensemble?size=4", "ensemble+?size=4", "ntk_ensemble+?size=4", "dropout", "bbb"),
    *("bbb?prior=mixture", "hypermodel", "epinet", "deep_kernel", "prior", "uniform"),
)
LEARNING = [name for name in AGENTS if name not in ("prior", "uniform")]
KEY = jax.random.key(0)
X = jnp.asarray(np.random.default_rng(0).normal(size=(12, 3)), jnp.float32)
Y = jnp.asarray(np.random.default_rng(1).integers(2, size=12))
SEEN = Seen(X, jnp.zeros((12, 2)).at[:5, 1].set(2.0))


def learner(agent: str) -> Any:
    return registry.resolve("agents", agent).online(FACTS)


def loss(one: Any, trained: Any, fixed: Any, key: Any = KEY) -> tuple[Array, Array]:
    return one.loss(trained, fixed, key, X, one.notes(fixed, X), lambda logits: cross_entropy(logits, Y))


@pytest.mark.parametrize("agent", AGENTS)
def test_worlds_are_coherent_functions(agent: str) -> None:
    """The answer at a row does not depend on which rows are asked with it."""
    one = learner(agent)
    trained, fixed = one.init(KEY)
    notes = one.notes(fixed, X)
    worlds = one.worlds(trained, fixed, jax.random.key(1), 3, SEEN)
    some = jnp.array([7, 2])
    whole = jax.vmap(lambda world: one.answer(world, fixed, X, notes))(worlds)
    part = jax.vmap(lambda w: one.answer(w, fixed, X[some], jax.tree.map(lambda leaf: leaf[some], notes)))(worlds)
    assert whole.shape[1:] == (12, 2)
    np.testing.assert_allclose(part, whole[:, some], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_finite_belief_has_no_more_worlds_than_atoms(agent: str) -> None:
    one = learner(agent)
    trained, fixed = one.init(KEY)
    worlds = one.worlds(trained, fixed, KEY, 9, SEEN)
    found = len(jax.tree.leaves(worlds)[0])
    assert found == (one.atoms or 9) or agent == "deep_kernel"


@pytest.mark.parametrize("agent", LEARNING)
def test_gradient_steps_lower_the_loss(agent: str) -> None:
    one = learner(agent)
    trained, fixed = one.init(KEY)
    keys = jax.random.split(jax.random.key(3), 16)
    step = jax.jit(
        lambda p, k: jax.tree.map(lambda v, g: v - 0.02 * g, p, jax.grad(lambda q: loss(one, q, fixed, k)[0])(p))
    )
    before = np.mean([float(loss(one, trained, fixed, key)[0]) for key in keys])
    for key in jax.random.split(jax.random.key(4), 60):
        trained = step(trained, key)
    assert np.mean([float(loss(one, trained, fixed, key)[0]) for key in keys]) < before


@pytest.mark.parametrize("agent", LEARNING)
def test_penalties_grow_with_the_weights(agent: str) -> None:
    one = learner(agent)
    trained, fixed = one.init(KEY)
    doubled = jax.tree.map(lambda leaf: 2 * leaf, trained)
    assert float(loss(one, doubled, fixed)[1]) > float(loss(one, trained, fixed)[1]) or agent.startswith("bbb")
    assert set(one.decay) == {"paper", "code"}


def test_a_member_learns_as_it_would_alone() -> None:
    """The gradient of every member of an ensemble is that of a network by itself."""
    together = learner("ensemble?size=4")
    trained, fixed = together.init(KEY)
    gradient = jax.grad(lambda p: sum(loss(together, p, fixed)))(trained)
    alone = Members(together.network, 1, together.decay)
    for member in range(4):
        mine = jax.tree.map(lambda leaf, m=member: leaf[m : m + 1], trained)
        own = jax.grad(lambda p: sum(loss(alone, p, ())))(mine)
        expected, found = ravel_pytree(own)[0], ravel_pytree(jax.tree.map(lambda leaf, m=member: leaf[m], gradient))[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_weight_decay_in_both_forms() -> None:
    decay = weight_decay(jnp.asarray(3.0), FACTS, networks=10)
    assert float(decay["paper"]) == pytest.approx(2 * 3 * np.sqrt(0.1))
    assert float(decay["code"]) == pytest.approx(2 * 3 * 0.1 / 10)
    assert float(learner("bbb").decay["paper"]) == 1.0


def test_prior_functions_stay_where_they_are() -> None:
    one = learner("ensemble+?size=2&prior_scale=5")
    trained, fixed = one.init(KEY)
    notes = one.notes(fixed, X)
    expected = 5 / np.sqrt(0.1) * np.asarray(jax.vmap(one.prior, (0, None))(fixed, X))
    np.testing.assert_allclose(np.moveaxis(np.asarray(notes), 1, 0), expected, rtol=1e-5)
    worlds = one.worlds(trained, fixed, KEY, 2, SEEN)
    found = jax.vmap(lambda world: one.answer(world, fixed, X, notes))(worlds)
    np.testing.assert_allclose(found, jax.vmap(one.network, (0, None))(trained, X) + expected, rtol=1e-4, atol=1e-5)


def test_an_epinet_answers_as_the_one_that_learns_at_once() -> None:
    one = learner("epinet")
    trained, fixed = one.init(KEY)
    _, indices = worlds = one.worlds(trained, fixed, jax.random.key(2), 3, SEEN)
    found = jax.vmap(lambda world: one.answer(world, fixed, X, one.notes(fixed, X)))(worlds)
    fitted = Fitted(trained, fixed, one.scale)
    expected = [one.network((fitted, z), X) for z in indices]
    np.testing.assert_allclose(found, jnp.stack(expected), rtol=1e-4, atol=1e-5)


def test_a_deep_kernel_spreads_as_its_closed_form_says() -> None:
    """Variance of a logit over 20,000 worlds against sigma^2 phi (sigma^2 I + Phi N Phi)^-1 phi; 6 standard errors."""
    one = learner("deep_kernel?hidden=8")
    trained, fixed = one.init(KEY)
    layers = jax.tree.map(lambda leaf: leaf[0], trained)
    worlds = one.worlds(trained, fixed, jax.random.key(5), 20_000, SEEN)
    logits = jax.vmap(lambda world: one.answer(world, fixed, X, ()))(worlds)[:, :, 1]
    phi = np.asarray(unit(one.network.with_features(layers, X)[1]), np.float64)
    counts = np.asarray(SEEN.counts).sum(axis=1)
    precision = one.variance * np.eye(8) + phi.T @ (phi * counts[:, None])
    expected = one.variance * np.einsum("nf,fg,ng->n", phi, np.linalg.inv(precision), phi)
    found = np.asarray(logits).var(axis=0)
    np.testing.assert_allclose(found, expected, rtol=6 * np.sqrt(2 / 20_000))
