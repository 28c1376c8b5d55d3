"""Cells that share a compiled program run together.

A native agent is a JAX tree: its numbers are data, its words and sizes are the program. Cells whose agents have the
same program and whose problems have the same shapes form a cohort; training sets are padded to the next power of ten,
or, for agents that read every row in every step, to that or three times one. Large ones are not: few sizes occur there,
and the padding of 60,000 images would take a hundred megabytes.
A cohort runs in chunks of a fixed width, the last one filled up with repeated cells, so that a cell's numbers depend
neither on the plan nor on what was done before. Black-box agents run cell by cell through the same `Task`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from calibrant import registry
from calibrant.adapters import as_agent
from calibrant.types import Cell

LANES = 8  # networks of a chunk: enough to hide the cost of a step, few enough that a lone cell wastes little
GAME_NETWORKS = 32  # networks of a chunk of games, whose steps are smaller: a lane alone would be mostly overhead
DATA_BYTES = 256e6  # training data of one chunk, at most
TENS = (10, 100, 1000, 10_000)  # rows that training sets are padded to; larger ones are not
THIRDS = (10, 30, 100, 300, 1000, 3000, 10_000)


@dataclass(frozen=True)
class Task:
    """Some cells of one cohort, run as one call of its program."""

    cells: tuple[Cell, ...]
    width: int  # lanes of the program; at least len(cells)
    rows: int  # rows that training sets are padded to; 0 for black-box agents
    seconds: float | None = None  # how long it may take
    store: str | None = None  # where checkpoints of long games are kept


def make_tasks(cells: Iterable[Cell], seconds_per_cell: float | None = None, store: str | None = None) -> list[Task]:
    """Group cells into cohorts and cut them into chunks; first chunks of all cohorts come first.

    Starting every cohort early lets parallel workers compile different programs, and find the others' in the cache.
    """
    cohorts: dict[Hashable, list[Cell]] = {}
    for cell in cells:
        cohorts.setdefault(_program(cell), []).append(cell)
    chunked = [_chunks(members) for members in cohorts.values()]
    tasks = [task for layer in zip_longest(*chunked) for task in layer if task is not None]
    limits = [None if seconds_per_cell is None else seconds_per_cell * task.width for task in tasks]
    return [replace(task, seconds=limit, store=store) for task, limit in zip(tasks, limits, strict=True)]


def padded_rows(size: int, sizes: Sequence[int] = TENS) -> int:
    return next((rows for rows in sizes if rows >= size), size)


def _program(cell: Cell) -> Hashable:
    agent = as_agent(registry.resolve("agents", cell.agent))
    if not getattr(agent, "native", False):
        return cell.id
    import jax

    problem: Any = registry.resolve("problems", cell.problem)
    return jax.tree.structure(agent), problem.shape(), _rows(agent, problem)


def _rows(agent: Any, problem: Any) -> int:
    return padded_rows(problem.train, THIRDS if getattr(agent, "full_batch", False) else TENS)


def _chunks(cells: list[Cell]) -> list[Task]:
    agent: Any = as_agent(registry.resolve("agents", cells[0].agent))
    if not getattr(agent, "native", False):
        return [Task((cell,), 1, 0) for cell in cells]
    problem: Any = registry.resolve("problems", cells[0].problem)
    rows = _rows(agent, problem)
    bytes_per_cell = 4 * rows * (problem.dim + 1)
    side_by_side = LANES
    if getattr(problem, "played", False):  # those that are fitted anew play alone
        side_by_side = GAME_NETWORKS if hasattr(agent, "online") else 1
    width = max(1, min(LANES, side_by_side // agent.networks, int(DATA_BYTES // bytes_per_cell)))
    return [Task(tuple(cells[start : start + width]), width, rows) for start in range(0, len(cells), width)]
