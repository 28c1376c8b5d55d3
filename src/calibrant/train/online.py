"""Learning while playing: agents that take a gradient step per observation.

A `Learner` is an agent between two observations, as pure functions of arrays. What is trained and what was fixed at
birth are two trees; what follows of an input from the fixed part alone, such as a prior function's value, is noted
once per row of the game's table and never computed again. A world is one coherent function, as everywhere.

Osband et al., "The Neural Testbed", NeurIPS 2022, appendix E.2: the penalty on the weights is annealed as strength / t,
where t counts observations. `decay` holds the strength by name, because the paper and its code differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from calibrant.train.likelihoods import sum_of_squares
from calibrant.types import Array, CalibrantError, Facts, Key

Likelihood = Callable[[Array], Array]  # logits [batch, classes] -> negative log-likelihood of what was observed [batch]
Loss = tuple[Array, Array]  # the mean negative log-likelihood, and the penalty that `decay` is the strength of


@dataclass(frozen=True)
class Seen:
    """What has been observed so far, for agents whose spread depends on it."""

    x: Array  # [rows, inputs] the game's table
    counts: Array  # [rows, 2] how often each row was observed without and with a reward


class Learner(Protocol):
    """An agent that learns step by step."""

    @property
    def atoms(self) -> int | None: ...  # size of a finite support, which is enumerated; None: sampled
    @property
    def decay(self) -> Mapping[str, Any]: ...  # strength of the penalty, by form
    def init(self, key: Key) -> tuple[Any, Any]: ...  # trained, fixed
    def notes(self, fixed: Any, x: Array) -> Any: ...  # leaves [rows, ...]
    def loss(self, trained: Any, fixed: Any, key: Key, x: Array, notes: Any, nll: Likelihood) -> Loss: ...
    def worlds(self, trained: Any, fixed: Any, key: Key, n: int, seen: Seen) -> Any: ...  # leaves [n, ...]
    def answer(self, world: Any, fixed: Any, x: Array, notes: Any) -> Array: ...  # logits [batch, classes]


def weight_decay(l2: Array, facts: Facts, networks: int = 1) -> dict[str, Any]:
    """The paper's 2 l2 sqrt(temperature), and its code's 2 l2 temperature divided by the networks of an ensemble."""
    beta = facts.temperature
    return {"paper": 2 * l2 * jnp.sqrt(beta), "code": 2 * l2 * beta / networks}


def no_bootstrap(form: str) -> None:
    if form != "none":
        raise CalibrantError(f"an agent that learns while it plays has no bootstrap={form}: say bootstrap=none")


@dataclass(frozen=True)
class Told:
    """One known function that nothing changes: what control agents believe."""

    function: Callable[[Array], Array]  # inputs [rows, inputs] -> logits [rows, classes]; called once, at all rows
    atoms: int = 1

    @property
    def decay(self) -> Mapping[str, Any]:
        return {"paper": 0.0, "code": 0.0}

    def init(self, key: Key) -> tuple[Any, Any]:
        return (), ()

    def notes(self, fixed: Any, x: Array) -> Any:
        return self.function(x)

    def loss(self, trained: Any, fixed: Any, key: Key, x: Array, notes: Any, nll: Likelihood) -> Loss:
        return jnp.zeros(()), jnp.zeros(())

    def worlds(self, trained: Any, fixed: Any, key: Key, n: int, seen: Seen) -> Any:
        return jnp.zeros(1)

    def answer(self, world: Any, fixed: Any, x: Array, notes: Any) -> Array:
        return jnp.asarray(notes)


@dataclass(frozen=True)
class Members:
    """Networks that learn from the same minibatches, each with its own birth and, if given, its own prior function.

    Their losses are added, so that each member's gradient is what it would be alone.
    """

    network: Any  # init(key); called with a member's parameters
    size: int
    decay: Mapping[str, Any]
    prior: Any = None  # init(key); called with what it fixed
    scale: Any = 0.0  # of the prior functions

    @property
    def atoms(self) -> int:
        return self.size

    def init(self, key: Key) -> tuple[Any, Any]:
        birth, fixing = jax.random.split(key)
        members = jax.vmap(self.network.init)(jax.random.split(birth, self.size))
        if self.prior is None:
            return members, ()
        return members, jax.vmap(self.prior.init)(jax.random.split(fixing, self.size))

    def notes(self, fixed: Any, x: Array) -> Any:
        """The prior functions' values, [rows, members, classes]."""
        if self.prior is None:
            return ()
        return self.scale * jnp.moveaxis(jax.vmap(self.prior, (0, None))(fixed, x), 0, 1)

    def loss(self, trained: Any, fixed: Any, key: Key, x: Array, notes: Any, nll: Likelihood) -> Loss:
        logits = jax.vmap(self.network, (0, None))(trained, x)
        if self.prior is not None:
            logits += jnp.moveaxis(notes, 1, 0)
        return jax.vmap(nll)(logits).mean(axis=1).sum(), sum_of_squares(trained)

    def worlds(self, trained: Any, fixed: Any, key: Key, n: int, seen: Seen) -> Any:
        """All members when n reaches their number, else n of them drawn without replacement."""
        if n >= self.size:
            chosen = jnp.arange(self.size)
        elif n == 1:
            chosen = jax.random.randint(key, (1,), 0, self.size)
        else:
            chosen = jax.random.choice(key, self.size, (n,), replace=False)
        return jax.tree.map(lambda leaf: leaf[chosen], trained), chosen

    def answer(self, world: Any, fixed: Any, x: Array, notes: Any) -> Array:
        params, member = world
        logits: Array = self.network(params, x)
        return logits if self.prior is None else logits + notes[:, member]


@dataclass(frozen=True)
class Law:
    """A law of networks: every step draws fresh worlds and averages their loss on one minibatch."""

    birth: Callable[[Key], tuple[Any, Any]]  # trained, fixed
    draw: Callable[[Any, Any, Key], Any]  # trained, fixed, key -> a world's parameters
    network: Callable[[Any, Array], Array]
    penalty: Callable[[Any, Any], Array]  # of what is trained and of the step's worlds, leaves [draws, ...]
    draws: int
    decay: Mapping[str, Any]

    @property
    def atoms(self) -> None:
        return None

    def init(self, key: Key) -> tuple[Any, Any]:
        return self.birth(key)

    def notes(self, fixed: Any, x: Array) -> Any:
        return ()

    def loss(self, trained: Any, fixed: Any, key: Key, x: Array, notes: Any, nll: Likelihood) -> Loss:
        drawn = jax.vmap(lambda k: self.draw(trained, fixed, k))(jax.random.split(key, self.draws))
        losses = jax.vmap(lambda world: nll(self.network(world, x)))(drawn)
        return losses.mean(), self.penalty(trained, drawn)

    def worlds(self, trained: Any, fixed: Any, key: Key, n: int, seen: Seen) -> Any:
        return jax.vmap(lambda k: self.draw(trained, fixed, k))(jax.random.split(key, n))

    def answer(self, world: Any, fixed: Any, x: Array, notes: Any) -> Array:
        return self.network(world, x)
