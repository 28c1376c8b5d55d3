"""A URL becomes a database to read and write, and every failure of it becomes one sentence.

SQLite: write-ahead log (readers never wait for the writer), `synchronous=NORMAL` (safe against a killed process), and
write transactions that take the lock at their beginning and queue for it, so that none fails half-way. Reading
transactions take no write lock. PostgreSQL needs none of that; the statements are the same.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError

from calibrant.types import CalibrantError

TIMEOUT_SECONDS = 30.0
_WRITES = "calibrant_writes"
_KEPT = "finished cells are kept, and the same command continues from them"
_SENTENCES = (  # the beginning of SQLite's error name or PostgreSQL's SQLSTATE, and what it means to the user
    ("SQLITE_NOTADB", "{name} is not a store: the file is no SQLite database; nothing in it was changed"),
    ("SQLITE_CORRUPT", "store {name} is damaged or cut short ({detail}); nothing was changed, restore it from a copy"),
    ("SQLITE_FULL", "the disk that holds store {name} is full; free some space: " + _KEPT),
    ("53100", "the disk that holds store {name} is full; free some space: " + _KEPT),
    ("SQLITE_IOERR", "store {name} met a disk error ({detail}; a full disk or a quota can cause it): " + _KEPT),
    ("SQLITE_READONLY", "store {name} cannot be written: its file or its directory is read-only"),
    ("25006", "store {name} cannot be written: it is read-only"),
    ("42501", "store {name} does not let this user do that: {detail}"),
    ("SQLITE_CANTOPEN", "store {name} cannot be opened: this user may not read it, or not write in its directory"),
    ("SQLITE_PERM", "store {name} cannot be opened: this user may not read it, or not write in its directory"),
    ("SQLITE_BUSY", "store {name} was locked by another process for more than {timeout:g} s: " + _KEPT),
    ("SQLITE_LOCKED", "store {name} was locked by another process for more than {timeout:g} s: " + _KEPT),
    ("55P03", "store {name} was locked by another process for too long: " + _KEPT),
    ("", "store {name} cannot be used: {detail}"),
)


@dataclass(frozen=True)
class Database:
    """An engine and the name that messages call it by: as the user wrote it, without a password."""

    name: str
    engine: sa.Engine

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One consistent view of the database."""
        with _sentences(self.name), self.engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """One transaction: everything inside is kept, or nothing is."""
        with (
            _sentences(self.name),
            _uninterrupted(),
            self.engine.connect() as connection,
            connection.execution_options(**{_WRITES: True}).begin(),
        ):
            yield connection

    def use_write_ahead_log(self) -> None:
        """The file remembers it. Nothing to do on PostgreSQL."""
        if self.engine.dialect.name != "sqlite":
            return
        deadline = time.monotonic() + TIMEOUT_SECONDS
        with _sentences(self.name), contextlib.closing(self.engine.raw_connection()) as connection:
            while True:
                try:
                    connection.cursor().execute("PRAGMA journal_mode=WAL")
                    return
                except sqlite3.OperationalError as error:
                    # Two processes that make one store at once fail here at once, whatever the time-out.
                    if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)


def connect(url: str, *, create: bool) -> Database:
    """`results.db`, `sqlite:///results.db` or `postgresql://...`. With `create=False` no file is made."""
    if "://" not in url and not url.startswith("sqlite:"):
        return _sqlite(url, create)
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        raise _unknown_url() from None
    if parsed.drivername == "sqlite" and not parsed.query:
        return _sqlite(parsed.database or "", create)
    if parsed.drivername in ("postgresql", "postgresql+psycopg"):
        return _postgresql(parsed)
    raise _unknown_url()


def missing(name: str) -> CalibrantError:
    return CalibrantError(f"no store at {name}; `calibrant run` makes one")


# --- SQLite -----------------------------------------------------------------------------------


def _sqlite(file: str, create: bool) -> Database:
    if file in ("", ":memory:"):
        raise _unknown_url()
    uri = _file_uri(file, create)
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=file),
        creator=lambda: sqlite3.connect(
            uri, uri=True, timeout=TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        ),
    )
    sa.event.listen(engine, "connect", _set_up)
    sa.event.listen(engine, "begin", _begin)
    return Database(file, engine)


def _file_uri(file: str, create: bool) -> str:
    """Checks first what SQLite would only call "unable to open database file"."""
    path = Path(file)
    try:
        if path.is_dir():
            raise CalibrantError(f"{file} is a directory; a store is a file")
        if not path.exists() and not create:
            raise missing(file)
        if not path.parent.is_dir():
            raise CalibrantError(f"there is no directory {path.parent} for the store {file}")
        if path.exists() and not path.is_file():
            raise CalibrantError(f"{file} is not a regular file; a store is a file")
    except OSError as error:
        raise CalibrantError(f"store {file} cannot be opened: {error.strerror}") from None
    uri = path.absolute().as_uri()
    if create:
        return f"{uri}?mode=rwc"
    return f"{uri}?mode=ro&immutable=1" if _sealed(path) else f"{uri}?mode=rw"


def _sealed(path: Path) -> bool:
    """At rest where we may not write. SQLite can read such a file only when told that it does not change."""
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    return not writable and not any(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-journal"))


def _set_up(connection: Any, _: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITES) else "BEGIN")


# --- PostgreSQL -------------------------------------------------------------------------------


def _postgresql(url: sa.URL) -> Database:
    name = url.set(drivername="postgresql").render_as_string(hide_password=True)
    try:
        engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    except ImportError:
        raise CalibrantError(
            f"the store {name} needs the PostgreSQL driver: install it with `pip install 'calibrant[postgres]'`"
        ) from None
    return Database(name, engine)


# --- interrupts and failures ------------------------------------------------------------------


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C takes effect at the end: inside the connection pool it could leave a lock that nobody releases."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is None:
        yield  # other threads are never interrupted, and a handler from outside Python cannot be put back
        return
    pending: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: pending.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if pending:
            signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def _sentences(name: str) -> Iterator[None]:
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
        detail = (str(cause).splitlines() or [type(cause).__name__])[0]
        sentence = next(text for start, text in _SENTENCES if code.startswith(start))
        raise CalibrantError(sentence.format(name=name, detail=detail, timeout=TIMEOUT_SECONDS)) from error


def _unknown_url() -> CalibrantError:
    return CalibrantError("a store is named by a file, by sqlite:///FILE or by postgresql://USER@HOST/DATABASE")
