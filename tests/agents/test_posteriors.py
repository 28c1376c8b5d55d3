"""Agents that claim to approximate a posterior, where the posterior is known."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from calibrant.agents.bbb import Bbb, MeanField
from calibrant.agents.deep_kernel import DeepKernel, unit
from calibrant.agents.dropout import Dropout
from calibrant.agents.epinet import Epinet
from calibrant.agents.hypermodel import DrawIndex, Hypermodel
from calibrant.agents.sgmcmc import Sgmcmc, signs
from calibrant.nets.mlp import reference_network
from calibrant.train.likelihoods import cross_entropy, l2_strength
from calibrant.types import Array, Data, Facts

T, VARIANCE = 20, 1.0
FACTS = Facts(inputs=2, classes=2, train_size=T, temperature=0.5, hidden=())
ASKED = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0], [-0.5, -0.5]], np.float32)


@functools.cache
def data() -> Data:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(T, 2)).astype(np.float32)
    return Data(x, (rng.uniform(size=T) < 1 / (1 + np.exp(-1.5 * x[:, 0]))).astype(np.int32))


def probabilities(belief: Any, n: int = 2000) -> Array:
    return np.asarray(jax.nn.softmax(belief.worlds(jax.random.key(9), n)(ASKED), axis=-1)[..., 1])


@functools.cache
def reference() -> Array:
    """Probabilities of class 1 under a long NUTS run on Bayesian logistic regression with sgmcmc's prior."""
    network = reference_network(FACTS)
    start, restore = ravel_pytree(network.init(jax.random.key(0)))
    strength = l2_strength(1 / VARIANCE, "adaptive", FACTS)

    def log_density(theta: Array) -> Array:
        nll = cross_entropy(network(restore(theta), data().x), data().y).mean()
        return -T * (nll + strength * (theta**2).sum())

    warm = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, tuned), _ = warm.run(jax.random.key(1), start, num_steps=500)
    step = blackjax.nuts(log_density, **tuned).step

    def sample(state: Any, key: Any) -> tuple[Any, Array]:
        state, _ = step(key, state)
        logits = network(restore(state.position), ASKED)
        return state, jax.nn.softmax(logits, axis=-1)[:, 1]

    keys = jax.random.split(jax.random.key(2), 3000)
    return np.asarray(jax.jit(lambda: jax.lax.scan(sample, state, keys)[1])())


@pytest.mark.parametrize(("momentum", "noise"), [(0.0, "normal"), (0.9, "normal"), (0.9, "signs")])
def test_sgmcmc_samples_the_posterior_that_nuts_samples(momentum: float, noise: Literal["normal", "signs"]) -> None:
    """Means and spreads to 0.04: about five standard errors of either chain, so a false alarm is below one in 10^5."""
    lr = 0.05 if momentum == 0 else 0.005
    agent = Sgmcmc(lr, VARIANCE, momentum, noise=noise, burn_in=1000, samples=2000, thin=20, hidden=())
    drawn = probabilities(jax.jit(lambda key: agent.fit(key, data(), FACTS))(jax.random.key(4)))
    np.testing.assert_allclose(drawn.mean(0), reference().mean(0), atol=0.04)
    np.testing.assert_allclose(drawn.std(0), reference().std(0), atol=0.04)


def test_signs_are_fair_and_independent() -> None:
    """Means and correlations of 20,000 draws, each within 5 standard errors: a false alarm is below one in 10^3."""
    drawn = np.asarray(jax.vmap(lambda key: signs(key, 40))(jax.random.split(jax.random.key(0), 20_000)))
    assert set(np.unique(drawn)) == {-1.0, 1.0}
    np.testing.assert_allclose(drawn.T @ drawn / len(drawn), np.eye(40), atol=5 / np.sqrt(len(drawn)))
    np.testing.assert_allclose(drawn.mean(0), 0, atol=5 / np.sqrt(len(drawn)))


def test_plain_sgld_has_no_momentum() -> None:
    """One step from the same place moves along the gradient alone, whatever the step before was."""
    agent = Sgmcmc(lr=1e-3, momentum=0.0, noise="normal", burn_in=0, samples=3, thin=1, hidden=())
    quiet = Facts(2, 2, 10**9, 0.5, ())  # so much data that the noise vanishes
    full = Data(np.tile(data().x, (5, 1)), np.tile(data().y, 5))  # 100 rows: every minibatch is the whole
    facts = Facts(2, 2, 100, 0.5, ())
    thetas = agent.fit(jax.random.key(5), full, facts).params
    flat = np.asarray(jax.vmap(lambda one: ravel_pytree(one)[0])(thetas))
    network = reference_network(quiet)
    _, restore = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], thetas))
    strength = float(l2_strength(1 / agent.prior_variance, "adaptive", facts))
    gradient = jax.grad(lambda t: cross_entropy(network(restore(t), full.x), full.y).mean() + strength * (t**2).sum())
    for before, after in itertools.pairwise(flat):
        noise = (before - after - agent.lr * np.asarray(gradient(before))) / np.sqrt(agent.lr * 2 / 100)
        assert np.abs(noise).max() < 6  # standard normal numbers: a false alarm is below one in 10^7


