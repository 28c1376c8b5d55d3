"""The ring keeps the latest observations, and minibatches are seeded and uniform."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from calibrant.play.replay import Replay, draw, empty, push


def filled(capacity: int, observations: int) -> Replay:
    ring = empty(capacity)
    for step in range(observations):
        value = jnp.asarray(step)
        ring = push(ring, value, value, value % 3, (value % 2).astype(jnp.float32))
    return ring


def test_the_oldest_makes_room() -> None:
    ring = filled(4, 6)
    assert sorted(np.asarray(ring.rows).tolist()) == [2, 3, 4, 5]
    at = np.argsort(ring.rows)
    assert np.asarray(ring.arms)[at].tolist() == [2, 0, 1, 2]
    assert np.asarray(ring.rewards)[at].tolist() == [0, 1, 0, 1]


def test_what_was_never_observed_is_never_drawn() -> None:
    batch = draw(filled(100, 3), jax.random.key(0), jnp.asarray(3), 64)
    assert set(np.asarray(batch.rows).tolist()) == {0, 1, 2}


def test_draws_are_uniform_over_what_is_kept() -> None:
    """Chi-squared over 20,000 draws of a full ring; false alarm once in 10,000."""
    batch = draw(filled(8, 13), jax.random.key(5), jnp.asarray(13), 20_000)
    counts = np.bincount(np.asarray(batch.rows), minlength=13)
    assert counts[:5].sum() == 0
    assert stats.chisquare(counts[5:]).pvalue > 1e-4


def test_draws_follow_from_the_key() -> None:
    ring, seen = filled(50, 50), jnp.asarray(50)
    first, again, other = (draw(ring, jax.random.key(seed), seen, 32).rows for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()
