"""Beliefs made of networks: a finite support is enumerated, a law is sampled, a world is one function."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from calibrant.protocols import Belief, Worlds
from calibrant.train import beliefs as subject
from calibrant.train.beliefs import DrawnWorlds, FiniteBelief, SampledBelief
from calibrant.types import Array, Key

X = np.linspace(-1, 1, 5, dtype=np.float32)[:, None]


def line(slope: Array, x: Array) -> Array:
    return x * jnp.stack([slope, -slope])


def draw(scale: Array, key: Key) -> Array:
    return scale * jax.random.normal(key)


def test_finite_support_is_enumerated() -> None:
    belief = FiniteBelief(jnp.arange(4.0), line)
    assert isinstance(belief, Belief)
    assert belief.atoms == 4
    for n in (4, 5, 1000):
        worlds = belief.worlds(jax.random.key(0), n)
        assert isinstance(worlds, Worlds)
        assert worlds.weights is None
        np.testing.assert_allclose(worlds(X)[:, -1, 0], np.arange(4))


def test_fewer_worlds_than_atoms_are_drawn_without_replacement() -> None:
    belief = FiniteBelief(jnp.arange(50.0), line)
    ask = jax.jit(lambda key: belief.worlds(key, 20)(X)[:, -1, 0])
    drawn = [np.asarray(ask(jax.random.key(seed))) for seed in range(2)]
    for atoms in drawn:
        assert len(set(atoms.tolist())) == 20
    assert set(drawn[0]) != set(drawn[1])


def test_sampled_worlds_are_fresh_and_reproducible() -> None:
    belief = SampledBelief(jnp.array(2.0), draw, line)
    assert isinstance(belief, Belief)
    assert belief.atoms is None
    ask = jax.jit(lambda key: belief.worlds(key, 30)(X))
    one, same, other = (np.asarray(ask(jax.random.key(seed))) for seed in (0, 0, 1))
    assert one.shape == (30, 5, 2)
    assert len(np.unique(one[:, -1, 0])) == 30
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.parametrize("belief", [FiniteBelief(jnp.arange(4.0), line), SampledBelief(jnp.array(2.0), draw, line)])
def test_beliefs_are_trees(belief: FiniteBelief | SampledBelief) -> None:
    """A cohort of beliefs is one tree with a leading axis."""
    pair = jax.tree.map(lambda leaf: jnp.stack([leaf, 10 * leaf]), belief)
    answers = np.asarray(jax.jit(jax.vmap(lambda one: one.worlds(jax.random.key(0), 4)(X)))(pair))
    np.testing.assert_allclose(answers[1], 10 * answers[0], rtol=1e-5)
    np.testing.assert_allclose(answers[0], belief.worlds(jax.random.key(0), 4)(X), rtol=1e-5)


def test_worlds_too_large_to_hold_are_drawn_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same worlds as when they are held, to the last group, which is not full; the same at every asking."""
    belief, key = SampledBelief(jnp.asarray(2.0), draw, line), jax.random.key(1)
    held = belief.worlds(key, 11)(X)
    monkeypatch.setattr(subject, "HELD", 4)
    worlds = belief.worlds(key, 11)
    assert isinstance(worlds, DrawnWorlds) and isinstance(worlds, Worlds) and worlds.side == 4
    np.testing.assert_allclose(worlds(X), held, rtol=1e-6)
    np.testing.assert_array_equal(worlds(X[:2]), worlds(X)[:, :2])
