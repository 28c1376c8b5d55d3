"""What `calibrant check` does: name the agent, put it to the test, here and in another process."""

from __future__ import annotations

from calibrant import registry
from calibrant.engine import machine
from calibrant.engine.check import Finding, check_agent


def check_spec(spec: str, problem: str) -> list[Finding]:
    machine.settle()
    registry.canonical("agents", spec)  # a name or a parameter that does not exist is wrong usage, not a finding
    return check_agent(spec, registry.canonical("problems", problem))
