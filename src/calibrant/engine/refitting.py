"""Agents that learn all at once play too: they are fitted anew whenever what they have seen has grown by a tenth.

A belief fitted to n observations is a function of these alone, so a game that is resumed comes to the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import log_softmax

from calibrant import registry, seeds
from calibrant.adapters import as_agent
from calibrant.engine.cohorts import padded_rows
from calibrant.engine.compiled import answer, compiled, fit_all, numbers, pad, silent, stack
from calibrant.engine.scoring import Stopwatch
from calibrant.types import Array, Cell, Data, Facts

GROWTH = 1.1
Asked = Callable[[Array, int], tuple[Array, bool]]  # inputs, worlds -> log-probabilities [worlds, rows, classes], whole


def last_fit(seen: int) -> int:
    """The number of observations, at most `seen`, that the belief in force was fitted to: 1, 2, ..., 10, 11, 13, ..."""
    at = 0
    while (following := max(at + 1, int(at * GROWTH))) <= seen:
        at = following
    return at


class Refitted:
    """The agent of one cell, fitted to growing data."""

    def __init__(self, cell: Cell, facts: Facts) -> None:
        self._cell, self._facts = cell, facts
        self._agent: Any = as_agent(registry.resolve("agents", cell.agent))
        self.compiling = Stopwatch()

    def fit(self, x: Array, y: Array) -> Asked:
        """The belief in these observations, as a function that asks it."""
        facts = replace(self._facts, train_size=len(x))
        data = Data(np.asarray(x, np.float32), np.asarray(y, np.int32))
        return self._compiled(data, facts) if getattr(self._agent, "native", False) else self._plain(data, facts)

    def _plain(self, data: Data, facts: Facts) -> Asked:
        path = (*self._cell.chance, "refit", len(data.x))
        belief = self._agent.fit(seeds.child(*path, "agent") % 2**32, data, facts)

        def asked(inputs: Array, worlds: int) -> tuple[Array, bool]:
            imagined = belief.worlds(seeds.child(*path, "worlds") % 2**32, worlds)
            logp = log_softmax(np.asarray(imagined(inputs), np.float64), axis=-1)
            return logp, belief.atoms is not None and len(logp) >= belief.atoms

        return asked

    def _compiled(self, data: Data, facts: Facts) -> Asked:
        path = (*self._cell.chance, "refit", len(data.x))
        given = (
            stack([self._agent]),
            seeds.jax_key(*path, "agent")[None],
            stack([pad(data, padded_rows(len(data.x)))]),
            stack([numbers(facts)]),
        )
        program = self._program(fit_all, given, ())
        belief = silent(jax.tree.map(lambda leaf: leaf[0], program(*given)))
        key = seeds.jax_key(*path, "worlds")

        def asked(inputs: Array, worlds: int) -> tuple[Array, bool]:
            arguments = (belief, key, jnp.asarray(inputs))
            logp = np.moveaxis(np.asarray(self._program(answer, arguments, (worlds,))(*arguments)[0]), 2, 0)
            return logp, belief.atoms is not None and len(logp) >= belief.atoms

        return asked

    def _program(self, function: Callable[..., Any], arguments: tuple[Any, ...], fixed: tuple[int, ...]) -> Any:
        program, making = compiled(function, arguments, fixed)
        self.compiling.cpu, self.compiling.wall = self.compiling.cpu + making.cpu, self.compiling.wall + making.wall
        return program
