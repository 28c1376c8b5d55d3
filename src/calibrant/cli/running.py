"""What `calibrant run` does: make the plan, open the store, show progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrant import registry
from calibrant.cli.progress import make_progress
from calibrant.engine.plan import make_plan
from calibrant.engine.run import Outcome, run_plan
from calibrant.engine.store import open_store


def run_suite(
    suite: str,
    agents: Sequence[str],
    preset: str,
    where: Mapping[str, str],
    seeds: int | None,
    executor: str,
    workers: int | None,
    timeout: float | None,
    tuned: bool,
    store: str,
    quiet: bool,
) -> Outcome:
    chosen = registry.load("suites", suite)
    if tuned:
        from calibrant.tune.tuned import tuned_specs

        agents = tuned_specs(chosen.tuned_on or suite, agents or chosen.preset(preset).agents)
    cells = make_plan(chosen, preset, agents, seeds, where)
    with open_store(store) as opened:
        return run_plan(cells, opened, executor, workers, make_progress(quiet), timeout)
