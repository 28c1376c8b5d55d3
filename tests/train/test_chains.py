"""The posterior that samplers walk in, and what their chains are judged by."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax

from calibrant import seeds
from calibrant.nets.mlp import Mlp
from calibrant.train.chains import PROBES, Chains, diverged_at, mixing, prior_scales, probe_inputs
from calibrant.types import Array, Data, Facts

FACTS = Facts(inputs=3, classes=2, train_size=4, temperature=0.25, hidden=(5,))
TRAIN = Data(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32), np.array([0, 1, 1, 0], np.int32))
PADDED = Data(np.pad(TRAIN.x, ((0, 6), (0, 0)), constant_values=99), np.pad(TRAIN.y, (0, 6), constant_values=1))


def whitened(count: int) -> Array:
    return jax.random.normal(seeds.jax_key("whitened"), (count, 5 * 4 + 2 * 6))


def test_the_log_density_is_the_likelihood_of_the_rows_that_count_and_a_standard_normal_prior() -> None:
    posterior = Chains().posterior(PADDED, FACTS)
    z = np.asarray(whitened(1)[0], np.float64)
    first, last = 1 / np.sqrt(3), 1 / np.sqrt(5) / 0.25
    hidden = np.maximum(TRAIN.x @ (first * z[:15]).reshape(5, 3).T + first * z[15:20], 0)
    logits = hidden @ (last * z[20:30]).reshape(2, 5).T + last * z[30:]
    expected = log_softmax(logits, axis=1)[np.arange(4), TRAIN.y].sum() - 0.5 * z @ z
    assert float(posterior(jnp.asarray(z, jnp.float32))) == pytest.approx(expected, rel=1e-4)


def test_padding_has_no_gradient() -> None:
    z = whitened(1)[0]
    bare, padded = (jax.jit(jax.grad(Chains().posterior(data, FACTS)))(z) for data in (TRAIN, PADDED))
    np.testing.assert_allclose(bare, padded, rtol=1e-4, atol=1e-5)


def test_parameters_have_the_shapes_of_the_network() -> None:
    posterior = Chains(hidden=(5,)).posterior(TRAIN, replace(FACTS, hidden=(50, 50)))
    found = jax.eval_shape(posterior.params, whitened(1)[0])
    born = jax.eval_shape(posterior.network.init, seeds.jax_key(0))
    assert jax.tree.map(lambda leaf: leaf.shape, found) == jax.tree.map(lambda leaf: leaf.shape, born)


def test_prior_scales() -> None:
    network = Mlp((2, 50, 50, 3))
    facts = Facts(inputs=2, classes=3, train_size=10, temperature=0.01)
    by_fan_in = prior_scales(network, "fan_in", 4.0, facts)
    np.testing.assert_allclose(by_fan_in, [2 / np.sqrt(2), 2 / np.sqrt(50), 200 / np.sqrt(50)], rtol=1e-6)
    np.testing.assert_allclose(prior_scales(network, "adaptive", 0.1, facts), np.sqrt(0.1 / (2 * 2 * 0.1)), rtol=1e-6)


def test_probes_are_rows_that_count_and_others() -> None:
    probes = np.asarray(probe_inputs(jnp.asarray(PADDED.x), jnp.int32(3)))
    assert probes.shape == (PROBES, 3)
    np.testing.assert_array_equal(probes[: PROBES // 2], TRAIN.x[np.arange(PROBES // 2) % 3])
    assert np.abs(probes[PROBES // 2 :]).max() < 5
    assert len(np.unique(probes[PROBES // 2 :])) == 3 * PROBES // 2


def test_mixing_tells_the_worst() -> None:
    """Of 200 draws, the R-hat of three uniform quantities is below 1.1 but for a chance of 1e-9 (chi2_7 above 140)."""
    values = np.random.default_rng(0).uniform(size=(4, 200, 3))
    good = mixing(jnp.asarray(values))
    assert good["rhat"] < 1.1
    assert good["ess"] > 400
    values[0, :, 2] += 1
    bad = mixing(jnp.asarray(values))
    assert bad["rhat"] > 1.5
    assert bad["ess"] < 50


def test_diverged_at_is_where_a_failed_chain_first_diverged() -> None:
    divergent = np.zeros((100, 3), bool)
    assert diverged_at(jnp.asarray(divergent), 50) == -1
    divergent[3:13, 0] = True  # a tenth: allowed
    assert diverged_at(jnp.asarray(divergent), 50) == -1
    divergent[20:40, 1] = True
    assert diverged_at(jnp.asarray(divergent), 50) == 70
    divergent[5:, 2] = True
    assert diverged_at(jnp.asarray(divergent), 50) == 55
