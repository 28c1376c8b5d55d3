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
from calibrant.engine.scoring import Stopwatch, all_inputs, failure, finish, is_whole, must_be_taught, sample_instance
from calibrant.metrics.long import Asked
from calibrant.types import Answers, Array, Cell, Cost, Data, Facts, Instance, Key, Record, Scores

TRACED = ("train_size", "temperature")
jax.tree_util.register_dataclass(Data, ["x", "y"], [])
jax.tree_util.register_dataclass(
    Facts, list(TRACED), ["inputs", "classes", "hidden", "activation", "init", "law", "environment"]
)


def run_compiled(task: Task) -> list[Record]:
    """One record per cell of the task, in order."""
    lanes = (task.cells + task.cells[:1] * task.width)[: task.width]
    instances = [sample_instance(cell) for cell in task.cells]
    filled = (instances + instances[:1] * task.width)[: task.width]
    made = [registry.resolve("agents", cell.agent) for cell in lanes]
    must_be_taught(task.cells[0], made[0], instances[0])
    agents = stack(made)
    data = stack([pad(instance.train, task.rows) for instance in filled])
    instances = [_without_rows(instance) for instance in instances]
    facts = stack([numbers(instance.facts) for instance in filled])
    del filled
    keys = jnp.stack([seeds.jax_key(*cell.chance, "agent") for cell in lanes])
    fit, fit_compile = compiled(fit_all, (agents, keys, data, facts), ())
    with Stopwatch() as fitting:
        beliefs = jax.block_until_ready(fit(agents, keys, data, facts))

    cost = Cost(
        compile_cpu_seconds=fit_compile.cpu / len(task.cells),
        compile_wall_seconds=fit_compile.wall / len(task.cells),
        fit_cpu_seconds=fitting.cpu / task.width,
        fit_wall_seconds=fitting.wall / task.width,
        parameters=sum(leaf.size for leaf in jax.tree.leaves(silent(beliefs))) // task.width,
        cohort=task.width,
    )
    return [
        _ask(cell, instance, jax.tree.map(lambda leaf, lane=lane: leaf[lane], beliefs), cost)
        for lane, (cell, instance) in enumerate(zip(task.cells, instances, strict=True))
    ]


def _ask(cell: Cell, instance: Instance, belief: Any, cost: Cost) -> Record:
    """Cells are asked one by one: a thousand worlds at all inputs are a hundred megabytes of answers."""
    said = {name: float(value) for name, value in getattr(belief, "diagnostics", {}).items()}
    if (step := said.pop("diverged_at", -1)) >= 0:
        return failure(cell, f"diverged at step {step:.0f}", cost)
    belief = silent(belief)
    key, inputs = seeds.jax_key(*cell.chance, "worlds"), jnp.asarray(all_inputs(cell, instance))
    ask, making = compiled(answer, (belief, key, inputs), (instance.question.worlds,))
    with Stopwatch() as asking:
        answered, weights = ask(belief, key, inputs)
        logp = np.moveaxis(np.asarray(answered), 2, 0)
    spent = replace(
        cost,
        compile_cpu_seconds=cost.compile_cpu_seconds + making.cpu,
        compile_wall_seconds=cost.compile_wall_seconds + making.wall,
        ask_cpu_seconds=asking.cpu,
        ask_wall_seconds=asking.wall,
        worlds=len(logp),
    )
    answers = Answers(logp, weights, is_whole(belief, logp), getattr(belief, "log_joint", None))

    def at(x: Array) -> Answers:
        block = jnp.asarray(x)
        program, _ = compiled(answer, (belief, key, block), (instance.question.worlds,))
        return replace(answers, logp=np.moveaxis(np.asarray(program(belief, key, block)[0]), 2, 0))

    record = finish(cell, instance, answers, spent, Asked(at, getattr(belief, "evidence", None)))
    if record.failed:
        return record
    return replace(record, scores={**record.scores, **{name: Scores(value) for name, value in said.items()}})


def silent(belief: Any) -> Any:
    """Without what inference said of itself."""
    return replace(belief, diagnostics={}) if hasattr(belief, "diagnostics") else belief


def fit_all(agents: Any, keys: Array, data: Data, facts: Facts) -> Any:
    return jax.vmap(lambda agent, key, train, known: agent.fit(key, train, known))(agents, keys, data, facts)


def answer(belief: Any, key: Key, x: Array, worlds: int) -> tuple[Array, Array | None]:
    """Log-probabilities [unique, classes, worlds], in memory as the scores read them; and the worlds' weights."""
    imagined = belief.worlds(key, worlds)
    return jax.nn.log_softmax(jnp.moveaxis(imagined(x), 0, 2), axis=1), imagined.weights


# --- programs -------------------------------------------------------------------------------------

_programs: dict[Any, Any] = {}


def compiled(
    function: Callable[..., Any], arguments: tuple[Any, ...], fixed: tuple[int | str, ...]
) -> tuple[Any, Stopwatch]:
    """The program for these shapes and what it cost to make; nothing when it is already in this process."""
    shapes = jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), arguments)
    key = (function, fixed, str(jax.tree.leaves(shapes)), jax.tree.structure(arguments))
    watch = Stopwatch()
    if key not in _programs:
        with watch:
            program = jax.jit(functools.partial(_call, function, fixed))
            _programs[key] = program.lower(*arguments).compile()
    return _programs[key], watch


def _call(function: Callable[..., Any], fixed: tuple[int | str, ...], *arguments: Any) -> Any:
    return function(*arguments, *fixed)


# --- arrays ---------------------------------------------------------------------------------------


def stack(trees: list[Any]) -> Any:
    """Trees of numbers and arrays become one tree with a leading axis; real numbers in single precision."""
    return jax.tree.map(lambda *leaves: jnp.asarray(_stacked([_single(leaf) for leaf in leaves])), *trees)


def _stacked(arrays: list[Array]) -> Array:
    """One alone, which may be all rows of a large set, is not copied."""
    return arrays[0][None] if len(arrays) == 1 else np.stack(arrays)


def _single(leaf: Any) -> Array:
    array = np.asarray(leaf)
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int32, copy=False)


def _without_rows(instance: Instance) -> Instance:
    """The device has the training rows by now; only a picture shows them again."""
    if instance.question.picture is not None:
        return instance
    return replace(instance, train=Data(instance.train.x[:0].copy(), instance.train.y[:0].copy()))


def pad(train: Data, rows: int) -> Data:
    missing = rows - len(train.x)
    if not missing:
        return train
    return Data(np.pad(train.x, ((0, missing), (0, 0))), np.pad(train.y, (0, missing)))


def numbers(facts: Facts) -> Facts:
    return replace(facts, train_size=int(facts.train_size), temperature=float(facts.temperature))
