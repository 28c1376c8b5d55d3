"""What training minimises: the negative log-likelihood of labels, and penalties on the weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from calibrant.types import Array, Facts


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Negative log-likelihood of each label, [batch], by log-softmax: no underflow at any logit."""
    logp = jax.nn.log_softmax(logits, axis=-1)
    return -jnp.take_along_axis(logp, labels[:, None], axis=-1)[:, 0]


def sum_of_squares(params: Any) -> Array:
    """Over all trained parameters, biases included, without a factor 1/2 (the Neural Testbed's convention)."""
    return sum((leaf**2).sum() for leaf in jax.tree.leaves(params))


def l2_strength(l2: Array, form: str, facts: Facts) -> Array:
    """The factor before the sum of squares: `adaptive` is l2 sqrt(temperature) inputs / T, `fixed` is l2 / T."""
    scale = jnp.sqrt(facts.temperature) * facts.inputs if form == "adaptive" else 1.0
    return l2 * scale / facts.train_size
