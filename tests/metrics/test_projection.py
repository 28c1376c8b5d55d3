"""The original's random-projection estimator: what it equals where that is known, and how it goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from calibrant.metrics import projection
from calibrant.metrics.projection import cluster, projected_log_likelihood
from calibrant.train.evidence import log_evidence
from calibrant.types import Array

RNG = np.random.default_rng(5)


def worlds(logits: Array) -> Array:
    """Probabilities [worlds, tau, 2] from logits [worlds, tau]."""
    return np.stack([expit(-logits), expit(logits)], axis=2)


def test_worlds_that_agree_are_one_cluster() -> None:
    p = np.tile(worlds(RNG.normal(size=(1, 30))), (50, 1, 1))
    labels = RNG.integers(2, size=30)
    assert len(set(cluster(np.random.default_rng(1), p).tolist())) == 1
    expected = np.log(p[0, np.arange(30), labels]).sum()
    assert projected_log_likelihood(np.random.default_rng(1), p, labels) == pytest.approx(expected, abs=1e-4)


def test_clusters_of_one_world_give_the_mean_over_worlds() -> None:
    p, labels = worlds(3 * RNG.normal(size=(6, 12))), RNG.integers(2, size=12)
    found = projected_log_likelihood(np.random.default_rng(2), p, labels, bits=40)
    each = np.log(np.take_along_axis(p, labels[None, :, None], axis=2)[..., 0]).sum(axis=1)
    assert found == pytest.approx(np.log(np.exp(each).mean()), abs=1e-3)


def test_blocks_do_not_change_clusters_of_opposite_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = np.repeat([[4.0] * 20, [-4.0] * 20], 5, axis=0)
    monkeypatch.setattr(projection, "BLOCK", 7)
    codes = cluster(np.random.default_rng(3), worlds(logits))
    assert len(set(codes[:5].tolist())) == len(set(codes[5:].tolist())) == 1 and codes[0] != codes[5]
    ones = np.ones(20, int)
    expected = np.log(0.5) + 20 * np.log(expit(4.0))
    assert projected_log_likelihood(np.random.default_rng(3), worlds(logits), ones) == pytest.approx(expected, abs=1e-4)


def test_it_is_far_too_low_where_many_labels_say_much() -> None:
    """100 nearly certain labels in ten dimensions: off by 20 nats and more, and yet finite."""
    x, phi = RNG.normal(size=(100, 10)), RNG.normal(size=(1001, 10))
    signs = np.where(x @ phi[0] > 0, 1, -1)
    right = log_evidence(np.random.default_rng(4), x, signs, 0.01).log
    p = worlds(phi[1:] @ x.T / 0.01)
    assert -200 < projected_log_likelihood(np.random.default_rng(4), p, (signs + 1) // 2) < right - 15
