"""What `calibrant check` does: name the agent, build it, put it to the test."""

from __future__ import annotations

from calibrant import registry
from calibrant.engine import machine
from calibrant.engine.check import Finding, check_agent


def check_spec(spec: str, problem: str) -> list[Finding]:
    machine.settle()
    return check_agent(registry.resolve("agents", spec), registry.canonical("problems", problem))
