"""Who can play, and how they learn while they do."""

from __future__ import annotations

from typing import Any

from calibrant import registry
from calibrant.adapters import as_agent
from calibrant.play.learning import Schooling
from calibrant.types import Array, Cell, Facts


def learns_by_step(cell: Cell) -> bool:
    agent = as_agent(registry.resolve("agents", cell.agent))
    return hasattr(agent, "online") or bool(getattr(agent, "privileged", False))


def player(cell: Cell, facts: Facts, truth: Array) -> Any:
    """The agent of a cell as one that learns step by step; the oracle is told the true logits of the table."""
    agent: Any = as_agent(registry.resolve("agents", cell.agent))
    if getattr(agent, "privileged", False):
        return agent.informed(truth)
    agent.online(facts)  # refuses here, in one sentence, what it cannot do
    return agent


def schooling(problem: Any) -> Schooling:
    return Schooling(problem.lr, problem.batch, problem.updates, problem.capacity, problem.decay)
