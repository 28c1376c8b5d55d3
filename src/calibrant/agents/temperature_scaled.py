"""Temperature scaling: any agent, its logits divided by the number that makes held-out labels most likely.

Guo et al., "On Calibration of Modern Neural Networks", ICML 2017. A share of the rows, chosen by the key, is held out;
the wrapped agent learns from the others; the temperature t minimises
    sum over held-out rows of -log(mean over worlds of softmax(logits / t)[label]) + (log t / spread)^2 / 2
between 1/20 and 20, by a grid and then golden sections around its best point (the mean over worlds may have several
valleys). The last term is not in the paper, which holds out thousands of rows: a few that happen to be right, or to be
wrong, would drive t to its bounds. A large `spread` gives the paper's method. With `refit` the wrapped agent then
learns from all rows. Below `at_least` rows nothing is held out, and t is 1.

The wrapped agent is a spec of its own, in which ? is written %3F, & is written %26 and % is written %25:
`temperature_scaled?agent=ensemble+%3Fsize=30%26l2=3`. It runs as it runs alone: compiled with a whole cohort when it is
native, its numbers traced, or else cell by cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, cast
from urllib.parse import quote, unquote

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, Gt, Lt

from calibrant import registry, seeds
from calibrant.adapters import as_agent
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import Diagnostics
from calibrant.types import Array, CalibrantError, Data, Facts, Key

LOWEST, HIGHEST = 0.05, 20.0
GRID, SECTIONS = 25, 20  # points of the grid; golden sections, which shrink its mesh by 15,000
GOLDEN = (np.sqrt(5) - 1) / 2


@tree
@dataclass(frozen=True)
class CooledWorlds:
    """Worlds whose logits are divided by a temperature."""

    worlds: Any
    temperature: Any

    @property
    def weights(self) -> Array | None:
        return cast("Array | None", self.worlds.weights)

    def __call__(self, x: Array) -> Array:
        return self.worlds(x) / self.temperature


@tree
@dataclass(frozen=True)
class CooledBelief:
    """A belief whose worlds' logits are divided by a temperature."""

    belief: Any
    temperature: Any
    diagnostics: Diagnostics = field(default_factory=dict)

    @property
    def atoms(self) -> int | None:
        return cast("int | None", self.belief.atoms)

    def worlds(self, key: Key, n: int) -> CooledWorlds:
        return CooledWorlds(self.belief.worlds(key, n), self.temperature)


