"""A URL becomes a database; each thing that can be wrong with it is told in one sentence, and nothing is changed."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from calibrant.engine import database
from calibrant.engine.store import SqlStore, open_store
from calibrant.types import CalibrantError, Cell, Record, Scores


def make(seed: int = 0) -> Record:
    scores = {"kl": Scores(seed + 0.5, 0.25, 3, items=np.float32([1, 2, seed]))}
    return Record(Cell("testbed", "mlp", seed, f"cell{seed}"), scores, provenance={"package": "0.1.0"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture
def opened(file: Path) -> Iterator[SqlStore]:
    with open_store(str(file)) as one:
        yield one


# --- names of stores ---------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["results.db", "sqlite:///results.db", "./odd ?name#%41.db", "sqlite:///{here}/abs.db"])
def test_a_file_is_named_by_path_or_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(tmp_path)
    url = url.format(here=tmp_path)
    with open_store(url) as one:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir("elsewhere")  # a store stays where it was opened
        one.append(make())
    monkeypatch.chdir(tmp_path)
    name = url.removeprefix("sqlite:///")
    assert (tmp_path / name).is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([Path(name).name, "elsewhere"])
    with open_store(url, create=False) as one:
        assert len(list(one.records())) == 1


@pytest.mark.parametrize(
    "url",
    [
        "",
        ":memory:",
        "sqlite://",
        "sqlite:results.db",
        "sqlite:///x.db?mode=ro",
        "mysql://host/db",
        "postgresql+psycopg2://h/d",
        "://",
    ],
)
def test_other_names_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CalibrantError, match="a store is named by a file"):
        open_store(url)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_driver_names_its_extra_and_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(CalibrantError, match=r"calibrant\[postgres\]") as caught:
        open_store("postgresql://user:secret@host/results")
    assert "secret" not in str(caught.value)


# --- files that are no stores ------------------------------------------------------------------------


def finished(file: Path, count: int = 40) -> Path:
    with open_store(str(file)) as one:
        for seed in range(count):
            one.append(make(seed))
    return file


@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_no_database_is_left_alone(file: Path, create: bool) -> None:
    content = b"precious text\n" * 400
    file.write_bytes(content)
    with pytest.raises(CalibrantError, match="not a store: the file is no SQLite database"):
        open_store(str(file), create=create)
    assert file.read_bytes() == content


def test_a_corrupt_header_is_told(file: Path) -> None:
    content = bytearray(finished(file).read_bytes())
    content[:32] = b"\xff" * 32
    file.write_bytes(content)
    with pytest.raises(CalibrantError, match="not a store: the file is no SQLite database"):
        open_store(str(file))
    assert file.read_bytes() == content


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_a_truncated_store_is_told(file: Path, kept: float) -> None:
    content = finished(file).read_bytes()
    content = content[: int(len(content) * kept) // 4096 * 4096]
    file.write_bytes(content)
    with pytest.raises(CalibrantError, match="damaged or cut short"):
        open_store(str(file))
    assert file.read_bytes() == content


def test_damaged_pages_are_told_when_met(file: Path) -> None:
    content = bytearray(finished(file).read_bytes())
    # The first page holds the list of tables; everything after it is overwritten.
    content[4096:] = b"\xaa" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(CalibrantError, match="damaged or cut short"), open_store(str(file)) as one:
        list(one.records())


def test_directories_and_devices_are_no_stores(tmp_path: Path) -> None:
    with pytest.raises(CalibrantError, match="is a directory; a store is a file"):
        open_store(str(tmp_path))
    with pytest.raises(CalibrantError, match=r"there is no directory .*missing"):
        open_store(str(tmp_path / "missing" / "results.db"))
    with pytest.raises(CalibrantError, match="not a regular file"):
        open_store("/dev/null")
    with pytest.raises(CalibrantError, match="cannot be opened"):
        open_store(str(tmp_path / ("x" * 300)))
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_lasts_is_told(opened: SqlStore, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "TIMEOUT_SECONDS", 0.1)
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with open_store(str(file)) as waiting:
        with pytest.raises(CalibrantError, match=r"locked by another process for more than 0\.1 s: finished cells are"):
            waiting.append(make())
        holder.execute("ROLLBACK")
        waiting.append(make())
    assert opened.done([make().cell]) == {make().cell.id}


def test_a_store_in_the_making_waits_for_whoever_holds_the_file(file: Path) -> None:
    holder = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, holder.close)
    release.start()
    with open_store(str(file)) as one:
        one.append(make())
        assert len(list(one.records())) == 1
    release.join()


def test_a_full_database_keeps_what_is_done(opened: SqlStore) -> None:
    with opened._base.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 20}")
    kept = []
    with pytest.raises(CalibrantError, match=r"is full; .* finished cells are kept, and the same command continues"):
        for seed in range(1000):
            opened.append(make(seed))
            kept.append(seed)
    assert kept and [one.cell.seed for one in opened.records()] == kept
    with opened._base.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count=100000")
    opened.append(make(len(kept)))
    assert len(list(opened.records())) == len(kept) + 1
