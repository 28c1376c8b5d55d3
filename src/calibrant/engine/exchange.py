"""Records leave a store as one file and enter another: to publish a table with its cells, or to gather a cluster's.

The file is gzipped JSON lines. The first names the format; then every provenance once, before the records that it
belongs to, and every record as the store's own row has it. Scores, costs, reasons and provenance travel, and where the
items of a score are its course through time, so do they; the scores of other items and the pictures stay behind. The
same records give the same bytes. What is read is checked line by line, and nothing is kept of a file that is damaged
anywhere.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.engine import rows
from calibrant.engine.store import SqlStore
from calibrant.report.files import write_whole
from calibrant.types import Array, CalibrantError, Cell, Record

FORMAT = {"calibrant": "records", "version": 1}
_CELL = {"cell": str, "problem": str, "agent": str, "seed": int, "scores": dict, "cost": dict, "provenance": str}


def export_records(records: Iterable[Record], path: Path, courses: Collection[str] = ()) -> int:
    """Write records to a file, whole or not at all, with the items of the metrics that `courses` names; how many."""
    lines, seen, count = [_line(FORMAT)], set(), 0
    for record in records:
        encoded = rows.encode(_light(record))
        digest = encoded.provenance["digest"]
        if digest not in seen:
            seen.add(digest)
            lines.append(_line({"provenance": digest, "body": json.loads(encoded.provenance["body"])}))
        row = encoded.record | {name: json.loads(encoded.record[name]) for name in ("scores", "cost")}
        kept = {name: one.items for name, one in record.scores.items() if name in courses and one.items is not None}
        lines.append(
            _line(row | ({"courses": {name: _decimals(items) for name, items in kept.items()}} if kept else {}))
        )
        count += 1
    write_whole(path, gzip.compress("".join(lines).encode(), mtime=0))
    return count


def import_records(path: Path, store: SqlStore) -> tuple[int, int]:
    """Add a file's records to a store; how many the file has, and how many of them were there already.

    A success that the store has is left as it is.
    """
    records = list(read_records(path))
    there = store.done(record.cell for record in records)
    for record in records:
        if record.cell.id not in there:
            store.append(record)
    return len(records), len(there)


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file; a `CalibrantError` names the first line that is not as it should be."""
    try:
        text = gzip.decompress(path.read_bytes()).decode()
        if not text:
            raise EOFError("it is empty")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CalibrantError(f"{path} should be a file of `calibrant export`, gzipped JSON lines: {error}") from None
    known: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            content = json.loads(line)
            if number == 1:
                if content != FORMAT:
                    raise ValueError(f"it should be {json.dumps(FORMAT)}")
            elif "body" in content:
                known[content["provenance"]] = content["body"]
            else:
                yield _record(content, known)
        except (ValueError, TypeError, KeyError, AttributeError, CalibrantError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise CalibrantError(f"line {number} of {path} is damaged or from a newer Calibrant: {what}") from None


def _record(content: dict[str, Any], known: dict[str, Any]) -> Record:
    for name, kind in _CELL.items():
        if type(content[name]) is not kind:
            raise ValueError(f"{name} should be of type {kind.__name__}")
    cell = Cell(content["problem"], content["agent"], content["seed"], content["cell"])
    scores, cost = json.dumps(content["scores"]), json.dumps(content["cost"])
    record = rows.decode(cell, content["reason"], scores, cost, known[content["provenance"]])
    courses = {name: np.array(course, np.float32) for name, course in content.get("courses", {}).items()}
    scored = {name: replace(record.scores[name], items=course) for name, course in courses.items()}
    record = replace(record, scores={**record.scores, **scored})
    rows.encode(record)  # refuses what is not finite or not plain text
    return record


def _decimals(items: Array) -> list[float]:
    """The shortest decimals that are these numbers again in single precision."""
    return [float(str(item)) for item in np.asarray(items, np.float32)]


def _light(record: Record) -> Record:
    scores = {name: replace(score, items=None) for name, score in record.scores.items()}
    return replace(record, scores=scores, picture={})


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"
