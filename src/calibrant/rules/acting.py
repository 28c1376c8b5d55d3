"""Which arm to play, from what some worlds say of every arm's expected reward.

A rule wants `worlds` worlds and turns their values [worlds, arms] into a priority [arms]; the highest is played, equal
ones by lot. Thompson, "On the likelihood that one unknown probability exceeds another", Biometrika 1933: one world,
taken for the truth. Upper confidence bounds add `bonus` standard deviations over the worlds to their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from calibrant.nets.trees import static, tree
from calibrant.types import Array, CalibrantError, Key


class ActingRule(Protocol):
    @property
    def worlds(self) -> int: ...  # 0: needs none
    def __call__(self, key: Key, values: Array) -> Array: ...


@tree
@dataclass(frozen=True)
class Thompson:
    """The best arm of one world drawn from the belief."""

    worlds: int = static(1)

    def __call__(self, key: Key, values: Array) -> Array:
        return values[0]


@tree
@dataclass(frozen=True)
class Greedy:
    """The arm that is best on average over the worlds."""

    worlds: int = static(10)

    def __call__(self, key: Key, values: Array) -> Array:
        return values.mean(axis=0)


@tree
@dataclass(frozen=True)
class EpsilonGreedy:
    """Greedy, but for a share of steps that play any arm."""

    epsilon: Any = 0.05
    worlds: int = static(10)

    def __call__(self, key: Key, values: Array) -> Array:
        return jnp.where(jax.random.uniform(key) < self.epsilon, 0.0, values.mean(axis=0))


@tree
@dataclass(frozen=True)
class Ucb:
    """Mean plus `bonus` standard deviations over the worlds."""

    bonus: Any = 1.0
    worlds: int = static(10)

    def __call__(self, key: Key, values: Array) -> Array:
        return values.mean(axis=0) + self.bonus * values.std(axis=0)


@tree
@dataclass(frozen=True)
class Anything:
    """Every arm with equal chance, whatever the belief: the control."""

    worlds: int = static(0)

    def __call__(self, key: Key, values: Array) -> Array:
        return jnp.zeros(values.shape[-1])


def make_rule(name: str, looks: int, epsilon: float, bonus: float) -> ActingRule:
    """A rule by its name; `looks` is the number of worlds that a mean is taken over."""
    rules: dict[str, ActingRule] = {
        "thompson": Thompson(),
        "greedy": Greedy(looks),
        "epsilon": EpsilonGreedy(epsilon, looks),
        "ucb": Ucb(bonus, looks),
        "uniform": Anything(),
    }
    if name not in rules:
        raise CalibrantError(f"unknown rule '{name}': it should be one of {', '.join(rules)}")
    return rules[name]


def highest(key: Key, priority: Array) -> Array:
    """The place of the largest priority; equal ones have equal chances."""
    ties = priority == priority.max()
    wanted = jnp.floor(jax.random.uniform(key) * ties.sum())
    return jnp.argmax(jnp.cumsum(ties) > wanted)
