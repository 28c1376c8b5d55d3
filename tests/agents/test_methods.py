"""What sets the methods apart: penalties, priors, bootstraps, and what they converge to."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from calibrant import registry, seeds
from calibrant.nets.mlp import reference_network
from calibrant.train.likelihoods import l2_strength
from calibrant.train.loop import train_members
from calibrant.types import Array, Data, Instance

KEY = seeds.jax_key("methods")


@functools.cache
def instance() -> Instance:
    drawn: Instance = registry.resolve("problems", "testbed?train=10&tuples=20&hidden=6").sample(0)
    return drawn


@jax.jit
def program(agent: Any, train: tuple[Array, Array], temperature: Array) -> Any:
    """Agents are trees: those that differ only by numbers share this program."""
    return agent.fit(KEY, Data(*train), replace(instance().facts, temperature=temperature))


def fit(spec: str, train: Data | None = None, temperature: float = 0.1) -> Any:
    given = train or instance().train
    return program(registry.resolve("agents", spec), (given.x, given.y), temperature)


@jax.jit
def answer(belief: Any, x: Array) -> Array:
    return belief.worlds(KEY, 100)(x)


def ask(belief: Any, x: Array | None = None) -> Array:
    return np.asarray(answer(belief, instance().question.x if x is None else x))


def close(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("classes", "form"), [(2, "adaptive"), (3, "fixed")])
def test_logistic_converges_to_regularised_logistic_regression(classes: int, form: str) -> None:
    """scikit-learn minimises C * sum of losses + |w|^2 / 2, ours their mean + strength * |w|^2, biases included.

    A column of ones makes the bias a weight. Two classes: our two opposite vectors of w / 2 have half the square.
    """
    drawn = registry.resolve("problems", f"testbed?train=20&tuples=20&temp=0.3&classes={classes}").sample(1)
    agent = registry.resolve("agents", f"logistic?steps=2000&lr=0.03&l2=0.2&l2_form={form}")
    belief = jax.jit(lambda: agent.fit(KEY, drawn.train, drawn.facts))()
    strength = 0.2 * (np.sqrt(0.3) * 2 if form == "adaptive" else 1) / 20
    c = 1 / (strength * 20 * (1 if classes == 2 else 2))
    ones = [np.hstack([x, np.ones((len(x), 1))]) for x in (drawn.train.x, drawn.question.x)]
    assert set(drawn.train.y) == set(range(classes))
    reference = LogisticRegression(C=c, fit_intercept=False, tol=1e-8, max_iter=1000).fit(ones[0], drawn.train.y)
    found = softmax(ask(belief, drawn.question.x)[0], axis=1)
    np.testing.assert_allclose(found, reference.predict_proba(ones[1]), atol=1e-3)


def test_padding_changes_nothing() -> None:
    """Ten rows are a full batch however they are padded."""
    x, y = instance().train.x, instance().train.y
    padded = Data(np.pad(x, ((0, 90), (0, 0)), constant_values=9), np.pad(y, (0, 90), constant_values=1))
    agent = registry.resolve("agents", "mlp?steps=300&lr=0.01")
    known = instance().facts
    close(jax.jit(lambda: agent.fit(KEY, padded, known))().params, fit("mlp?steps=300&lr=0.01").params)


def test_ensemble_plus_without_prior_is_an_ensemble_with_random_biases() -> None:
    belief = fit("ensemble+?size=3&steps=20&prior_scale=0")
    network = reference_network(instance().facts, first_bias="truncated")
    birth, _, _, training = jax.random.split(KEY, 4)

    def plain() -> Any:
        return train_members(
            training,
            network,
            jax.vmap(network.init)(jax.random.split(birth, 3)),
            instance().train,
            instance().facts,
            l2=l2_strength(1.0, "adaptive", instance().facts),
            steps=20,
            batch=100,
            lr=1e-3,
        )

    trained = jax.jit(plain)()
    close(belief.params.trained, trained)
    expected = jax.jit(jax.vmap(network, (0, None)))(trained, instance().question.x)
    np.testing.assert_allclose(ask(belief), expected, rtol=1e-3, atol=1e-4)


def test_prior_functions_are_fixed_scaled_and_felt() -> None:
    belief = fit("ensemble+?size=3&steps=20&prior_scale=2")
    network = reference_network(instance().facts, first_bias="truncated")
    _, fixing, _, _ = jax.random.split(KEY, 4)
    close(belief.params.fixed, jax.jit(jax.vmap(network.init))(jax.random.split(fixing, 3)))
    np.testing.assert_allclose(belief.params.scale, 2 / np.sqrt(0.1), rtol=1e-5)
    each = jax.jit(jax.vmap(network, (0, None)))
    trained, fixed = (each(part, instance().question.x) for part in (belief.params.trained, belief.params.fixed))
    np.testing.assert_allclose(ask(belief), trained + 2 / np.sqrt(0.1) * fixed, rtol=1e-3, atol=1e-3)
    assert np.abs(fixed[0] - fixed[1]).max() > 0.1  # every member has a prior of its own


@pytest.mark.parametrize("law", ["bernoulli", "exponential"])
def test_bootstrap_weights_have_mean_one(law: str) -> None:
    """Both laws have variance one: the mean of 40000 weights within 4.9 standard errors, false-alarm rate 1e-6."""
    agent = registry.resolve("agents", f"ensemble+?size=200&bootstrap={law}")
    weights = np.asarray(agent._emphasis(KEY, 200))
    assert weights.shape == (200, 200)
    assert abs(weights.mean() - 1) < 4.9 / np.sqrt(weights.size)
    assert set(np.unique(weights)) == {0.0, 2.0} if law == "bernoulli" else weights.min() > 0
    if law == "exponential":
        assert stats.kstest(weights.ravel(), stats.expon.cdf).pvalue > 1e-6
    assert registry.resolve("agents", "ensemble+")._emphasis(KEY, 200) is None


def test_stronger_penalties_give_smaller_networks() -> None:
    sizes = []
    for l2 in (0, 1, 100):
        params = fit(f"mlp?steps=300&lr=0.01&l2={l2}").params
        sizes.append(sum((np.asarray(leaf) ** 2).sum() for leaf in jax.tree.leaves(params)))
    assert sizes[0] > sizes[1] > sizes[2]


def test_hyperparameters_that_are_numbers_are_traced() -> None:
    """One compiled program serves every l2, learning rate, prior scale and temperature, and each is felt."""
    first = ask(fit("ensemble+?size=3&steps=20"))
    compiled: Any = program
    programs = compiled._cache_size()
    changes = (("l2=30", 0.1), ("lr=0.1", 0.1), ("prior_scale=0.5", 0.1), ("l2=1", 0.5))
    others = [ask(fit(f"ensemble+?size=3&steps=20&{change}", temperature=at)) for change, at in changes]
    assert compiled._cache_size() == programs
    assert all(np.abs(first - other).max() > 1e-3 for other in others)
