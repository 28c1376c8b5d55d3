"""The compiled loop against the same arithmetic done step by step, in groups or not, padded or not."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from calibrant.nets.mlp import Mlp
from calibrant.train import loop
from calibrant.train.minibatches import shuffled
from calibrant.types import Array, Data, Facts

KEY = jax.random.key(0)
NETWORK = Mlp((2, 4, 2))
STEPS = 15


def data(rows: int, padding: int = 0) -> Data:
    """Labelled inputs; padding is loud enough to be heard if anyone listened to it."""
    random = np.random.default_rng(rows)
    x, y = random.normal(size=(rows, 2)), random.integers(2, size=rows)
    x, y = np.concatenate([x, np.full((padding, 2), 50.0)]), np.concatenate([y, np.ones(padding, int)])
    return Data(x.astype(np.float32), y.astype(np.int32))


def facts(rows: int) -> Facts:
    return Facts(inputs=2, classes=2, train_size=rows, temperature=0.1, hidden=(4,))


@functools.cache
def births(members: int) -> Any:
    return jax.jit(jax.vmap(NETWORK.init))(jax.random.split(jax.random.key(1), members))


def close(one: Any, other: Any, rtol: float = 1e-4) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-5)


def trained(train: Data, known: Facts, members: int, **more: Any) -> Any:
    """Fifteen steps, as one compiled program."""

    def program(params: Any) -> Any:
        return loop.train_members(KEY, NETWORK, params, train, known, l2=0.01, steps=STEPS, batch=20, lr=0.05, **more)

    return jax.jit(program)(births(members))


# --- Adam --------------------------------------------------------------------------------------------------


def test_descend_against_optax_and_against_the_textbook() -> None:
    def loss(params: dict[str, Array], step: Array) -> Array:
        return ((params["a"] - 3 + 0.1 * step) ** 2).sum() + jnp.cos(params["b"]).sum()

    start = {"a": jnp.array([1.0, -2.0]), "b": jnp.array(0.3)}
    found = jax.jit(lambda params: loop.descend(loss, params, 6, 0.1))(start)

    optimiser, params = optax.adam(0.1), start
    state = optimiser.init(params)
    update = jax.jit(lambda params, state, step: optimiser.update(jax.grad(loss)(params, step), state))
    moments = {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in start.items()}
    textbook = {name: np.asarray(value, np.float64) for name, value in start.items()}
    for step in range(6):
        slope = {"a": 2 * (textbook["a"] - 3 + 0.1 * step), "b": -np.sin(textbook["b"])}
        for name, g in slope.items():
            m, v = (0.9 * moments[name][0] + 0.1 * g, 0.999 * moments[name][1] + 0.001 * g**2)
            moments[name] = m, v
            corrected = m / (1 - 0.9 ** (step + 1)), v / (1 - 0.999 ** (step + 1))
            textbook[name] = textbook[name] - 0.1 * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
        updates, state = update(params, state, step)
        params = optax.apply_updates(params, updates)
    close(found, params, rtol=1e-5)
    close(found, textbook, rtol=1e-4)


@pytest.mark.parametrize(("rows", "group"), [(7, 2), (50, 32)])
def test_members_against_a_python_loop(rows: int, group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss written out for one member at a time; minibatches held as weights and in two groups, or as indices."""
    monkeypatch.setattr(loop, "GROUP", group)
    train, known, members, batch, l2 = data(rows), facts(rows), 3, 20, 0.01
    random = np.random.default_rng(3)
    offsets = random.normal(size=(members, rows, 2)).astype(np.float32)
    emphasis = random.uniform(0, 2, size=(members, rows)).astype(np.float32)
    found = trained(train, known, members, offsets=jnp.asarray(offsets), emphasis=jnp.asarray(emphasis))

    order, start = jax.random.split(KEY)
    batches = jax.jit(lambda key: shuffled(key, rows, rows, STEPS, batch))(order)
    first = jax.random.randint(start, (members,), 0, STEPS)
    if batches.rows is None:
        counts = np.asarray(batches.weights)
    else:
        counts = np.stack([np.bincount(row, minlength=rows) for row in np.asarray(batches.rows)]) / batch

    def loss(params: Any, share: Array, offset: Array, weight: Array) -> Array:
        logp = jax.nn.log_softmax(NETWORK(params, train.x) + offset)
        fit = -(share * weight * logp[jnp.arange(rows), train.y]).sum()
        return fit + l2 * sum((leaf**2).sum() for leaf in jax.tree.leaves(params))

    optimiser = optax.adam(0.05)

    @jax.jit
    def advance(params: Any, state: Any, *batch: Array) -> Any:
        updates, state = optimiser.update(jax.grad(loss)(params, *batch), state)
        return optax.apply_updates(params, updates), state

    for member in range(members):
        params = jax.tree.map(lambda leaf, member=member: np.asarray(leaf)[member], births(members))
        state = optimiser.init(params)
        for step in range(STEPS):
            share = counts[(step + int(first[member])) % STEPS]
            params, state = advance(params, state, share, offsets[member], emphasis[member])
        close(jax.tree.map(lambda leaf, member=member: np.asarray(leaf)[member], found), params, rtol=1e-3)


# --- groups ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 32, 33, 64, 97])
def test_groups_are_only_a_way_of_walking(count: int) -> None:
    random = np.random.default_rng(count)
    members = (random.normal(size=(count, 3)).astype(np.float32), {"b": np.arange(count)}, None)

    def function(member: Any) -> Any:
        values, named, nothing = member
        assert nothing is None
        return values.sum() + named["b"], values * 2

    close(loop.in_groups(function, members, count), jax.vmap(function)(members), rtol=1e-6)


# --- padding -----------------------------------------------------------------------------------------------


def test_padding_is_not_heard() -> None:
    """With 5 rows every batch of 20 is the whole data, so weights and indices agree, the size traced or not."""
    bare = trained(data(5), facts(5), 2)
    close(trained(data(5, 40), facts(5), 2), bare)
    traced = jax.jit(lambda size: trained(data(5, 3), Facts(2, 2, size, 0.1, (4,)), 2))(5)
    close(traced, bare)
