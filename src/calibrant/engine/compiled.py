"""Runs a chunk of a cohort: one compiled program fits all its cells, another asks them, NumPy scores them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from calibrant import registry, seeds
from calibrant.engine.cohorts import Task
from calibrant.engine.scoring import Stopwatch, all_inputs, finish, sample_instance
from calibrant.types import Answers, Array, Cost, Data, Facts, Record

TRACED = ("train_size", "temperature")
jax.tree_util.register_dataclass(Data, ["x", "y"], [])
jax.tree_util.register_dataclass(
    Facts, list(TRACED), ["inputs", "classes", "hidden", "activation", "init", "environment"]
)


def run_compiled(task: Task) -> list[Record]:
    """One record per cell of the task, in order."""
    lanes = (task.cells + task.cells[:1] * task.width)[: task.width]
    instances = [sample_instance(cell) for cell in task.cells]
    filled = (instances + instances[:1] * task.width)[: task.width]
    agents = stack([registry.resolve("agents", cell.agent) for cell in lanes])
    data = stack([pad(instance.train, task.rows) for instance in filled])
    facts = stack([_numbers(instance.facts) for instance in filled])
    keys = jnp.stack([seeds.jax_key(cell.id, "agent") for cell in lanes])
    fit, fit_compile = compiled(_fit_all, (agents, keys, data, facts), ())
    with Stopwatch() as fitting:
        beliefs = jax.block_until_ready(fit(agents, keys, data, facts))

    question = instances[0].question
    inputs = jnp.asarray(np.stack([all_inputs(instance) for instance in filled]))
    keys = jnp.stack([seeds.jax_key(cell.id, "worlds") for cell in lanes])
    ask, ask_compile = compiled(_ask_all, (beliefs, keys, inputs), (question.worlds,))
    with Stopwatch() as asking:
        logp = np.asarray(ask(beliefs, keys, inputs))

    share = len(task.cells)
    cost = Cost(
        compile_cpu_seconds=(fit_compile.cpu + ask_compile.cpu) / share,
        compile_wall_seconds=(fit_compile.wall + ask_compile.wall) / share,
        fit_cpu_seconds=fitting.cpu / task.width,
        fit_wall_seconds=fitting.wall / task.width,
        ask_cpu_seconds=asking.cpu / task.width,
        ask_wall_seconds=asking.wall / task.width,
        parameters=sum(leaf.size for leaf in jax.tree.leaves(beliefs)) // task.width,
        worlds=logp.shape[1],
        cohort=task.width,
    )
    exact = beliefs.atoms is not None
    return [
        finish(cell, instance, Answers(lane, None, exact), cost)
        for cell, instance, lane in zip(task.cells, instances, logp, strict=False)
    ]


def _fit_all(agents: Any, keys: Array, data: Data, facts: Facts) -> Any:
    return jax.vmap(lambda agent, key, train, known: agent.fit(key, train, known))(agents, keys, data, facts)


def _ask_all(beliefs: Any, keys: Array, x: Array, worlds: int) -> Array:
    """Log-probabilities [cells, worlds, unique, classes]."""
    answer = jax.vmap(lambda belief, key, at: belief.worlds(key, worlds)(at))(beliefs, keys, x)
    return jax.nn.log_softmax(answer, axis=-1)


# --- programs -------------------------------------------------------------------------------------

_programs: dict[Any, Any] = {}


def compiled(function: Callable[..., Any], arguments: tuple[Any, ...], fixed: tuple[int, ...]) -> tuple[Any, Stopwatch]:
    """The program for these shapes and what it cost to make; nothing when it is already in this process."""
    shapes = jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), arguments)
    key = (function, fixed, str(jax.tree.leaves(shapes)), jax.tree.structure(arguments))
    watch = Stopwatch()
    if key not in _programs:
        with watch:
            program = jax.jit(functools.partial(_call, function, fixed))
            _programs[key] = program.lower(*arguments).compile()
    return _programs[key], watch


def _call(function: Callable[..., Any], fixed: tuple[int, ...], *arguments: Any) -> Any:
    return function(*arguments, *fixed)


# --- arrays ---------------------------------------------------------------------------------------


def stack(trees: list[Any]) -> Any:
    """Trees of numbers and arrays become one tree with a leading axis; real numbers in single precision."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack([_single(leaf) for leaf in leaves])), *trees)


def _single(leaf: Any) -> Array:
    array = np.asarray(leaf)
    return array.astype(np.float32) if array.dtype.kind == "f" else array.astype(np.int32)


def pad(train: Data, rows: int) -> Data:
    missing = rows - len(train.x)
    return Data(np.pad(train.x, ((0, missing), (0, 0))), np.pad(train.y, (0, missing)))


def _numbers(facts: Facts) -> Facts:
    return replace(facts, train_size=int(facts.train_size), temperature=float(facts.temperature))
