"""Tuples: which inputs are asked together, and how often."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from calibrant.problems.tuples import family_name, iid_tuples, polyadic_tuples
from calibrant.seeds import Stream


def test_iid_tuples_share_inputs_between_orders() -> None:
    one, three = iid_tuples(4, 1, 5), iid_tuples(4, 3, 5, start=100)
    assert one.anchors.tolist() == [[0], [5], [10], [15]]
    assert three.anchors.tolist() == [[100, 101, 102], [105, 106, 107], [110, 111, 112], [115, 116, 117]]
    assert (three.repeats == 1).all()
    assert (one.name, one.tau, three.tau) == ("", 1, 3)


@pytest.mark.parametrize("kappa", [1, 2, 3, 7])
def test_every_polyadic_tuple_asks_tau_times(kappa: int) -> None:
    family = polyadic_tuples(Stream("sum", kappa), 500, 10, kappa, start=30)
    assert family.repeats.shape == family.anchors.shape == (500, kappa)
    assert (family.repeats.sum(axis=1) == 10).all()
    assert (family.repeats >= 0).all()
    np.testing.assert_array_equal(family.anchors.ravel(), 30 + np.arange(500 * kappa))  # each its own inputs


def test_names() -> None:
    assert [family_name(kappa) for kappa in (1, 2, 3, 10)] == ["kappa1", "dyadic", "kappa3", "kappa10"]


def test_dyads_are_binomial() -> None:
    """Chi-square at 1e-6."""
    repeats = polyadic_tuples(Stream("dyads"), 20_000, 10, 2).repeats[:, 0]
    expected = 20_000 * stats.binom.pmf(np.arange(11), 10, 0.5)
    assert stats.chisquare(np.bincount(repeats, minlength=11), expected).pvalue > 1e-6


def test_triads_are_multinomial() -> None:
    """Chi-square over all 15 outcomes of four places among three anchors, at 1e-6."""
    counts = Counter(map(tuple, polyadic_tuples(Stream("triads"), 20_000, 4, 3).repeats.tolist()))
    outcomes = [(a, b, 4 - a - b) for a in range(5) for b in range(5 - a)]
    expected = [20_000 * stats.multinomial.pmf(outcome, 4, [1 / 3] * 3) for outcome in outcomes]
    assert sum(counts[outcome] for outcome in outcomes) == 20_000
    assert stats.chisquare([counts[outcome] for outcome in outcomes], expected).pvalue > 1e-6
