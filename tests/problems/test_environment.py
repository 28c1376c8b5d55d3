"""The law of the environments against an independent simulation, and against the network that agents draw from.

Every statistical test looks at a fixed stream; the comments give the chance that an honest stream would have failed.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

from calibrant.nets import mlp
from calibrant.problems import environment
from calibrant.seeds import Stream
from calibrant.types import Array, Facts

SIGMAS = 4.9  # two-sided chance 1e-6
TEMPS = (0.01, 0.1, 0.5)
UNIFORM_KL = dict(zip(TEMPS, (0.668, 0.468, 0.117), strict=True))  # reference values of long simulations
BAYES_ACCURACY = dict(zip(TEMPS, (0.989, 0.902, 0.690), strict=True))
NETWORKS, POINTS = 800, 30


# --- the testbed's difficulty ----------------------------------------------------------------------------


def summary(p: Array) -> tuple[Array, Array]:
    """Per network [networks, points, 2]: the uniform agent's KL and the accuracy of the best possible agent."""
    p = np.clip(p, 1e-300, 1)
    return (np.log(2) + (p * np.log(p)).sum(axis=2)).mean(axis=1), p.max(axis=2).mean(axis=1)


@pytest.fixture(scope="module")
def ours() -> Array:
    """Logits [networks, points, 2] at temperature 1."""
    inputs = np.random.default_rng(0).normal(size=(NETWORKS, POINTS, 2))
    return np.stack([
        environment.draw_environment(Stream("law", seed), 2, 2, (50, 50), "relu", "truncated", 1.0)(x)
        for seed, x in enumerate(inputs)
    ])  # fmt: skip


@pytest.fixture(scope="module")
def simulated() -> Array:
    """The same law written down from the paper's code with NumPy and SciPy alone."""
    random, cut = np.random.default_rng(1), stats.truncnorm(-2, 2)
    x = random.normal(size=(NETWORKS, POINTS, 2))
    w1, w2, w3 = (cut.rvs((NETWORKS, n, m), random_state=random) / np.sqrt(n) for n, m in ((2, 50), (50, 50), (50, 2)))
    h = np.maximum(x @ w1 + random.normal(size=(NETWORKS, 1, 50)) / np.sqrt(2), 0)
    logits: Array = np.maximum(h @ w2, 0) @ w3
    return logits


def softmax(logits: Array) -> Array:
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("temp", TEMPS)
def test_difficulty_agrees_with_an_independent_simulation(ours: Array, simulated: Array, temp: float) -> None:
    """False-alarm rate 1e-6 per comparison; the references get 2e-3 more, as their error is not known."""
    published = (UNIFORM_KL[temp], BAYES_ACCURACY[temp])
    for mine, other, reference in zip(
        summary(softmax(ours / temp)), summary(softmax(simulated / temp)), published, strict=True
    ):
        error = mine.std(ddof=1) / np.sqrt(NETWORKS)
        assert abs(mine.mean() - other.mean()) < SIGMAS * error * np.sqrt(2)
        assert abs(mine.mean() - reference) < SIGMAS * error + 2e-3
        assert stats.ks_2samp(mine, other).pvalue > 1e-6


def test_temperature_divides_logits() -> None:
    cold, warm = (
        environment.draw_environment(Stream("t"), 2, 3, (5,), "relu", "truncated", temperature)
        for temperature in (0.1, 1.0)
    )
    x = np.random.default_rng(2).normal(size=(4, 2)).astype(np.float32)
    np.testing.assert_allclose(cold(x), 10 * warm(x))
    np.testing.assert_allclose(np.exp(cold.logp(x)).sum(axis=1), 1)
    np.testing.assert_allclose(cold.logp(x), np.log(softmax(cold(x))))


