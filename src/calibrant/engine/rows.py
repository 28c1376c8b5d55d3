"""A record becomes rows, and rows become the record again. What is not a finite number is refused here."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.engine.packing import pack, unpack
from calibrant.types import Array, CalibrantError, Cell, Cost, Record, Scores

_DEFAULT_COST = dataclasses.asdict(Cost())
_NO_COST = dataclasses.asdict(Cost())
_DEFAULT_NUMBERS = (0.0, 1, 0.0, 0.0)  # of Scores, after the mean


@dataclass(frozen=True)
class Rows:
    """What one record writes into each table; `arrays` is None when there are none."""

    provenance: dict[str, Any]
    record: dict[str, Any]
    arrays: dict[str, Any] | None


def encode(record: Record) -> Rows:
    """The rows of a record, or a `CalibrantError` that says why it cannot be kept."""
    cell = record.cell
    _check(record)
    body = _json(cell, "provenance", dict(record.provenance))
    digest = hashlib.sha256(body.encode()).hexdigest()[:32]
    row = {
        "cell": cell.id,
        "problem": cell.problem,
        "agent": cell.agent,
        "seed": int(cell.seed),
        "reason": None if record.reason is None else _printable(record.reason),
        "scores": _json(cell, "scores", {name: _numbers(cell, name, scores) for name, scores in record.scores.items()}),
        "cost": _json(cell, "cost", _changed(record.cost)),
        "provenance": digest,
    }
    items = {name: _items(cell, name, one.items) for name, one in record.scores.items() if one.items is not None}
    arrays = {"items": pack(items) if items else None, "picture": pack(record.picture) if record.picture else None}
    return Rows(
        provenance={"digest": digest, "body": body},
        record=row,
        arrays={"cell": cell.id} | arrays if any(arrays.values()) else None,
    )


def decode(
    cell: Cell,
    reason: str | None,
    scores: str,
    cost: str,
    provenance: Mapping[str, Any],
    items: bytes | None = None,
    picture: bytes | None = None,
) -> Record:
    """The record that `encode` was given; what raises here is damaged."""
    found = {name: _scores(*numbers) for name, numbers in json.loads(scores).items()}
    if items is not None:
        found |= {name: dataclasses.replace(found[name], items=array) for name, array in unpack(items).items()}
    return Record(
        cell=cell,
        scores=found,
        cost=_cost(**json.loads(cost)),
        provenance=provenance,
        picture=unpack(picture) if picture is not None else {},
        reason=reason,
    )


def _scores(
    mean: float, se: float = 0.0, n: int = 1, mc_bias: float = 0.0, mc_se: float = 0.0, items: Any = None
) -> Scores:
    """As `Scores(...)`, whose frozen fields are set one by one: a board makes hundreds of thousands of them."""
    made = object.__new__(Scores)
    made.__dict__.update(mean=mean, se=se, n=n, mc_bias=mc_bias, mc_se=mc_se, items=items)
    return made


def _cost(**given: Any) -> Cost:
    """As `Cost(...)`, and for the same reason."""
    if unknown := given.keys() - _NO_COST.keys():
        raise TypeError(f"a cost has no {', '.join(sorted(unknown))}")
    made = object.__new__(Cost)
    made.__dict__.update(_NO_COST | given)
    return made


def _check(record: Record) -> None:
    cell = record.cell
    if record.failed and (record.scores or record.picture):
        raise CalibrantError(f"cell {cell.id} has a reason for its failure, so it should have no scores and no picture")
    for text in (cell.id, cell.problem, cell.agent):
        if _printable(text) != text:
            raise CalibrantError(f"cell {_printable(cell.id)} has a name that is not plain text: {_printable(text)}")
    if not -(2**63) <= cell.seed < 2**63:
        raise CalibrantError(f"cell {cell.id} should have a seed of at most 64 bits, not {cell.seed}")


def _numbers(cell: Cell, metric: str, scores: Scores) -> list[float | int]:
    """Mean, se, n, mc_bias, mc_se, without the defaults at the end."""
    numbers = [float(scores.mean), float(scores.se), int(scores.n), float(scores.mc_bias), float(scores.mc_se)]
    if not all(map(math.isfinite, numbers)):
        raise _not_finite(cell, metric)
    while len(numbers) > 1 and numbers[-1] == _DEFAULT_NUMBERS[len(numbers) - 2]:
        numbers.pop()
    return numbers


def _items(cell: Cell, metric: str, items: Array) -> Array:
    with np.errstate(over="ignore"):
        kept = np.asarray(items).astype(np.float32)
    if not np.isfinite(kept).all():
        raise _not_finite(cell, metric)
    return kept


def _not_finite(cell: Cell, metric: str) -> CalibrantError:
    return CalibrantError(f"metric '{metric}' of cell {cell.id} is not finite: such a cell is recorded as failed")


def _changed(cost: Cost) -> dict[str, float | int]:
    values = {name: type(default)(getattr(cost, name)) for name, default in _DEFAULT_COST.items()}
    return {name: value for name, value in values.items() if value != _DEFAULT_COST[name]}


def _json(cell: Cell, what: str, value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False, sort_keys=what == "provenance", separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise CalibrantError(f"the {what} of cell {cell.id} should be finite numbers and plain text: {error}") from None


def _printable(text: str) -> str:
    """Text that every database takes: reasons come from anywhere, and must never stop a run."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
