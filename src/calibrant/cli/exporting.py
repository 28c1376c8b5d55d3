"""What `calibrant export` does: all records of the suites named, of every preset, with their courses through time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant import registry
from calibrant.api import load
from calibrant.engine.exchange import export_records
from calibrant.suites.base import Suite
from calibrant.types import CalibrantError, Record


def export_suites(suites: Sequence[str], agents: Sequence[str] | None, out: Path, store: str) -> int:
    """How many records were written."""
    results = load(store)
    found: dict[tuple[str, str, int], Record] = {}
    courses: set[str] = set()
    for name in suites or results.suites():
        suite: Suite = registry.load("suites", name)
        courses |= {one.metric for one in suite.timed}
        for records in results.tables(name, agents=agents, items=bool(suite.timed)).values():
            found |= {(record.cell.problem, record.cell.agent, record.cell.seed): record for record in records}
    if not found:
        raise CalibrantError(f"store {results.store.name} has no such records to export")
    return export_records([record for _, record in sorted(found.items())], out, courses)
