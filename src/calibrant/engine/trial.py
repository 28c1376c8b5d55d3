"""One agent on one small instance: fitted and asked as in a run, but on arrays that can be looked at afterwards.

Native agents take JAX keys and are compiled, with training data padded to one size; all others take integers.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import seeds
from calibrant.adapters.answers import check_logits
from calibrant.adapters.callables import BlackBoxAgent, plain_data, plain_facts, plain_seed
from calibrant.protocols import Agent, Belief, Worlds
from calibrant.types import Array, CalibrantError, Data, Facts, Instance, Key

ASKED = 24  # inputs of the question that are used
WORLDS = 7


@dataclass(frozen=True)
class Trial:
    """A belief, some of its worlds, and what they answered."""

    belief: Belief
    worlds: Worlds
    logits: Array  # [worlds, batch, classes]


@dataclass(frozen=True)
class Bench:
    """An agent with everything it is tried on; `train` and `x` are fresh copies each time."""

    agent: Agent
    instance: Instance
    seed: int

    @property
    def train(self) -> Data:
        return plain_data(self.instance.train, self.instance.facts)

    @property
    def x(self) -> Array:
        return np.array(self.instance.question.x[:ASKED], np.float32)

    @property
    def native(self) -> bool:
        return bool(getattr(self.agent, "native", False))

    def key(self, purpose: str) -> Key:
        make = seeds.jax_key if self.native else seeds.child
        return make("check", self.seed, purpose)

    def fit(self, train: Data) -> Belief:
        """Fit on these very arrays, without the copies that protect them in a run."""
        key, facts = self.key("fit"), self._facts(train)
        if isinstance(self.agent, BlackBoxAgent):
            return self.agent.fit_given(plain_seed(key), train, facts)
        belief = self._native_fit(key, train) if self.native else self.agent.fit(key, train, facts)
        if not isinstance(belief, Belief):
            raise CalibrantError(
                f"fit returned an object of type {type(belief).__name__}; expected atoms and worlds(key, n)"
            )
        return belief

    def imagine(self, belief: Belief, n: int = WORLDS, x: Array | None = None) -> Trial:
        worlds = belief.worlds(self.key("worlds"), n)
        asked = self.x if x is None else x
        count = n if belief.atoms is None else belief.atoms
        if n < count and len(self._call(worlds, asked)) == n:
            count = n  # of a finite belief fewer than its atoms may be drawn, or all be given
        return Trial(belief, worlds, self.ask(worlds, asked, count))

    def ask(self, worlds: Worlds, x: Array, count: int) -> Array:
        return check_logits(self._call(worlds, x), (count, len(x), self.instance.facts.classes), "the answer")

    def _facts(self, train: Data) -> Facts:
        told = self.instance.environment if getattr(self.agent, "privileged", False) else None
        return dataclasses.replace(plain_facts(self.instance.facts), train_size=len(train.y), environment=told)

    def _native_fit(self, key: Key, train: Data) -> Belief:
        missing = len(self.train.y) - len(train.y)
        x, y = np.pad(train.x, ((0, missing), (0, 0))), np.pad(train.y, (0, missing)).astype(np.int32)
        return self._compiled_fit(key, x, y, len(train.y))

    @functools.cached_property
    def _compiled_fit(self) -> Callable[[Key, Array, Array, int], Belief]:
        import jax

        def fit(key: Key, x: Array, y: Array, size: int) -> Any:
            return self.agent.fit(key, Data(x, y), dataclasses.replace(self._facts(self.train), train_size=size))

        return jax.jit(fit)

    @functools.cached_property
    def _call(self) -> Callable[[Worlds, Array], Array]:
        def call(worlds: Worlds, x: Array) -> Array:
            return worlds(x)

        if not self.native:
            return call
        import jax

        return jax.jit(call)
