"""The compiled training loop that all gradient-trained agents share: one `lax.scan` over the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from calibrant.train.likelihoods import cross_entropy, sum_of_squares
from calibrant.train.minibatches import shuffled, take
from calibrant.types import Array, Data, Facts, Key

GROUP = 32  # networks trained side by side: measured to be the most that stays in the cache of one core


def descend(loss: Callable[[Any, Array], Array], params: Any, steps: int, lr: Array) -> Any:
    """Adam (b1 0.9, b2 0.999, eps 1e-8, no schedule) on `loss(params, step)`."""
    optimiser = optax.adam(lr)
    gradient = jax.grad(loss)

    def advance(carry: tuple[Any, Any], step: Array) -> tuple[tuple[Any, Any], None]:
        params, state = carry
        updates, state = optimiser.update(gradient(params, step), state)
        return (optax.apply_updates(params, updates), state), None

    (params, _), _ = jax.lax.scan(advance, (params, optimiser.init(params)), jnp.arange(steps))
    return params


def train_members(
    key: Key,
    network: Callable[[Any, Array], Array],
    params: Any,  # leaves [members, ...]
    train: Data,
    facts: Facts,
    *,
    l2: Array,
    steps: int,
    batch: int,
    lr: Array,
    offsets: Array | None = None,  # [members, rows, classes] fixed logits added to each member's own
    emphasis: Array | None = None,  # [members, rows] weight of each row in each member's loss
) -> Any:
    """Train independent copies of a network on the same data, each on its own pass through the shuffled stream."""
    members = len(jax.tree.leaves(params)[0])
    order_key, start_key = jax.random.split(key)
    batches = shuffled(order_key, facts.train_size, len(train.x), steps, batch)
    starts = jax.random.randint(start_key, (members,), 0, steps)

    def train_one(member: tuple[Any, Array, Array | None, Array | None]) -> Any:
        params, start, offset, weight = member

        def loss(params: Any, step: Array) -> Array:
            rows, share = batches.at((step + start) % steps)
            logits = network(params, take(rows, train.x))
            if offset is not None:
                logits += take(rows, offset)
            if weight is not None:
                share *= take(rows, weight)
            return (share * cross_entropy(logits, take(rows, train.y))).sum() + l2 * sum_of_squares(params)

        return descend(loss, params, steps, lr)

    return in_groups(train_one, (params, starts, offsets, emphasis), members)


def train_sampled(
    key: Key,
    network: Callable[[Any, Array], Array],
    world: Callable[[Any, Key], Any],  # draws a world's parameters from what is trained
    params: Any,
    train: Data,
    facts: Facts,
    *,
    penalty: Callable[[Any, Any], Array],  # of what is trained, and the step's worlds, leaves [draws, ...]
    draws: int,
    steps: int,
    batch: int,
    lr: Array,
    emphasis: Callable[[Key], Array] | None = None,  # [rows] weight of each row in the loss of the world of that key
) -> Any:
    """Train a law of networks: every step draws fresh worlds and averages their cross-entropy on one minibatch."""
    order_key, world_key = jax.random.split(key)
    batches = shuffled(order_key, facts.train_size, len(train.x), steps, batch)

    def loss(params: Any, step: Array) -> Array:
        rows, share = batches.at(step)
        x, y = take(rows, train.x), take(rows, train.y)
        keys = jax.random.split(jax.random.fold_in(world_key, step), draws)
        drawn = jax.vmap(lambda k: world(params, k))(keys)
        nll = jax.vmap(lambda one: share * cross_entropy(network(one, x), y))(drawn)
        if emphasis is not None:
            nll *= jax.vmap(lambda k: take(rows, emphasis(k)))(keys)
        return nll.sum(axis=1).mean() + penalty(params, drawn)

    return descend(loss, params, steps, lr)


def in_groups(function: Callable[[Any], Any], members: Any, count: int) -> Any:
    """Map over members: side by side within a group that fits the cache, groups one after another.

    The last group is filled up with repeated members, whose results are dropped.
    """
    groups = -(-count // GROUP)
    side = -(-count // groups)
    if groups == 1:
        return jax.vmap(function)(members)
    filled = jnp.arange(groups * side) % count
    grouped = jax.tree.map(lambda leaf: leaf[filled].reshape(groups, side, *leaf.shape[1:]), members)
    done = jax.lax.map(jax.vmap(function), grouped)
    return jax.tree.map(lambda leaf: leaf.reshape(groups * side, *leaf.shape[2:])[:count], done)
