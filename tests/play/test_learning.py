"""What follows an observation: Adam on the mean loss of a minibatch plus a penalty that observations wear off."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from calibrant.agents.mlp import Mlp
from calibrant.play.learning import Position, Schooling, begin, imagine, learn
from calibrant.play.replay import Replay, draw
from calibrant.train.likelihoods import cross_entropy, sum_of_squares
from calibrant.types import Facts

FACTS = Facts(3, 2, 0, 0.1)
TABLE = jnp.asarray(np.random.default_rng(0).normal(size=(10, 3)), jnp.float32)
RING = Replay(jnp.arange(10), jnp.ones(10, jnp.int32), (jnp.arange(10) % 2).astype(jnp.float32))
KEY = jax.random.key(1)


def start(schooling: Schooling) -> tuple[Any, Position]:
    learner = Mlp(l2=0.5).online(FACTS)
    return learner, jax.jit(functools.partial(begin, learner, schooling, TABLE))(KEY)


@pytest.mark.parametrize("decay, strength", [("paper", 2 * 0.5 * 0.1**0.5), ("code", 2 * 0.5 * 0.1)])
@pytest.mark.parametrize("observed", [1, 10])
def test_a_step_is_adam_on_the_annealed_loss(decay: str, strength: float, observed: int) -> None:
    """Against the same step written out: cross-entropy of a label plus strength / t times the sum of squares."""
    schooling = Schooling(lr=0.01, batch=6, capacity=10, decay=decay)
    learner, position = start(schooling)
    found = learn(learner, schooling, position.pupil, KEY, RING, jnp.int32(observed), TABLE, ())
    batch = draw(RING, jax.random.split(KEY)[0], jnp.int32(observed), 6)

    def loss(trained: Any) -> Any:
        logits = learner.answer((jax.tree.map(lambda leaf: leaf[0], trained), 0), (), TABLE[batch.rows], ())
        nll = cross_entropy(logits, batch.rewards.astype(jnp.int32)).mean()
        return nll + strength / observed * sum_of_squares(trained)

    born = position.pupil.trained
    updates, _ = optax.adam(0.01).update(jax.grad(loss)(born), optax.adam(0.01).init(born))
    for one, other in zip(
        jax.tree.leaves(found.trained), jax.tree.leaves(optax.apply_updates(born, updates)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_several_updates_are_steps_one_after_another() -> None:
    several, single = Schooling(batch=4, capacity=10, updates=3), Schooling(batch=4, capacity=10)
    learner, position = start(several)
    found = learn(learner, several, position.pupil, KEY, RING, jnp.int32(10), TABLE, ())
    pupil = position.pupil
    for key in jax.random.split(KEY, 3):
        pupil = learn(learner, single, pupil, key, RING, jnp.int32(10), TABLE, ())
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(pupil), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_game_begins_with_nothing_observed() -> None:
    learner, position = start(Schooling(capacity=7))
    assert position.replay.capacity == 7 and not np.asarray(position.counts).any()
    assert len(jax.tree.leaves(imagine(learner, position, TABLE, KEY, 5))[0]) == 1  # one network is one world