@dataclass(frozen=True)
class TemperatureScaled:
    """Any agent with its logits divided by a temperature found on held-out rows (Guo et al., 2017)."""

    agent: str = "mlp"  # the wrapped agent's spec; once built by JAX, the agent itself
    held_out: Annotated[float, Gt(0), Lt(1)] = 0.2  # share of the rows
    spread: Annotated[float, Gt(0)] = 0.5  # of the logarithm of the temperature, before any row is seen
    at_least: Annotated[int, Ge(2)] = static(10)
    refit: bool = static(True)
    draws: Annotated[int, Ge(1)] = static(100)  # worlds asked of a belief without finite support

    def __post_init__(self) -> None:
        """Equal agents get equal specs, and a spec that cannot be read is refused before anything runs."""
        if isinstance(self.agent, str):
            spec = registry.canonical("agents", unquote(self.agent))
            if getattr(registry.resolve("agents", spec), "privileged", False):
                raise CalibrantError(f"'{spec}' is told the truth, so there is no temperature to find for it")
            object.__setattr__(self, "agent", quote(spec, safe="+=.:@/"))

    @property
    def wrapped(self) -> Any:
        return as_agent(registry.resolve("agents", unquote(self.agent))) if isinstance(self.agent, str) else self.agent

    @property
    def native(self) -> bool:
        return bool(getattr(self.wrapped, "native", False))

    @property
    def networks(self) -> int:
        return int(self.wrapped.networks)

    @property
    def version(self) -> dict[str, Any]:
        """Part of a cell's id: a changed default or version of the wrapped agent makes another cell."""
        wrapped = registry.identity("agents", unquote(self.agent))
        return {"own": 1, "wrapped": wrapped, "wrapped_version": getattr(self.wrapped, "version", 1)}

    def fit(self, key: Key, train: Data, facts: Facts) -> CooledBelief:
        splitting, fitting, asking, refitting = self._keys(key)
        size = facts.train_size
        held = jnp.where(size < self.at_least, 0, jnp.clip(jnp.round(self.held_out * size), 1, size - 1)).astype(int)
        order = shuffled_rows(splitting, size, len(train.x))
        mixed = Data(jnp.asarray(train.x)[order], jnp.asarray(train.y)[order])
        belief = self.wrapped.fit(fitting, mixed, replace(facts, train_size=size - held))
        worlds = belief.worlds(asking, belief.atoms or self.draws)
        place = jnp.arange(len(order))
        judged = (place >= size - held) & (place < size)
        found = best_temperature(jnp.asarray(worlds(mixed.x)), mixed.y, judged, self.spread, worlds.weights)
        temperature = jnp.where(held == 0, 1.0, found)
        if self.refit:
            belief = self.wrapped.fit(refitting, train, facts)
        said = getattr(belief, "diagnostics", {}) | {"softmax_temperature": temperature}
        return CooledBelief(belief, temperature if self.native else float(temperature), said)

    def _keys(self, key: Key) -> tuple[Key, ...]:
        if self.native:
            return tuple(jax.random.split(key, 4))
        parts = ("fit", "ask", "refit")
        return seeds.jax_key(key, "split"), *(seeds.child(key, part) % 2**32 for part in parts)


def shuffled_rows(key: Key, size: Array, rows: int) -> Array:
    """The first `size` of `rows` row numbers in random order, and then the padding."""
    luck = jnp.where(jnp.arange(rows) < size, jax.random.uniform(key, (rows,)), 2.0)
    return jnp.argsort(luck)


@jax.jit
def best_temperature(
    logits: Array,  # [worlds, rows, classes]
    labels: Array,
    judged: Array,  # [rows], whether a row counts
    spread: Array,
    weights: Array | None = None,  # of the worlds
) -> Array:
    """The most likely temperature, by the judged rows and its log-normal prior."""
    count = len(logits)
    log_weights = jnp.full(count, -np.log(count)) if weights is None else jnp.log(jnp.asarray(weights, jnp.float32))

    def loss(log_temperature: Array) -> Array:
        logp = jax.nn.log_softmax(logits / jnp.exp(log_temperature), axis=-1)
        right = jnp.take_along_axis(logp, labels[None, :, None], axis=-1)[..., 0]
        likely = jax.nn.logsumexp(right + log_weights[:, None], axis=0)
        return (log_temperature / spread) ** 2 / 2 - jnp.where(judged, likely, 0.0).sum()

    grid = jnp.linspace(np.log(LOWEST), np.log(HIGHEST), GRID)
    best = jnp.argmin(jax.lax.map(loss, grid))
    low, high = grid[jnp.maximum(best - 1, 0)], grid[jnp.minimum(best + 1, GRID - 1)]

    def narrow(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        inner, outer = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        left = loss(inner) < loss(outer)
        return jnp.where(left, low, inner), jnp.where(left, outer, high)

    low, high = jax.lax.fori_loop(0, SECTIONS, narrow, (low, high))
    return jnp.exp((low + high) / 2)


def _flatten(agent: TemperatureScaled) -> tuple[tuple[Any, Any, Any], tuple[int, bool, int]]:
    """The wrapped agent's numbers are the wrapper's too: cells that differ by them share a program."""
    return (agent.wrapped, agent.held_out, agent.spread), (agent.at_least, agent.refit, agent.draws)


def _unflatten(fixed: tuple[int, bool, int], numbers: tuple[Any, Any, Any]) -> TemperatureScaled:
    return TemperatureScaled(*numbers, *fixed)


jax.tree_util.register_pytree_node(TemperatureScaled, _flatten, _unflatten)
