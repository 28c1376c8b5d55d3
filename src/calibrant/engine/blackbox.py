"""Runs one cell of a black-box agent: NumPy in and out, fresh randomness for every world."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_softmax

from calibrant import registry, seeds
from calibrant.adapters import as_agent
from calibrant.engine.scoring import Stopwatch, all_inputs, finish, is_whole, sample_instance
from calibrant.types import Answers, Cell, Cost, Record


def run_black_box(cell: Cell) -> Record:
    agent: Any = as_agent(registry.resolve("agents", cell.agent))
    instance = sample_instance(cell)
    facts = instance.facts
    if getattr(agent, "privileged", False):
        facts = replace(facts, environment=instance.environment)
    with Stopwatch() as fitting:
        belief = agent.fit(_seed(cell, "agent"), instance.train, facts)
    with Stopwatch() as asking:
        worlds = belief.worlds(_seed(cell, "worlds"), instance.question.worlds)
        logp = log_softmax(np.asarray(worlds(all_inputs(cell, instance)), np.float64), axis=-1)
    cost = Cost(
        fit_cpu_seconds=fitting.cpu,
        fit_wall_seconds=fitting.wall,
        ask_cpu_seconds=asking.cpu,
        ask_wall_seconds=asking.wall,
        worlds=len(logp),
    )
    return finish(cell, instance, Answers(logp, worlds.weights, is_whole(belief, logp)), cost)


def _seed(cell: Cell, name: str) -> int:
    return seeds.child(*cell.chance, name) % 2**32
