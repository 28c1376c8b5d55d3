"""Who can play, and how they learn while they do."""

from __future__ import annotations

import functools
from typing import Any

from calibrant import registry
from calibrant.adapters import as_agent
from calibrant.play.learning import Schooling
from calibrant.types import Array, CalibrantError, Cell, Facts


def player(cell: Cell, facts: Facts, truth: Array) -> Any:
    """The agent of a cell as one that learns step by step; the oracle is told the true logits of the table."""
    agent: Any = as_agent(registry.resolve("agents", cell.agent))
    if getattr(agent, "privileged", False):
        return agent.informed(truth)
    if not hasattr(agent, "online"):
        raise CalibrantError(
            f"agent '{cell.agent}' cannot learn step by step, as games ask for; these can: {', '.join(players())}"
        )
    agent.online(facts)  # refuses here, in one sentence, what it cannot do
    return agent


@functools.cache
def players() -> tuple[str, ...]:
    """The agents that can play."""
    known = ((name, registry.load("agents", name)) for name in registry.table("agents"))
    return tuple(name for name, agent in known if hasattr(agent, "online") or hasattr(agent, "informed"))


def schooling(problem: Any) -> Schooling:
    return Schooling(problem.lr, problem.batch, problem.updates, problem.capacity, problem.decay)
