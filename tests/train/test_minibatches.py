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


def counts(size: int, rows: int, batch: int = 100, steps: int = STEPS) -> Array:
    """How often each step sees each row, [steps, rows], from either form."""
    batches = shuffled(KEY, size, rows, steps, batch)
    assert batches.steps == steps
    if batches.rows is None:
        weighted = np.asarray(batches.weights, np.float64) * batch
        np.testing.assert_allclose(weighted, np.round(weighted), atol=1e-4)
        return np.round(weighted).astype(int)
    return np.stack([np.bincount(row, minlength=rows) for row in np.asarray(batches.rows)])


@pytest.mark.parametrize(("size", "rows"), [
    (1, 1), (3, 3), (3, 10), (10, 10), (30, 30), (30, 100), (100, 100),  # weights
    (3, 101), (30, 120), (100, 300), (300, 300), (1000, 1000),  # indices
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
    weights = shuffled(KEY, 10, 10, STEPS, 100).weights
    np.testing.assert_array_equal(weights, np.full((STEPS, 10), np.float32(0.1)))
    padded = np.asarray(shuffled(KEY, 10, 100, STEPS, 100).weights)
    np.testing.assert_array_equal(padded, np.pad(weights, ((0, 0), (0, 90))))


@pytest.mark.parametrize("size", [3, 30])
def test_ragged_batches(size: int) -> None:
    found = counts(size, size)
    assert set(np.unique(found)) == {100 // size, 100 // size + 1}
    assert len({tuple(row) for row in found}) > 1  # the larger share goes round


@pytest.mark.parametrize("size", [3, 7, 250])
def test_indices_are_one_permutation_after_another(size: int) -> None:
    rows = np.asarray(shuffled(KEY, size, 300, STEPS, 100).rows).ravel()
    epochs = rows[: len(rows) // size * size].reshape(-1, size)
    np.testing.assert_array_equal(np.sort(epochs, axis=1), np.tile(np.arange(size), (len(epochs), 1)))
    assert len({tuple(epoch) for epoch in epochs}) > 1


def test_size_may_be_traced() -> None:
    for rows in (10, 200):
        traced = jax.jit(lambda size, rows=rows: shuffled(KEY, size, rows, 5, 100))(7)
        plain = shuffled(KEY, 7, rows, 5, 100)
        for one, other in zip(jax.tree.leaves(traced), jax.tree.leaves(plain), strict=True):
            np.testing.assert_array_equal(one, other)


def test_both_forms_have_one_law() -> None:
    """Two steps of four places over three rows, drawn 6000 times: chi-square on all joint outcomes, at 1e-6 each.

    Step 0 sees every row and one of them twice; step 1 sees what that epoch left over, then two rows of the next.
    """
    keys = jax.random.split(jax.random.key(1), 6000)
    weights = np.asarray(jax.jit(jax.vmap(lambda key: shuffled(key, 3, 3, 2, 4).weights))(keys))
    rows = np.asarray(jax.jit(jax.vmap(lambda key: shuffled(key, 3, 5, 2, 4).rows))(keys))
    weighted = Counter(tuple(map(int, outcome)) for outcome in np.round(4 * weights).reshape(6000, 6))
    indexed = Counter(tuple(((row[:, :, None] == np.arange(3)).sum(axis=1)).ravel().tolist()) for row in rows)
    expected = {}
    for twice in range(3):
        for absent in range(3):  # the row that step 1 sees only from the first of its two epochs, if at all
            first = [1 + (row == twice) for row in range(3)]
            second = [(row != twice) + (row != absent) for row in range(3)]
            expected[(*first, *second)] = 6000 / 9
    for found in (weighted, indexed):
        assert found.keys() == expected.keys()
        assert stats.chisquare([found[outcome] for outcome in expected], list(expected.values())).pvalue > 1e-6


def test_weights_give_the_gradient_of_the_repeated_rows() -> None:
    random = np.random.default_rng(2)
    x, y = random.normal(size=(3, 2)).astype(np.float32), np.array([0, 1, 1])
    params = random.normal(size=(2, 2)).astype(np.float32)
    batches = shuffled(KEY, 3, 3, 4, 10)
    for step in range(4):
        rows, share = batches.at(step)
        again = np.repeat(np.arange(3), np.round(10 * np.asarray(share)).astype(int))
        assert len(again) == 10
        weighted = jax.grad(
            lambda w, rows=rows, share=share: (share * cross_entropy(take(rows, x) @ w, take(rows, y))).sum()
        )
        repeated = jax.grad(lambda w, again=again: cross_entropy(x[again] @ w, y[again]).mean())
        np.testing.assert_allclose(weighted(params), repeated(params), rtol=1e-5, atol=1e-6)


def test_shares_sum_to_one() -> None:
    for rows in (30, 300):
        _, share = shuffled(KEY, 30, rows, 3, 100).at(1)
        assert float(share.sum()) == pytest.approx(1)
