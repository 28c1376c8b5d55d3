"""Priorities of active learning, against their definitions computed in plain NumPy."""

from __future__ import annotations

from itertools import product
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import entropy as shannon

from calibrant.rules import priorities
from calibrant.rules.priorities import PRIORITIES, REPEATS
from calibrant.types import Array

KEY = jax.random.key(1)


def opinions(worlds: int = 5, candidates: int = 6, classes: int = 2, seed: int = 0) -> Array:
    return np.random.default_rng(seed).dirichlet(np.ones(classes), size=(worlds, candidates)).astype(np.float32)


@pytest.mark.parametrize("classes", [2, 4])
def test_each_is_what_it_is_defined_as(classes: int) -> None:
    p = opinions(classes=classes)
    mean = p.mean(axis=0)
    ordered = np.sort(mean, axis=1)
    expected = {
        "entropy": shannon(mean, axis=1),
        "margin": ordered[:, -2] - ordered[:, -1],
        "variation": 1 - ordered[:, -1],
        "bald": shannon(mean, axis=1) - shannon(p, axis=2).mean(axis=0),
        "variance": p.var(axis=0).sum(axis=1),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(PRIORITIES[name](KEY, jnp.asarray(p)), values, atol=2e-6, err_msg=name)


def test_joint_information_is_that_of_the_labels_of_the_other_anchor() -> None:
    """Mutual information of Y and how often class 1 comes up in the anchor's repeats, summed over all outcomes."""
    p = opinions(worlds=4, candidates=3).astype(np.float64)
    expected = np.zeros(3)
    for candidate, anchor in product(range(3), range(3)):
        law = np.array(
            [[comb(REPEATS, k) * w[1] ** k * w[0] ** (REPEATS - k) for k in range(REPEATS + 1)] for w in p[:, anchor]]
        )
        both = np.einsum("wc,wk->ck", p[:, candidate], law) / 4
        expected[candidate] += (both * np.log(both / np.outer(both.sum(1), both.sum(0)))).sum() / 3
    np.testing.assert_allclose(priorities.joint(KEY, jnp.asarray(p, jnp.float32)), expected, atol=2e-6)


def test_joint_information_never_exceeds_what_the_label_says_about_the_world() -> None:
    for classes in (2, 3):
        p = jnp.asarray(opinions(20, 10, classes, seed=3))
        assert (priorities.joint(KEY, p) <= priorities.bald(KEY, p) + 1e-6).all()


@pytest.mark.parametrize("name", ["bald", "variance", "joint"])
def test_a_single_world_has_nothing_to_learn(name: str) -> None:
    assert (PRIORITIES[name](KEY, jnp.asarray(opinions(worlds=1))) == 0).all()
