"""SWAG's Gaussian is that of the path; the path is plain gradient descent."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from calibrant.agents.swag import Swag, draw_weights, summarise
from calibrant.nets.mlp import reference_network
from calibrant.train.likelihoods import cross_entropy, l2_strength, sum_of_squares
from calibrant.types import Array, Data, Facts

KEY = jax.random.key(0)
FACTS = Facts(inputs=2, classes=2, train_size=4, temperature=0.5, hidden=())
X = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
Y = (X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=40) > 0).astype(np.int32)


def recursion(steps: int) -> Array:
    """A linear one with noise, theta <- theta - A theta + e: a path whose numbers are strongly correlated."""
    random = np.random.default_rng(2)
    pull = np.array([[0.3, -0.2, 0.0], [0.0, 0.2, 0.1], [0.0, 0.0, 0.1]])
    theta, path = np.zeros(3), []
    for _ in range(steps):
        theta = theta - pull @ theta + random.normal(size=3)
        path.append(theta)
    return np.array(path, np.float32)


@pytest.mark.parametrize(("rank", "scale"), [(200, 1.0), (200, 4.0), (5, 1.0)])
def test_covariance_of_a_linear_recursion(rank: int, scale: float) -> None:
    """Half the variances, plus half the covariance of the last `rank` iterates about the mean of all.

    Covariances of 20,000 draws within 6 standard errors in 9 entries: false alarms below 1e-7.
    """
    path, n = recursion(200), 20_000
    spread = summarise({"a": jnp.asarray(path[:, :2]), "b": jnp.asarray(path[:, 2:])}, rank, scale)
    drawn = jax.vmap(lambda key: draw_weights(spread, key))(jax.random.split(KEY, n))
    found = np.concatenate([drawn["a"], drawn["b"]], axis=1).astype(np.float64)
    away = path[-rank:] - path.mean(0)
    wanted = scale * (np.diag(path.var(0)) + away.T @ away / (rank - 1)) / 2
    if rank == 200:
        np.testing.assert_allclose(wanted / scale, (np.diag(path.var(0)) + np.cov(path.T)) / 2, rtol=1e-4)
    error = np.sqrt((np.outer(np.diag(wanted), np.diag(wanted)) + wanted**2) / n)
    assert (np.abs(np.cov(found.T) - wanted) < 6 * error).all()
    assert (np.abs(found.mean(0) - path.mean(0)) < 6 * np.sqrt(np.diag(wanted) / n)).all()


def test_the_path_is_gradient_descent_without_momentum() -> None:
    """Minibatches of eight hold each of four rows twice, so the walk is the same as on all rows, padding left out."""
    agent = Swag(sgd_lr=0.2, sgd_batch=8, collect=3, snapshots=4)
    network = reference_network(FACTS)
    start = network.init(KEY)
    data = Data(np.where(np.arange(6)[:, None] < 4, X[:6], 99), Y[:6])
    visited = agent.walk(KEY, network, start, data, FACTS)
    strength = l2_strength(agent.l2, agent.l2_form, FACTS)
    slope = jax.jit(
        jax.grad(lambda one: cross_entropy(network(one, X[:4]), Y[:4]).mean() + strength * sum_of_squares(one))
    )
    theta = start
    for step in range(12):
        theta = jax.tree.map(lambda weight, slant: weight - 0.2 * slant, theta, slope(theta))
        if step % 3 == 2:
            snapshot = jax.tree.map(lambda leaf, step=step: leaf[step // 3], visited)
            np.testing.assert_allclose(ravel_pytree(snapshot)[0], ravel_pytree(theta)[0], rtol=1e-4, atol=1e-5)


def test_the_centre_is_the_mode_of_the_posterior() -> None:
    """Of a convex problem, to within the walk's own noise, which is small at this step size."""
    facts = replace(FACTS, train_size=40)
    agent = Swag(steps=1500, lr=0.02, sgd_lr=0.02, collect=50, snapshots=40)
    belief = jax.jit(lambda: agent.fit(KEY, Data(X, Y), facts))()
    network, strength = reference_network(facts), l2_strength(1.0, "adaptive", facts)
    flat, restore = ravel_pytree(belief.state.mean)
    slope = jax.grad(lambda theta: cross_entropy(network(restore(theta), X), Y).mean() + strength * (theta**2).sum())(
        flat
    )
    deviation = ravel_pytree(belief.state.deviation)[0]
    assert np.abs(slope).max() < 0.02
    assert (deviation > 1e-4).all() and (deviation < 0.2).all()
    assert belief.diagnostics["diverged_at"] == -1


def test_a_walk_that_runs_away_says_at_which_step() -> None:
    """Weight decay alone multiplies the weights by 1 - 2 lr strength at every step."""
    agent = Swag(steps=1, sgd_lr=100.0, l2=10.0, collect=5, snapshots=20)
    belief = jax.jit(lambda: agent.fit(KEY, Data(X[:4], Y[:4]), FACTS))()
    factor = float(2 * 100 * l2_strength(10.0, "adaptive", FACTS) - 1)
    overflow = np.log(3e38) / np.log(factor)
    lost = int(belief.diagnostics["diverged_at"])
    assert lost % 5 == 0
    assert overflow - 10 < lost < overflow + 10
