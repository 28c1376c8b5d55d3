"""What training minimises, against SciPy."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.special import log_softmax

from calibrant.train.likelihoods import cross_entropy, l2_strength, sum_of_squares
from calibrant.types import Array, Facts


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_cross_entropy(scale: float) -> None:
    random = np.random.default_rng(0)
    logits, labels = (scale * random.normal(size=(9, 3))).astype(np.float32), random.integers(3, size=9)
    expected = -log_softmax(logits.astype(np.float64), axis=1)[np.arange(9), labels]
    found, gradient = jax.jit(jax.vmap(jax.value_and_grad(one_row)))(logits, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.isfinite(gradient).all()


def one_row(logits: Array, label: Array) -> Array:
    return cross_entropy(logits[None], label[None])[0]


def test_sum_of_squares_counts_weights_and_biases_without_a_half() -> None:
    params = (
        (np.full((2, 3), 2.0, np.float32), np.ones(2, np.float32)),
        (np.zeros((1, 2)), np.full(1, 3.0, np.float32)),
    )
    assert float(sum_of_squares(params)) == pytest.approx(6 * 4 + 2 + 9)


@pytest.mark.parametrize(("form", "expected"), [("adaptive", 3 * 0.2 * 5 / 10), ("fixed", 3 / 10)])
def test_forms_of_l2(form: str, expected: float) -> None:
    facts = Facts(inputs=5, classes=2, train_size=10, temperature=0.04)
    assert float(l2_strength(3.0, form, facts)) == pytest.approx(expected)
