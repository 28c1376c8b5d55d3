"""Which rows a step sees: epochs without gaps or repeats, in both forms, whatever the padding."""

from __future__ import annotations

from collections import Counter

import jax
import numpy as np
import pytest
from scipy import stats

from calibrant.train.likelihoods import cross_entropy
from calibrant.train.minibatches import shuffled, take
from calibrant.types import Array

KEY = jax.random.key(0)
STEPS = 12
draw = jax.jit(shuffled, static_argnums=(2, 3, 4))  # the size is traced, as it is in a cohort


def counts(size: int, rows: int) -> Array:
    """How often each step sees each row, [steps, rows], from either form."""
    batches = draw(KEY, size, rows, STEPS, 100)
    assert batches.steps == STEPS
    if batches.rows is None:
        weighted = np.asarray(batches.weights, np.float64) * 100
        np.testing.assert_allclose(weighted, np.round(weighted), atol=1e-4)
        return np.round(weighted).astype(int)
    return np.stack([np.bincount(row, minlength=rows) for row in np.asarray(batches.rows)])


@pytest.mark.parametrize(("size", "rows"), [
    (1, 10), (3, 10), (10, 10), (3, 100), (30, 100), (100, 100),  # weights
    (3, 1000), (30, 1000), (100, 1000), (300, 1000), (1000, 1000),  # indices
])  # fmt: skip
def test_epochs_have_no_gaps_and_no_repeats(size: int, rows: int) -> None:
    """At every step the rows seen so far differ by at most one, and by none where an epoch ends."""
    seen = counts(size, rows).cumsum(axis=0)
    assert (seen.sum(axis=1) == 100 * np.arange(1, STEPS + 1)).all()
    assert (seen[:, size:] == 0).all()
    real = seen[:, :size]
    assert (real.max(axis=1) - real.min(axis=1) <= 1).all()
    at_end = 100 * np.arange(1, STEPS + 1) % size == 0
    assert (real[at_end].max(axis=1) == real[at_end].min(axis=1)).all()


def test_ten_rows_are_a_full_batch() -> None:
    np.testing.assert_allclose(draw(KEY, 10, 10, STEPS, 100).weights, np.full((STEPS, 10), 0.1), rtol=1e-6)
    expected = np.pad(np.full((STEPS, 10), 0.1), ((0, 0), (0, 90)))
    np.testing.assert_allclose(draw(KEY, 10, 100, STEPS, 100).weights, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [3, 30])
def test_ragged_batches(size: int) -> None:
    """A step ends one epoch and begins another, so a row may be seen once less or once more than evenly."""
    found = counts(size, 100)[:, :size]
    assert set(np.unique(found)) == {100 // size - 1, 100 // size, 100 // size + 1}
    assert (found[0] >= 100 // size).all()  # the first step begins with a whole epoch
    assert len({tuple(row) for row in found}) > 1  # the larger share goes round


@pytest.mark.parametrize("size", [3, 7, 250])
def test_indices_are_one_permutation_after_another(size: int) -> None:
    rows = np.asarray(draw(KEY, size, 1000, STEPS, 100).rows).ravel()
    epochs = rows[: len(rows) // size * size].reshape(-1, size)
    np.testing.assert_array_equal(np.sort(epochs, axis=1), np.tile(np.arange(size), (len(epochs), 1)))
    assert len({tuple(epoch) for epoch in epochs}) > 1


@pytest.mark.parametrize("rows", [10, 1000])
def test_size_need_not_be_traced(rows: int) -> None:
    (traced,), (plain,) = (jax.tree.leaves(make(KEY, 7, rows, STEPS, 100)) for make in (draw, shuffled))
    np.testing.assert_allclose(traced, plain, rtol=1e-6)


def test_both_forms_have_one_law() -> None:
    """Steps of four places over three rows, drawn 6000 times: chi-square on all joint outcomes of two steps, at 1e-6.

    Step 0 sees every row, one of them twice; step 1 sees what that epoch left over, then two rows of the next.
    """
    keys = jax.random.split(jax.random.key(1), 6000)
    weights = np.asarray(jax.jit(jax.vmap(lambda key: shuffled(key, 3, 3, 3, 4).weights))(keys))
    rows = np.asarray(jax.jit(jax.vmap(lambda key: shuffled(key, 3, 5, 3, 4).rows))(keys))
    weighted = np.round(4 * weights).astype(int)
    indexed = (rows[..., None] == np.arange(3)).sum(axis=2)
    expected = {}
    for twice in range(3):
        for absent in range(3):  # the row that the next epoch keeps for step 2
            first = (1 + (row == twice) for row in range(3))
            second = ((row != twice) + (row != absent) for row in range(3))
            expected[(*first, *second)] = 6000 / 9
    for found in (weighted, indexed):
        seen = Counter(map(tuple, found[:, :2].reshape(6000, 6).tolist()))
        assert seen.keys() == expected.keys()
        assert stats.chisquare([seen[outcome] for outcome in expected], list(expected.values())).pvalue > 1e-6


def test_weights_give_the_gradient_of_the_repeated_rows() -> None:
    random = np.random.default_rng(2)
    x, y = random.normal(size=(3, 2)).astype(np.float32), np.array([0, 1, 1])
    params = random.normal(size=(2, 2)).astype(np.float32)

    @jax.jit
    @jax.grad
    def gradient(w: Array, rows: Array | None, share: Array) -> Array:
        return (share * cross_entropy(take(rows, x) @ w, take(rows, y))).sum()

    batches = draw(KEY, 3, 3, 4, 10)
    for step in range(4):
        rows, share = batches.at(step)
        assert rows is None
        again = np.repeat(np.arange(3), np.round(10 * np.asarray(share)).astype(int))
        repeated = gradient(params, again, np.full(10, 0.1, np.float32))
        np.testing.assert_allclose(gradient(params, None, share), repeated, rtol=1e-5, atol=1e-6)


def test_shares_sum_to_one() -> None:
    for rows in (100, 1000):
        _, share = draw(KEY, 30, rows, STEPS, 100).at(1)
        assert float(share.sum()) == pytest.approx(1)
