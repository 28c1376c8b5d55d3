"""Where records live: SQLite by default, PostgreSQL by URL, one code path.

The store is the only truth about what is done. A cell is written in one transaction or not at all; a success is never
overwritten; a failure is kept with its reason until a later attempt replaces it. So cells may be delivered twice, by
several processes, and a run may be killed at any moment: the same command continues.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from calibrant.engine import database, ledger, rows, schema
from calibrant.engine.ledger import StudyTrial
from calibrant.types import CalibrantError, Cell, Record

T = TypeVar("T")
_BATCH = 1000  # names in one statement, and rows fetched at once
_COUNTED = {"preserve_rowcount": True}  # not RETURNING: an interrupt before its row is fetched would keep SQLite's lock


def open_store(url: str, *, create: bool = True) -> SqlStore:
    """Open the store at a file name, `sqlite:///FILE` or `postgresql://...`, and upgrade older tables.

    `create=False` is for commands that read: a store that is not there is an error, and nothing is made.
    """
    base = database.connect(url, create=create)
    try:
        schema.prepare(base, create=create)
    except BaseException:
        base.engine.dispose()
        raise
    return SqlStore(base)


class SqlStore:
    """Records in a database. Use `open_store`, as a context manager; safe to share between threads."""

    def __init__(self, base: database.Database) -> None:
        self._base = base
        self.name = base.name

    def __enter__(self) -> SqlStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._base.engine.dispose()

    def done(self, cells: Iterable[Cell]) -> set[str]:
        """The ids of those cells that have finished well."""
        return self._which(cells, schema.records.c.reason.is_(None))

    def failed(self, cells: Iterable[Cell]) -> set[str]:
        """The ids of those cells whose last attempt failed."""
        return self._which(cells, schema.records.c.reason.is_not(None))

    def append(self, record: Record) -> None:
        """Keep a record: atomic, and idempotent because a success stays as it was first written."""
        new = rows.encode(record)
        dialect = self._base.engine.dialect.name
        with self._base.writing() as connection:
            connection.execute(keep_provenance(dialect), new.provenance)
            written = connection.execute(keep_record(dialect), new.record, execution_options=_COUNTED).rowcount
            if written and new.arrays:
                connection.execute(schema.arrays.insert(), new.arrays)
            connection.execute(schema.checkpoints.delete().where(schema.checkpoints.c.cell == record.cell.id))

    def records(
        self,
        problems: Collection[str] | None = None,
        agents: Collection[str] | None = None,
        items: bool = False,
        pictures: bool = False,
    ) -> Iterator[Record]:
        """Stream the records of these problems and agents (None: all), ordered by problem, agent and seed.

        The order does not depend on who finished first, so neither does any number computed from it.
        """
        query = listing(items, pictures)
        if agents is not None:
            query = query.where(schema.records.c.agent.in_(sorted(set(agents))))
        # Sorted batches of problems one after another are in the same order as one query would be.
        queries = (
            [query]
            if problems is None
            else [query.where(schema.records.c.problem.in_(some)) for some in _batches(sorted(set(problems)))]
        )
        with self._base.reading() as connection:
            known: dict[str, Any] = {}
            for one in queries:
                for row in connection.execute(one, execution_options={"yield_per": _BATCH}):
                    yield self._record(row, known)

    def get(self, cell_id: str) -> Record | None:
        """One record with all that belongs to it."""
        with self._base.reading() as connection:
            row = connection.execute(listing(True, True).where(schema.records.c.cell == cell_id)).first()
        return self._record(row, {}) if row else None

    @property
    def url(self) -> str:
        """What opens this store in another process."""
        return self._base.engine.url.render_as_string(hide_password=False)

    def keep_checkpoint(self, cell: str, chunk: str, step: int, body: bytes) -> None:
        """Where the chunk stands whose last cell this is; an earlier one is replaced."""
        row = {"cell": cell, "chunk": chunk, "step": step, "body": body}
        with self._base.writing() as connection:
            connection.execute(keep_checkpoint(self._base.engine.dialect.name), row)

    def checkpoint(self, cell: str, chunk: str) -> tuple[int, bytes] | None:
        """The step and the state that the very same chunk has reached."""
        table = schema.checkpoints
        wanted = sa.select(table.c.step, table.c.body).where(table.c.cell == cell, table.c.chunk == chunk)
        with self._base.reading() as connection:
            found = connection.execute(wanted).first()
        return None if found is None else (int(found.step), bytes(found.body))

    def keep_trials(self, about: Mapping[str, Any], trials: Sequence[StudyTrial]) -> None:
        """Keep trials of one study, whose settings are `about`: all or none, and a judged one stays as it is."""
        dialect = self._base.engine.dialect.name
        with self._base.writing() as connection:
            if trials:
                body = json.dumps(dict(about), allow_nan=False, sort_keys=True)
                connection.execute(keep_study(dialect), {"name": trials[0].study, "body": body})
                connection.execute(keep_trial(dialect), [ledger.encode(trial) for trial in trials])

    def trials(self, study: str) -> list[StudyTrial]:
        """The trials of a study, by number."""
        table = schema.trials
        with self._base.reading() as connection:
            found = connection.execute(sa.select(table).where(table.c.study == study).order_by(table.c.number))
            return [ledger.decode(dict(row)) for row in found.mappings()]

    def studies(self) -> dict[str, dict[str, Any]]:
        """Every study by name, with its settings."""
        with self._base.reading() as connection:
            found = connection.execute(sa.select(schema.studies)).all()
        return {name: json.loads(body) for name, body in sorted(found)}

    def keep_receipt(self, paper: str, item: str, body: Mapping[str, Any]) -> None:
        """Keep a receipt; one that came out the same before only gets a new time."""
        text = json.dumps(dict(body), allow_nan=False, sort_keys=True)
        made = datetime.now(UTC).isoformat(timespec="microseconds")
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        row = {"digest": digest, "paper": paper, "item": item, "made": made, "body": text}
        with self._base.writing() as connection:
            connection.execute(keep_receipt(self._base.engine.dialect.name), row)

    def receipts(self, paper: str, item: str) -> list[dict[str, Any]]:
        """The receipts of a paper's item, the latest last."""
        table = schema.receipts
        wanted = sa.select(table.c.body).where(table.c.paper == paper, table.c.item == item)
        with self._base.reading() as connection:
            return [json.loads(body) for body in connection.scalars(wanted.order_by(table.c.made, table.c.digest))]

    def _which(self, cells: Iterable[Cell], state: sa.ColumnElement[bool]) -> set[str]:
        cell = schema.records.c.cell
        found: set[str] = set()
        with self._base.reading() as connection:
            for ids in _batches([one.id for one in cells]):
                found.update(connection.scalars(sa.select(cell).where(cell.in_(ids), state)))
        return found

    def _record(self, row: sa.Row[*tuple[Any, ...]], known: dict[str, Any]) -> Record:
        """`known` keeps each provenance parsed once."""
        cell_id, problem, agent, seed, reason, scores, cost, digest, body, *packed = row
        try:
            if digest not in known:
                known[digest] = json.loads(body)
            return rows.decode(Cell(problem, agent, seed, cell_id), reason, scores, cost, known[digest], *packed)
        except (ValueError, TypeError, KeyError, AttributeError, CalibrantError) as error:
            raise CalibrantError(
                f"the record of cell {cell_id} in store {self.name} is damaged or from a newer Calibrant: {error}"
            ) from error