def test_bbb_is_the_prior_where_the_data_count_for_nothing() -> None:
    """A huge temperature weighs the KL so much that q must equal N(0, sigma_1^2)."""
    hot = Facts(2, 2, T, 1e8, ())
    agent = Bbb(sigma_1=0.7, lr=0.05, hidden=())
    q: MeanField = jax.jit(lambda key: agent.fit(key, data(), hot).state)(jax.random.key(0))
    np.testing.assert_allclose(ravel_pytree(q.mean)[0], 0, atol=0.02)
    np.testing.assert_allclose(jax.nn.softplus(ravel_pytree(q.rho)[0]), 0.7, atol=0.02)


def test_a_mixture_of_one_component_is_the_gaussian_prior() -> None:
    """The averaged KL of p=1 agrees with the closed form within its noise (6 standard errors)."""
    mean, rho = jnp.array([0.3, -0.2, 0.5]), jnp.array([-1.0, 0.0, 0.5])
    q, draws = MeanField(mean, rho), 20_000
    weights = mean + jax.nn.softplus(rho) * jax.random.normal(jax.random.key(1), (draws, 3))
    closed = Bbb(sigma_1=0.8)._kl(q, weights)
    averaged = Bbb(prior="mixture", sigma_1=0.8, p=1.0)._kl(q, weights)
    assert abs(float(closed - averaged)) < 6 * 2 / np.sqrt(draws)


def test_dropout_without_dropping_is_one_function() -> None:
    facts = Facts(2, 2, T, 0.5, (8,))
    drawn = probabilities(Dropout(rate=0.0, steps=50, hidden=(8,)).fit(jax.random.key(0), data(), facts), 5)
    np.testing.assert_allclose(drawn, drawn[:1].repeat(5, 0), atol=1e-6)
    spread = probabilities(Dropout(rate=0.5, steps=50, hidden=(8,)).fit(jax.random.key(0), data(), facts), 50)
    assert (spread.std(0) > 1e-3).all()


def test_dropout_keeps_units_with_the_stated_probability_and_scale() -> None:
    facts = Facts(2, 2, T, 0.5, (8,))
    belief = Dropout(rate=0.25, steps=1, hidden=(40,)).fit(jax.random.key(0), data(), facts)
    plain = belief.state.layers
    worlds = belief.worlds(jax.random.key(1), 2000).params
    np.testing.assert_array_equal(worlds[0][0], np.broadcast_to(plain[0][0], worlds[0][0].shape))  # inputs are kept
    masks = np.asarray(worlds[1][0] / plain[1][0])  # [worlds, classes, units]
    np.testing.assert_allclose(masks[:, 0], masks[:, 1], atol=1e-5)  # a unit is dropped for all classes
    assert set(np.unique(masks.round(4))) == {0.0, np.float32(1.3333)}
    assert abs((masks[:, 0] > 0).mean() - 0.75) < 6 * np.sqrt(0.75 * 0.25 / masks[:, 0].size)  # one in 10^8


def test_dropout_may_drop_inputs_too() -> None:
    facts = Facts(2, 2, T, 0.5, (8,))
    belief = Dropout(rate=0.5, drop_inputs=True, steps=1, hidden=(8,)).fit(jax.random.key(0), data(), facts)
    first = np.asarray(belief.worlds(jax.random.key(1), 50).params[0][0])
    assert 0.2 < (first[:, 0, 0] == 0).mean() < 0.8  # half of 50: a false alarm is below one in 10^4


