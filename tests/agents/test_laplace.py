"""The Laplace approximation against direct computations, and against a grid where the posterior is nearly Gaussian."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from calibrant import registry
from calibrant.agents.laplace import Laplace, LaplaceBelief, _factorise, softmax_factor
from calibrant.nets.mlp import reference_network
from calibrant.train.likelihoods import l2_strength
from calibrant.types import Array, CalibrantError, Data, Facts

KEY = jax.random.key(0)
FACTS = Facts(inputs=2, classes=3, train_size=6, temperature=0.5, hidden=(4,), activation="tanh")
X = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
Y = np.random.default_rng(1).integers(3, size=100).astype(np.int32)
AGENT = Laplace(steps=50, lr=0.02)


@functools.cache
def fitted(over: Any, rows: int, predict: Any = "linearised") -> Any:
    agent = replace(AGENT, over=over, predict=predict)
    return jax.jit(lambda: agent.fit(KEY, Data(X[:rows], Y[:rows]), FACTS))()


def precision_matrix(belief: LaplaceBelief, cut: int) -> Array:
    """J' H J + precision I by the dense Jacobian of the six rows that count."""
    centre, restore = ravel_pytree(belief.layers[cut:])
    network = reference_network(FACTS)

    def logits(top: Array) -> Array:
        return network((*belief.layers[:cut], *restore(top)), X[:6])

    jacobian = np.asarray(jax.jacfwd(logits)(centre), np.float64)
    p = np.asarray(jax.nn.softmax(logits(centre)), np.float64)
    h = np.stack([np.diag(row) - np.outer(row, row) for row in p])
    prior = 2 * 6 * float(l2_strength(AGENT.l2, AGENT.l2_form, FACTS))
    return np.einsum("nip,nij,njq->pq", jacobian, h, jacobian) + prior * np.eye(len(centre))


@pytest.mark.parametrize("logits", [[0.3, -1.0], [0.0, 2.0, -1.0], [1.0, 5.0, -3.0, 0.0, 0.2], [90.0, -90.0, 0.0]])
def test_the_factor_of_the_softmax_curvature(logits: list[float]) -> None:
    p = np.asarray(jax.nn.softmax(jnp.array(logits)))
    factor = np.asarray(softmax_factor(jnp.array(logits)))
    np.testing.assert_allclose(factor @ factor.T, np.diag(p) - np.outer(p, p), atol=1e-6)


@pytest.mark.parametrize(
    ("over", "rows"), [("full", 6), ("full", 10), ("full", 100), ("last_layer", 6), ("last_layer", 100)]
)
def test_draws_have_the_covariance_of_the_dense_computation(over: str, rows: int) -> None:
    """Six rows, padded or not; by rows where they are few and by parameters where they are many.

    The covariance of 20,000 draws within 6 standard errors in each of 27 x 27 entries: a false alarm below 1e-5.
    """
    belief, cut, n = fitted(over, rows), 1 if over == "last_layer" else 0, 20_000
    wanted = np.linalg.inv(precision_matrix(belief, cut))
    assert (belief.root is None) == (rows * 2 >= len(wanted))
    drawn = np.asarray(belief._deviations(jax.random.key(1), len(wanted), n), np.float64)
    error = np.sqrt((np.outer(np.diag(wanted), np.diag(wanted)) + wanted**2) / n)
    assert (np.abs(drawn.T @ drawn / n - wanted) < 6 * error).all()
    assert (np.abs(drawn.mean(0)) < 6 * np.sqrt(np.diag(wanted) / n)).all()


def test_many_rows_are_summed_in_blocks() -> None:
    """1200 rows of two inputs: their curvature is that of two rows, 600 times."""
    network = reference_network(FACTS)
    layers = network.init(KEY)
    many = Data(np.tile(X[:2], (600, 1)), np.tile(Y[:2], 600))
    root, factor = _factorise(network, layers, 0, many, replace(FACTS, train_size=1200), jnp.float32(2.0))
    assert root is None
    few, _ = _factorise(network, layers, 0, Data(X[:2], Y[:2]), replace(FACTS, train_size=2), jnp.float32(2.0))
    assert few is not None
    np.testing.assert_allclose(factor @ factor.T, 600 * few.T @ few + 2 * np.eye(len(factor)), rtol=1e-3, atol=1e-2)


def test_without_hidden_layers_the_last_layer_is_the_whole_network() -> None:
    facts = replace(FACTS, hidden=())
    full, last = (
        jax.jit(lambda over=over: replace(AGENT, over=over).fit(KEY, Data(X[:6], Y[:6]), facts).worlds(KEY, 5)(X))()
        for over in ("full", "last_layer")
    )
    np.testing.assert_array_equal(full, last)


