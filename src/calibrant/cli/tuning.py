"""What `calibrant tune` does: run what is left of a study, or only look at what a store holds, and adopt the best."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from calibrant import registry
from calibrant.cli.progress import make_progress
from calibrant.engine.store import open_store
from calibrant.tune.search import Budget, Finished, search
from calibrant.tune.show import Summary, summaries, summarise
from calibrant.tune.study import make_study
from calibrant.tune.tuned import adopt
from calibrant.types import CalibrantError


def tune_agent(
    suite: str | None,
    agent: str | None,
    budget: Budget,
    executor: str,
    workers: int | None,
    store: str,
    quiet: bool,
    **settings: Any,
) -> tuple[Summary, Finished]:
    if suite is None or agent is None:
        raise CalibrantError("say what to tune: calibrant tune SUITE AGENT; without them, --show lists what was tuned")
    study = make_study(suite, agent, **settings)
    with open_store(store) as opened:
        said = None if quiet else _say
        finished = search(study, opened, budget, executor, workers, make_progress(quiet), said)
        return summarise(study, opened), finished


def tuned_so_far(store: str, suite: str | None, agent: str | None, **wanted: str | None) -> list[Summary]:
    if suite is not None:
        registry.load("suites", suite)
    canonical = None if agent is None else registry.canonical("agents", agent)
    with open_store(store, create=False) as opened:
        found = summaries(opened, suite=suite, agent=canonical, **wanted)
    if not found:
        asked = " ".join(word for word in (agent and f"of {canonical}", suite and f"on {suite}") if word)
        raise CalibrantError(f"store {store} has no such study {asked}".rstrip() + "; `calibrant tune` makes one")
    return found


def adopt_best(found: list[Summary], file: Path) -> dict[str, Any]:
    if len(found) > 1:
        names = ", ".join(one.study.name for one in found)
        raise CalibrantError(f"--adopt takes the best of one study, but these are {len(found)}: {names}")
    return adopt(found[0], file)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
