"""The Bayes floor against brute force: exact posteriors of small networks, the prior without data, diagnostics."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, ndtr, ndtri

from calibrant import registry, seeds
from calibrant.agents.bayes import Bayes, agreement, cut_normal, likelihood_of, noise_of, weights_of
from calibrant.nets.mlp import generative_network
from calibrant.types import Array, CalibrantError, Data, Facts, Instance

KEY = seeds.jax_key("bayes")
ASKED = 6  # inputs of the question at which beliefs are compared
DRAWS = 200_000


@functools.cache
def instance() -> Instance:
    drawn: Instance = registry.resolve("problems", "testbed?hidden=8x8&tuples=20").sample(0)
    return drawn


@jax.jit
def program(agent: Bayes, size: Array, temperature: Array) -> tuple[Array, Any]:
    """Logits [particles, asked, classes] and diagnostics; whatever is no size is traced and shares it."""
    facts = replace(instance().facts, train_size=size, temperature=temperature)
    belief = agent.fit(KEY, instance().train, facts)
    return belief.worlds(KEY, belief.atoms)(instance().question.x[:ASKED]), belief.diagnostics


def fit(size: int, temperature: float = 0.1, **fields: Any) -> tuple[Array, dict[str, float]]:
    logits, said = program(Bayes(**fields), size, temperature)
    return np.asarray(logits, float), {name: float(value) for name, value in said.items()}


@functools.cache
def prior_draws() -> tuple[Array, Array]:
    """Outputs of networks of the generative law [draws, rows, classes] at training and at asked inputs, in NumPy."""
    stream = np.random.default_rng(7)
    low, high = ndtr(-2), ndtr(2)

    def cut(*shape: int) -> Array:
        return ndtri(stream.uniform(low, high, shape)).astype(np.float32)

    h = np.concatenate([instance().train.x, instance().question.x[:ASKED]]).T[None]
    h = cut(DRAWS, 8, 2) @ h / np.sqrt(2) + stream.normal(size=(DRAWS, 8, 1)) / np.sqrt(2)
    h = cut(DRAWS, 8, 8) @ np.maximum(h, 0) / np.sqrt(8)
    out = np.swapaxes(cut(DRAWS, 2, 8) @ np.maximum(h, 0) / np.sqrt(8), 1, 2)
    return out[:, :10], out[:, 10:]


def beliefs(p: Array) -> Array:
    """What is compared: probabilities of class 1 at every input, and of class 1 at both of every pair of inputs."""
    first, second = np.triu_indices(p.shape[1], 1)
    return np.concatenate([p, p[:, first] * p[:, second]], axis=1)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_means_and_joint_probabilities_are_those_of_the_exact_posterior(size: int) -> None:
    """Against 200,000 draws of the prior, weighted by their likelihood.

    Errors: that of the weighted mean, and that of the particles' mean, counting half of them as independent. All 63
    comparisons within 5.5 standard errors: a false-alarm rate below 3e-6.
    """
    seen, asked = (log_softmax(outputs / 0.1, axis=2) for outputs in prior_draws())
    loglik = np.take_along_axis(seen[:, :size], instance().train.y[None, :size, None], axis=2).sum((1, 2))
    weight = np.exp(loglik - loglik.max())
    weight /= weight.sum()
    values = beliefs(np.exp(asked[:, :, 1]))
    mean = weight @ values
    square = (values - mean) ** 2

    logits, said = fit(size)
    found = beliefs(np.exp(log_softmax(logits, axis=2))[:, :, 1])
    error = np.sqrt(weight**2 @ square + weight @ square / (len(found) / 2))
    assert np.abs((found.mean(0) - mean) / error).max() < 5.5
    assert np.abs((values.mean(0) - mean) / error).max() > 11, "the prior must be far from passing"
    assert said["converged"] == 1 and said["rhat"] < 1.1


@pytest.mark.parametrize(("size", "temperature"), [(0, 0.1), (1, 1000.0)])
def test_without_usable_data_it_is_the_prior(size: int, temperature: float) -> None:
    """Means and squares of logits at six inputs: twelve within 5.5 standard errors, false alarms below 1e-6."""
    logits, said = fit(size, temperature)
    one = logits[:, :, 1] * temperature
    other = prior_draws()[1][:, :, 1]
    for power in (1, 2):
        mine, prior = one**power, other**power
        error = np.sqrt(prior.var(0) * (2 / len(mine) + 1 / DRAWS))
        assert np.abs((mine.mean(0) - prior.mean(0)) / error).max() < 5.5
    assert said["stages"] == 1 and said["ancestors"] > 0.9 and said["converged"] == 1


def test_too_few_moves_are_marked() -> None:
    """One trajectory per stage, and stages that may kill almost everything: islands end up in different places."""
    _, said = fit(10, 0.002, sweeps=1, final=1, keep=0.02)
    assert said["converged"] == 0 and (said["rhat"] > 1.1 or said["acceptance"] < 0.3)
    _, said = fit(10, 0.002)
    assert said["converged"] == 1 and said["rhat"] < 1.1


def test_stages_are_bounded_and_a_forced_last_one_is_marked() -> None:
    _, said = fit(10, 0.01, stages=1)
    assert said["stages"] == 1 and said["converged"] == 0


def test_other_environments_than_networks_are_refused() -> None:
    with pytest.raises(CalibrantError, match="networks, not coins"):
        Bayes().fit(KEY, instance().train, replace(instance().facts, law="coins"))


def test_agreement_of_islands() -> None:
    """Independent islands agree: R-hat of 20 quantities below 1.05, false alarms below 1e-6. Shifted ones do not."""
    numbers = np.random.default_rng(0).normal(size=(4, 250, 20))
    rhat, ess = agreement(jnp.asarray(numbers))
    assert rhat < 1.05 and 250 < ess <= 1000
    rhat, ess = agreement(jnp.asarray(numbers + np.arange(4)[:, None, None]))
    assert rhat > 1.4 and ess < 5
    rhat, ess = agreement(jnp.zeros((4, 250, 3)))
    assert (rhat, ess) == pytest.approx((1, 1000), rel=0.01)


def test_rows_beyond_the_data_are_never_read_and_blocks_add_up() -> None:
    """Seventy of a hundred rows are three blocks, the last one not full."""
    stream = np.random.default_rng(3)
    x, y = stream.normal(size=(100, 2)).astype(np.float32), stream.integers(0, 3, 100).astype(np.int32)
    facts = Facts(2, 3, 70, 0.5, hidden=(5,))
    network = generative_network(facts)
    u = noise_of(network)(KEY)

    def direct(u: Any) -> Array:
        logp = jax.nn.log_softmax(network(weights_of(network, u), x[:70]) / 0.5)
        return jnp.take_along_axis(logp, y[:70, None], axis=1).sum()

    x[70:] = np.nan
    point = jax.jit(lambda size: likelihood_of(network, Data(x, y), replace(facts, train_size=size))(u))(70)
    value, slope = jax.jit(jax.value_and_grad(direct))(u)
    assert float(point.loglik) == pytest.approx(float(value), rel=1e-5)
    for mine, other in zip(jax.tree.leaves(point.slope), jax.tree.leaves(slope), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4)


def test_the_cut_normal_is_the_quantile_map() -> None:
    u = np.linspace(-5, 5, 10_001)
    exact = np.sign(u) * -ndtri(ndtr(-2) + (ndtr(2) - ndtr(-2)) * ndtr(-np.abs(u)))
    np.testing.assert_allclose(cut_normal(jnp.asarray(u, jnp.float32)), exact, atol=2e-6)
    assert np.abs(cut_normal(jnp.asarray([-9.0, 9.0]))).max() < 2.00001


@pytest.mark.parametrize("init", ["truncated", "normal", "xavier"])
def test_standard_normal_numbers_become_the_generative_law(init: str) -> None:
    """Kolmogorov-Smirnov tests of all weights and of the first bias: four at 1e-6 each."""
    facts = Facts(3, 2, 1, 0.1, hidden=(400, 50), init=init)
    network = generative_network(facts)
    layers = jax.jit(lambda: weights_of(network, noise_of(network)(KEY)))()
    for weight, _ in layers:
        out, size = weight.shape
        spread = np.sqrt(6 / (out + size)) if init == "xavier" else 1 / np.sqrt(size)
        law = {"truncated": stats.truncnorm(-2, 2), "normal": stats.norm(), "xavier": stats.uniform(-1, 2)}[init]
        assert stats.kstest(np.asarray(weight, float).ravel() / spread, law.cdf).pvalue > 1e-6
    assert stats.kstest(np.asarray(layers[0][1]) * np.sqrt(3), stats.norm.cdf).pvalue > 1e-6
    assert not any(np.asarray(bias).any() for _, bias in layers[1:])