@pytest.mark.parametrize("over", ["full", "last_layer"])
def test_linearised_worlds_are_the_first_order_of_sampled_ones(over: str) -> None:
    """The same key draws the same parameters; the last layer is linear already."""
    linear, sampled = (fitted(over, 10, predict).worlds(KEY, 4) for predict in ("linearised", "sampled"))
    layers, network = fitted(over, 10).layers, reference_network(FACTS)

    def first_order(params: Any) -> Array:
        shift = jax.tree.map(jnp.subtract, params, layers)
        value, slope = jax.jvp(lambda theta: network(theta, X), (layers,), (shift,))
        return value + slope

    np.testing.assert_allclose(linear(X), jax.vmap(first_order)(sampled.params), atol=1e-4)
    if over == "last_layer":
        np.testing.assert_allclose(linear(X), sampled(X), atol=1e-4)


def test_worlds_do_not_depend_on_how_many_inputs_are_asked() -> None:
    worlds = fitted("full", 10).worlds(KEY, 3)
    many = np.tile(X, (12, 1))  # more than a block
    np.testing.assert_allclose(worlds(many)[:, -100:], worlds(X), atol=1e-4)


# --- logistic regression ------------------------------------------------------------------------

ROWS, TEMPERATURE = 60, 0.3
ASKED = np.array([[-1.0], [0.2], [2.0]], np.float32)


def grid_moments(x: Array, y: Array, variance: float) -> tuple[Array, Array]:
    """Mean and variance of the logit w x + b, w and b differences of two classes' parameters of `variance` each."""
    side = np.linspace(-8, 8, 601)
    w, b = np.meshgrid(side, side, indexing="ij")
    logp = -(w**2 + b**2) / (4 * variance)
    for one, label in zip(x[:, 0], y, strict=True):
        logp -= np.logaddexp(0, -(2 * label - 1) * (w * one + b))
    weight = np.exp(logp - logp.max())
    weight /= weight.sum()
    logits = [w * one + b for one in ASKED[:, 0]]
    means = np.array([(weight * logit).sum() for logit in logits])
    return means, np.array([(weight * (logit - mean) ** 2).sum() for logit, mean in zip(logits, means, strict=True)])


def test_bayesian_logistic_regression_on_enough_data() -> None:
    """Sixty rows make the posterior nearly Gaussian: means to a quarter of its deviation, variances to a quarter.

    Of that, sampling error with 20,000 draws takes 0.05 at most, at five standard errors (false alarms below 1e-5).
    """
    random = np.random.default_rng(2)
    x = random.normal(size=(ROWS, 1)).astype(np.float32)
    y = (random.uniform(size=ROWS) < 1 / (1 + np.exp(-1.5 * x[:, 0] - 0.5))).astype(np.int32)
    facts = Facts(inputs=1, classes=2, train_size=ROWS, temperature=TEMPERATURE, hidden=())
    agent = Laplace(steps=1500, lr=0.03, l2=0.4)
    belief = jax.jit(lambda: agent.fit(KEY, Data(x, y), facts))()
    logits = np.asarray(belief.worlds(KEY, 20_000)(ASKED))
    found = logits[..., 1] - logits[..., 0]
    means, variances = grid_moments(x, y, 1 / (2 * 0.4 * np.sqrt(TEMPERATURE)))
    assert (np.abs(found.mean(0) - means) < 0.25 * np.sqrt(variances)).all()
    np.testing.assert_allclose(found.var(0), variances, rtol=0.25)


def test_a_wider_prior_is_felt_where_there_is_no_data() -> None:
    far = np.array([[30.0, -30.0]], np.float32)

    @jax.jit
    def spread(agent: Laplace) -> Array:
        return jnp.std(agent.fit(KEY, Data(X[:6], Y[:6]), FACTS).worlds(KEY, 400)(far))

    spreads = [float(spread(replace(AGENT, prior_scale=scale))) for scale in (0.5, 2.0)]
    assert spreads[1] > 2 * spreads[0]


# --- what is refused ----------------------------------------------------------------------------


def test_a_posterior_needs_a_prior() -> None:
    with pytest.raises(CalibrantError, match=r"l2=0 .* greater than 0"):
        registry.resolve("agents", "calibrant.agents.laplace:Laplace?l2=0")


def test_networks_too_large_for_a_dense_factor_are_refused() -> None:
    data = Data(jnp.zeros((20_000, 2)), jnp.zeros(20_000, int))
    facts = replace(FACTS, hidden=(100, 100), train_size=20_000)
    with pytest.raises(CalibrantError, match="at most 10000 parameters"):
        jax.eval_shape(lambda: replace(AGENT, over="full").fit(KEY, data, facts))