# --- parameters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("init", "law"), [
    ("truncated", stats.truncnorm(-2, 2)),
    ("normal", stats.norm()),
    ("xavier", stats.uniform(-1, 2)),
])  # fmt: skip
def test_laws_of_weights_and_biases(init: str, law: stats.rv_continuous) -> None:
    """Kolmogorov-Smirnov at 1e-6; the variance, 0.774/fan_in for the truncated law, within 4.9 standard errors."""
    drawn = environment.draw_environment(Stream("weights", init), 8, 40, (200, 30), "relu", init, 1.0)
    for weight in drawn.weights:
        out, fan_in = weight.shape
        scale = np.sqrt(6 / (fan_in + out)) if init == "xavier" else 1 / np.sqrt(fan_in)
        unit = weight.ravel() / scale
        assert stats.kstest(unit, law.cdf).pvalue > 1e-6
        error = np.sqrt((law.moment(4) - law.var() ** 2) / unit.size)
        assert abs(unit.var() - law.var()) < SIGMAS * error
    assert stats.truncnorm(-2, 2).var() == pytest.approx(0.774, abs=1e-3)
    assert [weight.shape for weight in drawn.weights] == [(200, 8), (30, 200), (40, 30)]
    assert stats.kstest(drawn.biases[0] * np.sqrt(8), stats.norm.cdf).pvalue > 1e-6
    assert not any(bias.any() for bias in drawn.biases[1:])


# --- labels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [(0.5, 0.5), (0.2, 0.5, 0.3), (0.01, 0.98, 0.01, 0.0)])
def test_labels_follow_their_probabilities(p: tuple[float, ...]) -> None:
    """Chi-square at 1e-6."""
    probabilities = np.array(p)
    logp = np.log(np.maximum(probabilities, 1e-300))
    labels = environment.draw_labels(Stream("labels", p), np.tile(logp, (50_000, 1)))
    counts = np.bincount(labels, minlength=len(p))
    possible = probabilities > 0
    assert not counts[~possible].any()
    assert stats.chisquare(counts[possible], 50_000 * probabilities[possible]).pvalue > 1e-6
    assert labels.dtype == np.int32


def test_certain_labels() -> None:
    logp = np.array([[0.0, -1e4], [-1e4, 0.0]] * 500)
    np.testing.assert_array_equal(environment.draw_labels(Stream("certain"), logp), [0, 1] * 500)


# --- the same law in JAX ---------------------------------------------------------------------------------


def test_both_libraries_offer_the_same_activations() -> None:
    assert environment.ACTIVATIONS.keys() == mlp.ACTIVATIONS.keys()


@pytest.mark.parametrize("name", sorted(environment.ACTIVATIONS))
def test_activations_agree(name: str) -> None:
    z = np.concatenate([np.linspace(-6, 6, 101), [-80.0, -20.0, 0.0, 20.0, 80.0]]).astype(np.float32)
    ours, theirs = environment.ACTIVATIONS[name](z.astype(np.float64)), np.asarray(mlp.ACTIVATIONS[name](z))
    np.testing.assert_allclose(theirs, ours, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("init", "activation", "hidden"), [
    ("truncated", "relu", (4, 4)),
    ("normal", "tanh", (4,)),
    ("xavier", "selu", (4, 3)),
])  # fmt: skip
def test_the_generative_network_has_the_law_of_the_environments(
    init: str, activation: str, hidden: tuple[int, ...]
) -> None:
    """Two samples of 1500 networks seen at two inputs: three Kolmogorov-Smirnov tests at 1e-6 each."""
    x = np.array([[1.0, -0.5], [0.3, 2.0]], np.float32)
    facts = Facts(inputs=2, classes=2, train_size=1, temperature=1.0, hidden=hidden, activation=activation, init=init)
    network = mlp.generative_network(facts)

    def draw(key: Array) -> Array:
        return network(network.init(key), x)

    theirs = np.asarray(jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), 1500)))
    ours = np.stack([
        environment.draw_environment(Stream("two samples", seed), 2, 2, hidden, activation, init, 1.0)(x)
        for seed in range(1500)
    ])  # fmt: skip
    for mine, other in zip(views(ours), views(theirs), strict=True):
        assert stats.ks_2samp(mine, other).pvalue > 1e-6


def views(f: Array) -> tuple[Array, Array, Array]:
    """One logit gap, one logit, and how two inputs hang together."""
    return f[:, 0, 1] - f[:, 0, 0], f[:, 1, 0], f[:, 0, 0] * f[:, 1, 0]
