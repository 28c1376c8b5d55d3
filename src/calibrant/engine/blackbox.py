"""Runs one cell of a black-box agent: NumPy in and out, fresh randomness for every world."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_softmax

from calibrant import registry, seeds
from calibrant.adapters import as_agent
from calibrant.engine.scoring import Stopwatch, all_inputs, finish, is_whole, must_be_taught, sample_instance
from calibrant.metrics.long import Asked
from calibrant.protocols import Worlds
from calibrant.types import Answers, Array, Cell, Cost, Record


def run_black_box(cell: Cell) -> Record:
    agent: Any = as_agent(registry.resolve("agents", cell.agent))
    instance = sample_instance(cell)
    must_be_taught(cell, agent, instance)
    facts = instance.facts
    if getattr(agent, "privileged", False):
        facts = replace(facts, environment=instance.environment)
    with Stopwatch() as fitting:
        belief = agent.fit(_seed(cell, "agent"), instance.train, facts)
    with Stopwatch() as asking:
        worlds = belief.worlds(_seed(cell, "worlds"), instance.question.worlds)
        logp = _logp(worlds, all_inputs(cell, instance))
    cost = Cost(
        fit_cpu_seconds=fitting.cpu,
        fit_wall_seconds=fitting.wall,
        ask_cpu_seconds=asking.cpu,
        ask_wall_seconds=asking.wall,
        worlds=len(logp),
    )
    answers = Answers(logp, worlds.weights, is_whole(belief, logp), getattr(belief, "log_joint", None))
    asked = Asked(lambda x: replace(answers, logp=_logp(worlds, x)), getattr(belief, "evidence", None))
    return finish(cell, instance, answers, cost, asked)


def _logp(worlds: Worlds, x: Array) -> Array:
    return log_softmax(np.asarray(worlds(x), np.float64), axis=-1)


def _seed(cell: Cell, name: str) -> int:
    return seeds.child(*cell.chance, name) % 2**32
