"""Runs what a paper's item needs and the store does not have yet, and makes the receipt.

Which environments an item needs stands in its data file; who stands for its agents is ours to choose: the agents that
the file names, some of them, the same with other parameters, or with tuned ones. Every choice is told by the receipt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrant import registry
from calibrant.engine.plan import make_plan
from calibrant.engine.provenance import provenance
from calibrant.engine.run import Outcome, Progress, run_plan
from calibrant.engine.store import SqlStore
from calibrant.papers.comparison import Asked, make_receipt
from calibrant.papers.format import Item, Paper
from calibrant.papers.receipts import Receipt
from calibrant.suites.base import Preset, Suite
from calibrant.types import CalibrantError, Cell


@dataclass(frozen=True)
class Cast:
    """Who stands for the agents of an item, and which of them this installation does not have."""

    specs: Mapping[str, str]  # agent of the item: canonical spec
    absent: Mapping[str, str]  # agent of the item: why it cannot be run
    as_published: bool  # all agents of the item, with the parameters meant
    tuned: bool = False  # some of them by tuned parameters


def reproduce(
    paper: Paper,
    name: str,
    store: SqlStore,
    *,
    agents: Sequence[str] = (),
    seeds: int | None = None,
    tuned: Mapping[str, str] | None = None,
    run: bool = True,
    executor: str = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[Receipt, Outcome]:
    """The receipt of an item, also kept in the store, and what had to be run for it.

    `agents` limits it to some of the item's agents, each perhaps with other parameters; `tuned` gives the spec that
    stands for an agent in place of its defaults; with `run=False` only what the store has is looked at.
    """
    item = paper.items[name]
    cast = choose(item, agents, tuned or {}, f"{paper.name}:{name}")
    asked, cells = _ask(paper, item, cast, item.plan.seeds if seeds is None else seeds, tuple(agents))
    if run:
        outcome = run_plan(cells, store, executor, workers, progress)
        if outcome.interrupted:
            raise KeyboardInterrupt
    else:
        outcome = Outcome(len(cells), len(store.done(cells)), 0, 0)
    wanted = {cell.id for cell in cells}
    found = store.records({cell.problem for cell in cells}, {cell.agent for cell in cells})
    receipt = make_receipt(paper, name, asked, (one for one in found if one.cell.id in wanted))
    store.keep_receipt(paper.name, name, receipt.to_json() | {"provenance": provenance()})
    return receipt, outcome


def choose(item: Item, wanted: Sequence[str], tuned: Mapping[str, str], reference: str) -> Cast:
    """Who stands for whom; `wanted` holds specs, of which each stands for the item's agent of that name."""
    meant, absent = {}, {}
    for agent in item.agents:
        try:
            meant[agent] = registry.canonical("agents", agent)
        except CalibrantError as error:
            absent[agent] = str(error)
    given = {agent: word for word in wanted for agent in _named(item, word, reference)}
    asked = {agent: given.get(agent, agent) for agent in item.agents if not wanted or agent in given}
    specs = {
        agent: registry.canonical("agents", word if "?" in word else tuned.get(agent, agent))
        for agent, word in asked.items()
        if agent in meant
    }
    if not specs:
        raise CalibrantError(f"none of the agents of {reference} can be run here: {next(iter(absent.values()))}")
    own = {agent: registry.canonical("agents", tuned[agent]) if agent in tuned else meant[agent] for agent in specs}
    return Cast(
        specs=specs,
        absent={agent: why for agent, why in absent.items() if agent in asked},
        as_published=len(asked) == len(item.agents) and specs == own,
        tuned=any(agent in tuned and specs[agent] == own[agent] for agent in specs),
    )


def _named(item: Item, word: str, reference: str) -> list[str]:
    """The item's agents that a word means: those of its name, or the one that it spells out."""
    if word in item.agents:
        return [word]
    alike = [agent for agent in item.agents if _bare(agent) == _bare(word)]
    if not alike:
        near = registry.nearest(word, item.agents)
        raise CalibrantError(f"{reference} says nothing about agent '{word}'{near}; it names {', '.join(item.agents)}")
    if "?" in word and len(alike) > 1:
        raise CalibrantError(f"'{word}' could stand for {' or '.join(alike)} of {reference}; name one of these")
    return alike


def _bare(spec: str) -> str:
    return spec.partition("?")[0].strip()


def _ask(paper: Paper, item: Item, cast: Cast, seeds: int, words: tuple[str, ...]) -> tuple[Asked, list[Cell]]:
    suite, preset = _suite(paper, item)
    anyone = next(iter(cast.specs.values()))
    cells: dict[str, Cell] = {}
    problems = []
    for claim in item.claims:
        specs = [cast.specs[agent] for agent in claim.agents if agent in cast.specs]
        planned = make_plan(suite, preset, specs or [anyone], seeds, claim.where)
        problems.append(tuple(dict.fromkeys(cell.problem for cell in planned)))
        if len(specs) == len(claim.agents):
            cells |= {cell.id: cell for cell in planned}
    if not cells:
        raise CalibrantError(f"no claim of {paper.name} is about {', '.join(cast.specs)} alone: it compares agents")
    whole = cast.as_published and seeds >= item.plan.seeds
    asked = Asked(cast.specs, tuple(problems), seeds, len(cells), whole, cast.absent, words, cast.tuned)
    return asked, list(cells.values())


def _suite(paper: Paper, item: Item) -> tuple[Suite, str]:
    plan = item.plan
    if plan.suite and plan.preset:
        suite: Suite = registry.load("suites", plan.suite)
        return suite, plan.preset
    problems = tuple(registry.canonical("problems", problem) for problem in plan.problems)
    axes = tuple(dict.fromkeys(field for one in problems for field in registry.parse_query(one, one.partition("?")[2])))
    only = Preset(problems, item.agents, plan.seeds)
    return Suite(paper.name, paper.title, {"all": only}, metrics=(), baseline=item.agents[0], axes=axes), "all"
