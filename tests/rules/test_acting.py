"""Rules turn what worlds say into an arm: ties by lot, explorers explore as often as they say."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calibrant.rules.acting import EpsilonGreedy, Greedy, Thompson, Ucb, highest, make_rule
from calibrant.types import CalibrantError

KEY = jax.random.key(0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=12), st.integers(0, 2**31 - 1))
def test_the_highest_priority_is_played(priority: list[float], seed: int) -> None:
    place = int(highest(jax.random.key(seed), jnp.array(priority)))
    assert priority[place] == max(priority)


def test_equal_priorities_have_equal_chances() -> None:
    """Chi-squared over 3000 draws of three tied arms; false alarm once in 10,000."""
    priority = jnp.array([0.2, 0.7, 0.7, 0.1, 0.7])
    drawn = jax.vmap(lambda key: highest(key, priority))(jax.random.split(KEY, 3000))
    counts = np.bincount(np.asarray(drawn), minlength=5)
    assert counts[0] == counts[3] == 0
    assert stats.chisquare(counts[[1, 2, 4]]).pvalue > 1e-4


def test_thompson_takes_one_world_and_greedy_the_mean() -> None:
    values = jnp.array([[0.1, 0.9, 0.2], [0.8, 0.0, 0.3]])
    assert Thompson().worlds == 1
    assert np.argmax(Thompson()(KEY, values)) == 1
    np.testing.assert_allclose(Greedy(2)(KEY, values), [0.45, 0.45, 0.25], rtol=1e-6)


def test_upper_confidence_adds_standard_deviations() -> None:
    values = np.random.default_rng(0).uniform(size=(7, 4)).astype(np.float32)
    expected = values.mean(axis=0) + 2 * values.std(axis=0)
    np.testing.assert_allclose(Ucb(2.0, 7)(KEY, jnp.asarray(values)), expected, rtol=1e-5)


def test_epsilon_explores_as_often_as_it_says() -> None:
    """Binomial test of 4000 draws at epsilon 0.3; false alarm once in 10,000."""
    values = jnp.array([[0.1, 0.9]])
    rule = EpsilonGreedy(0.3, 1)
    explored = jax.vmap(lambda key: (rule(key, values) == 0).all())(jax.random.split(KEY, 4000))
    assert stats.binomtest(int(explored.sum()), 4000, 0.3).pvalue > 1e-4


def test_an_unknown_rule_is_one_sentence() -> None:
    with pytest.raises(CalibrantError, match="unknown rule 'best': it should be one of thompson, greedy"):
        make_rule("best", 1, 0.1, 1.0)