# --- statements, the same for both databases ----------------------------------------------------


def listing(items: bool, pictures: bool) -> sa.Select[*tuple[Any, ...]]:
    """Records with their provenance; the arrays' table is touched only when arrays are asked for."""
    records, provenance, arrays = schema.records, schema.provenance, schema.arrays
    source = records.outerjoin(provenance, records.c.provenance == provenance.c.digest)
    columns: list[sa.ColumnElement[Any]] = [*records.c, provenance.c.body]
    if items or pictures:
        source = source.outerjoin(arrays, records.c.cell == arrays.c.cell)
        columns += [arrays.c["items"] if items else sa.null(), arrays.c.picture if pictures else sa.null()]
    order = (records.c.problem, records.c.agent, records.c.seed, records.c.cell)
    return sa.select(*columns).select_from(source).order_by(*order)


def keep_provenance(dialect: str) -> sa.Insert:
    return _insert(dialect, schema.provenance).on_conflict_do_nothing()


def keep_record(dialect: str) -> sa.Insert:
    """Insert, or replace a failure; leaves a success alone and then counts no row."""
    insert = _insert(dialect, schema.records)
    key, *rest = schema.records.c
    return insert.on_conflict_do_update(
        index_elements=[key],
        set_={column.name: insert.excluded[column.name] for column in rest},
        where=schema.records.c.reason.is_not(None),
    )


def keep_study(dialect: str) -> sa.Insert:
    return _insert(dialect, schema.studies).on_conflict_do_nothing()


def keep_trial(dialect: str) -> sa.Insert:
    """Insert, or replace one that is still open."""
    insert, table = _insert(dialect, schema.trials), schema.trials
    rest = [column.name for column in table.c if not column.primary_key]
    return insert.on_conflict_do_update(
        index_elements=[table.c.study, table.c.number],
        set_={name: insert.excluded[name] for name in rest},
        where=table.c.state == "open",
    )


def keep_checkpoint(dialect: str) -> sa.Insert:
    insert = _insert(dialect, schema.checkpoints)
    rest = [column.name for column in schema.checkpoints.c if not column.primary_key]
    return insert.on_conflict_do_update(index_elements=["cell"], set_={name: insert.excluded[name] for name in rest})


def keep_receipt(dialect: str) -> sa.Insert:
    insert = _insert(dialect, schema.receipts)
    return insert.on_conflict_do_update(index_elements=["digest"], set_={"made": insert.excluded.made})


def _insert(dialect: str, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def _batches(values: Sequence[T]) -> Iterator[list[T]]:
    remaining = iter(values)
    while batch := list(islice(remaining, _BATCH)):
        yield batch