def test_deep_kernel_has_the_gaussian_process_covariance() -> None:
    """The factor form equals the T x T form of appendix C.9, exactly."""
    facts = Facts(2, 2, T, 0.5, (8,))
    belief = DeepKernel(steps=30, hidden=(8,)).fit(jax.random.key(0), data(), facts)
    layers, factor, spread = belief.state
    network = reference_network(facts, (8,))
    phi, seen = (np.asarray(unit(network.with_features(layers, x)[1]), np.float64) for x in (ASKED, data().x))
    variance = 4.0 * facts.temperature
    inside = np.linalg.inv(variance * np.eye(T) + seen @ seen.T)
    wanted = phi @ phi.T - phi @ seen.T @ inside @ seen @ phi.T
    half = float(spread) * phi @ np.linalg.inv(np.asarray(factor, np.float64)).T
    np.testing.assert_allclose(half @ half.T, wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("bootstrap", "law"),
    [("bernoulli", lambda w: 0.5 * (w >= 0) + 0.5 * (w >= 2)), ("exponential", lambda w: 1 - np.exp(-w))],
)
def test_hypermodel_rows_weigh_as_the_bootstrap_says(
    bootstrap: Literal["bernoulli", "exponential"], law: Callable[[Array], Array]
) -> None:
    """Over 10,000 indices every row has the law, to 5 standard errors of its distribution function; rows differ."""
    agent, draw = Hypermodel(bootstrap=bootstrap), DrawIndex(6)
    emphasis = agent._emphasis(jax.random.key(0), draw, 3)
    assert emphasis is not None
    weights = np.asarray(jax.vmap(emphasis)(jax.random.split(jax.random.key(1), 10_000)))
    places = np.linspace(0.1, 3, 30)
    shares = (weights[:, :, None] <= places).mean(axis=0)
    np.testing.assert_allclose(shares, np.tile(law(places), (3, 1)), atol=5 * 0.5 / 100)
    assert np.abs(np.corrcoef(weights.T)[np.triu_indices(3, 1)]).max() < 0.9


def test_a_bootstrapped_hypermodel_learns_from_the_weighted_rows() -> None:
    """Data that contradict each other: with every row at its own weight, worlds disagree more than without."""
    x, y = np.tile(data().x[:1], (2, 1)), np.array([0, 1])
    facts = Facts(2, 2, 2, 0.01, ())
    spreads = {}
    for bootstrap in ("none", "bernoulli"):
        agent = Hypermodel(bootstrap=bootstrap, prior_scale=0.0, l2=0.01, steps=500)  # type: ignore[arg-type]
        belief = jax.jit(lambda key, agent=agent: agent.fit(key, Data(x, y), facts))(jax.random.key(2))
        logits = np.asarray(belief.worlds(jax.random.key(3), 200)(x[:1]))[:, 0]
        spreads[bootstrap] = (logits[:, 1] - logits[:, 0]).std()
    assert spreads["bernoulli"] > 2 * spreads["none"] + 0.1


def test_hypermodel_weights_are_linear_in_the_index() -> None:
    """Worlds' weights span only `index` dimensions around their mean."""
    facts = Facts(2, 2, T, 0.5, (8,))
    belief = Hypermodel(index=3, steps=5, hidden=(8,)).fit(jax.random.key(0), data(), facts)
    trained = belief.worlds(jax.random.key(1), 40).params.trained
    flat = np.asarray(jax.vmap(lambda one: ravel_pytree(one)[0])(trained))
    spectrum = np.linalg.svd(flat - flat.mean(0), compute_uv=False)
    assert spectrum[2] > 1e-2 and spectrum[3] < 1e-4


def test_a_chain_that_runs_away_says_at_which_step() -> None:
    """A step size of a million overshoots at once; a sane one does not."""
    agents = (Sgmcmc(lr, VARIANCE, 0.0, burn_in=100, samples=4, thin=50, hidden=(8,)) for lr in (1e6, 1e-4))
    beliefs = (agent.fit(jax.random.key(0), data(), FACTS) for agent in agents)
    wild, sane = (belief.diagnostics["diverged_at"] for belief in beliefs)
    assert 0 < int(wild) < 300
    assert int(sane) == -1


def test_epinet_worlds_are_the_network_at_their_indices() -> None:
    """Sharing what all indices have in common changes no number; an epinet without a hidden layer is linear in z."""
    for hidden in ((5, 4), ()):
        belief = Epinet(index=3, steps=5, hidden=(8,), epinet_hidden=hidden).fit(jax.random.key(0), data(), FACTS)
        worlds = belief.worlds(jax.random.key(1), 6)
        one_by_one = jnp.stack([belief.network((belief.fitted, z), ASKED) for z in worlds.indices])
        np.testing.assert_allclose(worlds(ASKED), one_by_one, atol=1e-5)


def test_epinet_adds_its_prior_functions_scaled_by_the_temperature() -> None:
    """Without training and with a silent epinet, worlds differ by the prior functions alone: z . g(x) / temperature."""
    agent = Epinet(index=2, steps=1, lr=1e-30, prior_scale=0.3, hidden=(8,))
    belief = agent.fit(jax.random.key(0), data(), FACTS)
    base, epinet = belief.fitted.trained
    silent = replace(belief.fitted, trained=(base, jax.tree.map(jnp.zeros_like, epinet)))
    z = jnp.array([0.7, -1.2])
    shift = belief.network((silent, z), ASKED) - belief.network((silent, jnp.zeros(2)), ASKED)
    priors = jax.vmap(belief.network.prior, (0, None))(belief.fitted.priors, ASKED)
    np.testing.assert_allclose(shift, 0.3 / FACTS.temperature * jnp.tensordot(z, priors, 1), atol=1e-5)
