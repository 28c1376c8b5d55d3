"""Long games are kept where they stand, so that a killed run goes on from there with the same numbers.

A chunk of games is played by one program in fixed stretches of steps; what it carries between them is a tree of arrays.
The tree and the stretches done are kept now and then in the store, under the chunk's last cell; when that cell's
record is written, the checkpoint is gone in the same transaction. A chunk of other cells never takes it up.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np

from calibrant.engine.cohorts import Task
from calibrant.engine.packing import pack, unpack
from calibrant.engine.store import SqlStore, open_store
from calibrant.types import Array

EVERY_SECONDS = 20.0


class Checkpoints:
    """The checkpoint of one task; keeps nothing when the task has no store."""

    def __init__(self, task: Task) -> None:
        self._cell, self._last = task.cells[-1].id, time.monotonic()
        lanes = "/".join([str(task.width), *(cell.id for cell in task.cells)])
        self._chunk = hashlib.sha256(lanes.encode()).hexdigest()[:32]
        self._store: SqlStore | None = open_store(task.store) if task.store else None

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: object) -> None:
        with self._store or nullcontext():
            pass

    def load(self, like: Any) -> tuple[int, Any] | None:
        """The step reached and the tree kept then; None when there is none of the shape of `like`."""
        found = self._store.checkpoint(self._cell, self._chunk) if self._store else None
        if found is None:
            return None
        step, body = found
        leaves, structure = jax.tree.flatten(like)
        kept = unpack(body)
        arrays = [kept.get(str(place)) for place in range(len(leaves))]
        if any(a is None or _kind(a) != _kind(leaf) for a, leaf in zip(arrays, leaves, strict=True)):
            return None
        return step, jax.tree.unflatten(structure, arrays)

    def offer(self, step: int, tree: Any) -> None:
        """Keep the tree if the last one was kept long enough ago."""
        if self._store is None or time.monotonic() - self._last < EVERY_SECONDS:
            return
        leaves = jax.tree.leaves(tree)
        body = pack({str(place): np.asarray(leaf) for place, leaf in enumerate(leaves)})
        self._store.keep_checkpoint(self._cell, self._chunk, step, body)
        self._last = time.monotonic()


def _kind(leaf: Array) -> tuple[tuple[int, ...], str]:
    return tuple(leaf.shape), np.dtype(leaf.dtype).str
