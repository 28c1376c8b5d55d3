"""The flow's density is exact, its loss bounds the evidence, and it sees correlations that mean field cannot."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from calibrant.agents.bbb import Bbb
from calibrant.agents.flow import Flow, Posterior, State, bend, draw
from calibrant.nets.mlp import Mlp
from calibrant.types import Array, Data, Facts

KEY = jax.random.key(0)
NETWORK = Mlp((2, 2))
UNIT = jax.tree.map(jnp.ones_like, NETWORK.init(KEY))


@functools.cache
def posterior(rank: int) -> Posterior:
    """One that is not near the identity: every number of its parameters is random."""
    born = Flow(rank=rank, couplings=3)._birth(KEY, NETWORK, UNIT)
    flat, restore = ravel_pytree(born)
    shaken: Posterior = restore(flat + 0.4 * jax.random.normal(jax.random.key(1), flat.shape))
    return shaken


@pytest.mark.parametrize("rank", [2, 3, 6])
def test_the_log_determinant_is_that_of_the_jacobian(rank: int) -> None:
    q, t = posterior(rank), jax.random.normal(jax.random.key(2), (rank,))
    (_, told), jacobian = jax.jit(lambda t: (bend(q, t), jax.jacfwd(lambda t: bend(q, t)[0])(t)))(t)
    assert float(told) == pytest.approx(np.linalg.slogdet(np.asarray(jacobian, np.float64))[1], abs=1e-4)


def weights(q: Posterior, eps: Array) -> Array:
    """Weights as a function of their noise: what `draw` computes, written out with a plain QR factorisation."""
    basis, triangle = jnp.linalg.qr(q.basis)
    directions = basis * jnp.sign(jnp.diagonal(triangle))
    t = directions.T @ eps
    return q.mean + jnp.exp(q.log_scale) * (eps + directions @ (bend(q, t)[0] - t))


def test_the_divergence_is_that_of_the_density() -> None:
    """KL = E[log q - log prior] with q's density by the dense Jacobian, over 4000 draws.

    Both averages estimate the same number from the same noise: six standard errors of their difference, 1e-8.
    """
    q, n = posterior(3), 4000
    keys = jax.random.split(jax.random.key(3), n)

    def both(key: Any) -> tuple[Array, Array, Array]:
        drawn = draw(State(q, UNIT), key)
        eps = jax.random.normal(key, q.mean.shape)
        theta, jacobian = weights(q, eps), jax.jacfwd(lambda eps: weights(q, eps))(eps)
        log_q = -0.5 * (eps**2).sum() - jnp.linalg.slogdet(jacobian)[1]
        return drawn.divergence, log_q + 0.5 * (theta**2).sum(), jnp.abs(ravel_pytree(drawn.layers)[0] - theta).max()

    closed, dense, apart = (np.asarray(part, np.float64) for part in jax.jit(jax.vmap(both))(keys))
    assert apart.max() < 1e-4
    difference = closed - dense
    assert abs(difference.mean()) < 6 * difference.std() / np.sqrt(n)
    assert closed.std() < dense.std()  # what is in closed form makes no noise
    assert closed.mean() > 0


# --- logistic regression ------------------------------------------------------------------------

ROWS, VARIANCE, TEMPERATURE = 30, 2.0, 0.5
FACTS = Facts(inputs=2, classes=2, train_size=ROWS, temperature=TEMPERATURE, hidden=())
SCALE = np.sqrt(VARIANCE / 2) / TEMPERATURE  # the prior's standard deviation of every weight
AGENT = Flow(rank=6, lr=0.01, steps=1500, draws=8, prior_variance=VARIANCE)


@functools.cache
def data() -> Data:
    """Two inputs that are nearly the same: the data know the sum of their weights, not the difference."""
    random = np.random.default_rng(3)
    first = random.normal(size=ROWS)
    x = np.stack([first, first + 0.15 * random.normal(size=ROWS)], axis=1).astype(np.float32)
    return Data(x, (random.uniform(size=ROWS) < 1 / (1 + np.exp(-2 * first))).astype(np.int32))


def contrasts(params: Any) -> Array:
    """Differences of the two classes' parameters, [worlds, 3]: all that the likelihood sees."""
    (weight, bias), *_ = jax.tree.map(np.asarray, params)
    return np.concatenate([weight[:, 1] - weight[:, 0], (bias[:, 1] - bias[:, 0])[:, None]], axis=1)


def test_without_data_it_is_the_prior() -> None:
    """A KL that weighs ten thousand times as much leaves nothing to thirty rows."""
    agent = replace(AGENT, rank=2, lr=0.001, steps=5000, kl_weight=1e4)
    drawn = jax.jit(lambda: agent.fit(KEY, data(), FACTS).worlds(KEY, 4000))().params
    z = np.concatenate([np.asarray(leaf).reshape(4000, -1) for leaf in jax.tree.leaves(drawn)], axis=1) / SCALE
    np.testing.assert_allclose(z.mean(0), 0, atol=0.1)  # six standard errors of the draws, false alarms below 1e-7
    np.testing.assert_allclose(np.cov(z.T), np.eye(6), atol=0.14)


@functools.cache
def grid_moments() -> tuple[Array, Array]:
    """Mean and covariance of the contrasts under the exact posterior, by a grid."""
    sides = (np.linspace(-7, 9, 81), np.linspace(-7, 9, 81), np.linspace(-3, 3, 41))
    points = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 3)
    logp = -(points**2).sum(1) / (4 * SCALE**2)
    for x, y in zip(data().x, data().y, strict=True):
        logp -= np.logaddexp(0, (1 - 2 * y) * (points[:, :2] @ x + points[:, 2]))
    weight = np.exp(logp - logp.max())
    weight /= weight.sum()
    mean = weight @ points
    return mean, (points - mean).T @ ((points - mean) * weight[:, None])


def test_a_correlated_posterior_is_found_and_mean_field_misses_it() -> None:
    """Covariances within a quarter, means within 0.3 deviations.

    Of that, 4000 draws take a tenth at five standard errors (false alarms below 1e-5); the rest is the optimiser's.
    """
    mean, covariance = grid_moments()
    deviations = np.sqrt(np.diag(covariance))
    assert covariance[0, 1] < -0.7 * deviations[0] * deviations[1]
    mean_field = Bbb(sigma_1=SCALE, kl_form="fixed", lr=0.01, steps=1500, hidden=())
    bent, independent = (
        contrasts(jax.jit(lambda agent=agent: agent.fit(KEY, data(), FACTS).worlds(KEY, 4000))().params)
        for agent in (AGENT, mean_field)
    )
    ours, theirs = (np.linalg.norm(np.cov(found.T) - covariance) for found in (bent, independent))
    assert ours < 0.25 * np.linalg.norm(covariance)
    assert ours < theirs / 2
    assert (np.abs(bent.mean(0) - mean) < 0.3 * deviations).all()
