"""What `calibrant reproduce` does: find the item, open the store, run what is missing, write the receipt."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from calibrant import registry
from calibrant.cli.progress import make_progress
from calibrant.engine.run import Outcome
from calibrant.engine.store import open_store
from calibrant.papers.format import Item, find
from calibrant.papers.receipts import Receipt
from calibrant.papers.reproduce import reproduce
from calibrant.papers.writing import write
from calibrant.types import CalibrantError


def reproduce_item(
    reference: str,
    agents: Sequence[str],
    seeds: int | None,
    tuned: bool,
    run: bool,
    executor: str,
    workers: int | None,
    out: Path | None,
    store: str,
    quiet: bool,
) -> tuple[Receipt, Outcome, Path]:
    """The receipt, what was run for it, and the page it was written to."""
    paper, item = find(reference)
    with open_store(store, create=run) as opened, _resumable():
        receipt, outcome = reproduce(
            paper,
            item,
            opened,
            agents=agents,
            seeds=seeds,
            tuned=tuned_for(paper.items[item]) if tuned else None,
            run=run,
            executor=executor,
            workers=workers,
            progress=make_progress(quiet),
        )
    return receipt, outcome, write(receipt, out)


def tuned_for(item: Item) -> dict[str, str]:
    """The spec that stands for each of an item's agents; one that nobody tuned stays as it is."""
    from calibrant.tune.tuned import tuned_specs

    if item.plan.suite is None:
        raise CalibrantError(f"'{item.title}' belongs to no suite, so there are no tuned hyperparameters for it")
    known = [agent for agent in item.agents if agent.partition("?")[0] in registry.table("agents")]
    return dict(zip(known, tuned_specs(item.plan.suite, known), strict=True))


@contextlib.contextmanager
def _resumable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; the same command continues from here", file=sys.stderr)
        raise
