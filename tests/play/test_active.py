"""Active learning: whom a rule asks for, that none is asked for twice, and that labels asked for are learned."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from calibrant import registry
from calibrant.agents.mlp import Mlp
from calibrant.agents.uniform import Uniform
from calibrant.play.active import Pool, acquire, ask
from calibrant.play.learning import Position, Schooling, begin
from calibrant.rules.priorities import PRIORITIES
from calibrant.types import Array, Facts

FACTS = Facts(2, 2, 0, 0.1)
SCHOOLING = Schooling(capacity=64, batch=16, updates=3, lr=1e-2)
ROWS = 24
TABLE = jnp.asarray(np.random.default_rng(0).normal(size=(ROWS, 2)), jnp.float32)
POOL = Pool(TABLE, (TABLE[:, 0] > 0).astype(jnp.int32))  # learnt from few labels
KEY = jax.random.key(3)
FEW = "ensemble?size=3&l2=0.01"


@functools.cache
def programs(agent: str, priority: str) -> tuple[Callable[..., Position], Callable[..., Position]]:
    learner = registry.resolve("agents", agent).online(FACTS)
    go_on = functools.partial(acquire, learner, SCHOOLING, priority, 8, POOL)
    return jax.jit(functools.partial(begin, learner, SCHOOLING, TABLE)), jax.jit(go_on)


def asked(agent: str, priority: str, stretches: tuple[int, ...]) -> Position:
    """Where the game stands after stretches of labels that end at these numbers."""
    start, go_on = programs(agent, priority)
    position, first = start(KEY), 0
    for last in stretches:
        position, first = go_on(KEY, position, jnp.int32(first), jnp.int32(last)), last
    return position


@pytest.mark.parametrize("priority", PRIORITIES)
def test_no_candidate_is_asked_for_twice(priority: str) -> None:
    """Not even when all are asked for; and every label is the candidate's own."""
    position = asked(FEW, priority, (ROWS,))
    assert np.asarray(position.counts).sum(axis=1).tolist() == [1] * ROWS
    rows = np.asarray(position.replay.rows)[:ROWS]
    assert sorted(rows.tolist()) == list(range(ROWS))
    np.testing.assert_array_equal(np.asarray(position.replay.arms)[:ROWS], np.asarray(POOL.labels)[rows])


def test_stretches_do_not_matter() -> None:
    whole, parts = (asked(FEW, "bald", ends) for ends in ((12,), (1, 5, 12)))
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(parts), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_who_asks_at_random_asks_for_all_alike() -> None:
    """Chi-squared over the first candidates of 2400 games; false alarm once in 10,000."""
    learner = Uniform().online(FACTS)

    def first(key: Any) -> Array:
        start = begin(learner, SCHOOLING, TABLE, key)
        return acquire(learner, SCHOOLING, "uniform", 2, POOL, key, start, jnp.int32(0), jnp.int32(1)).replay.rows[0]

    rows = np.asarray(jax.vmap(first)(jax.random.split(KEY, 2400)))
    assert stats.chisquare(np.bincount(rows, minlength=ROWS)).pvalue > 1e-4


def test_entropy_asks_where_the_network_is_least_sure() -> None:
    """The first candidate is the one whose prediction at birth is nearest to one half."""
    learner = Mlp().online(FACTS)
    start = begin(learner, SCHOOLING, TABLE, KEY)
    sure = np.abs(np.exp(np.asarray(ask(learner, 1, POOL, KEY, start, TABLE))[0, :, 1]) - 0.5)
    row = int(asked("mlp", "entropy", (1,)).replay.rows[0])
    assert sure[row] == pytest.approx(sure.min(), abs=1e-5)


def test_answers_are_log_probabilities_that_improve_with_labels() -> None:
    """Accuracy on fresh inputs of an easy rule: about a half with one label, nearly all with every label."""
    x = jnp.asarray(np.random.default_rng(5).normal(size=(200, 2)), jnp.float32)
    answers = jax.jit(functools.partial(ask, registry.resolve("agents", FEW).online(FACTS), 8, POOL, KEY))
    right = []
    for ends in ((1,), (ROWS,)):
        logp = np.asarray(answers(asked(FEW, "uniform", ends), x))
        assert logp.shape == (3, 200, 2)
        np.testing.assert_allclose(np.exp(logp).sum(axis=-1), 1, rtol=1e-5)
        right.append(((np.exp(logp).mean(axis=0)[:, 1] > 0.5) == np.asarray(x[:, 0] > 0)).mean())
    assert right[1] > 0.9 > right[0]
