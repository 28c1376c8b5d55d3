"""Tables are made, upgraded with what is in them, and left alone when they are not ours to change."""

from __future__ import annotations

import dataclasses
import io
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from calibrant.engine import database, migrations, rows, schema
from calibrant.engine.store import open_store
from calibrant.types import CalibrantError, Cell, Record, Scores


def make(seed: int = 0) -> Record:
    scores = {"kl": Scores(seed + 0.5, 0.25, 3, items=np.float32([1, 2, seed]))}
    return Record(Cell("testbed", "mlp", seed, f"cell{seed}"), scores, provenance={"package": "0.1.0"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


# --- versions ----------------------------------------------------------------------------------------


def at_version(file: Path, version: str) -> None:
    base = database.connect(str(file), create=True)
    with base.writing() as connection:
        migrations.upgrade(connection, version)
    base.engine.dispose()


def insert_as_of_0001(file: Path, record: Record) -> None:
    new = rows.encode(record)
    assert new.arrays is not None
    raw = sqlite3.connect(file)
    tables = {
        "provenance": new.provenance,
        "records": new.record,
        "arrays": {"cell": record.cell.id, "items": new.arrays["items"]},
    }
    for table, row in tables.items():
        marks = ",".join("?" * len(row))
        raw.execute(f"INSERT INTO calibrant_{table} ({','.join(row)}) VALUES ({marks})", tuple(row.values()))
    raw.commit()
    raw.close()


def test_the_newest_step_is_the_version_we_say() -> None:
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert scripts.get_heads() == [schema.VERSION]
    assert scripts.get_bases() == ["0001"]


def test_all_steps_together_make_the_tables_we_use(file: Path) -> None:
    with open_store(str(file)) as one, one._base.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE})
        assert compare_metadata(context, schema.metadata) == []


@pytest.mark.parametrize("create", [True, False])
def test_an_older_store_is_upgraded_with_its_records(file: Path, create: bool) -> None:
    at_version(file, "0001")
    insert_as_of_0001(file, make(0))
    with open_store(str(file), create=create) as one:
        one.append(dataclasses.replace(make(1), picture={"mean": np.float32([[0.5]])}))
        old, new = one.records(items=True, pictures=True)
    assert old.cell == make(0).cell and old.scores["kl"].items.tolist() == [1, 2, 0] and old.picture == {}
    assert new.scores["kl"].mean == 1.5 and new.picture["mean"].tolist() == [[0.5]]


def test_a_failing_upgrade_changes_nothing(file: Path) -> None:
    at_version(file, "0001")
    insert_as_of_0001(file, make(0))
    raw = sqlite3.connect(file)
    raw.execute("ALTER TABLE calibrant_arrays ADD COLUMN picture")  # so that the step to 0002 fails
    for _ in range(2):
        with pytest.raises(CalibrantError, match="cannot be used: duplicate column"):
            open_store(str(file))
    assert raw.execute("SELECT version_num FROM calibrant_alembic_version").fetchall() == [("0001",)]
    assert raw.execute("SELECT count(*) FROM calibrant_records").fetchone() == (1,)


def test_tables_are_all_made_or_none(file: Path) -> None:
    raw = sqlite3.connect(file)
    for table in ("studies", "trials", "calibrant_arrays"):  # the last is in the way of the third of ours
        raw.execute(f"CREATE TABLE {table} (name)")
    with pytest.raises(CalibrantError, match="calibrant_arrays already exists"):
        open_store(str(file))
    tables = raw.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name").fetchall()
    assert tables == [("calibrant_arrays",), ("studies",), ("trials",)]


@pytest.mark.parametrize("create", [True, False])
def test_a_newer_store_is_refused_and_left_alone(file: Path, create: bool) -> None:
    with open_store(str(file)) as one:
        one.append(make())
    raw = sqlite3.connect(file)
    raw.execute("UPDATE calibrant_alembic_version SET version_num='0099'")
    raw.commit()
    raw.close()
    before = file.read_bytes()
    with pytest.raises(CalibrantError, match=f"schema version 0099, but .* up to {schema.VERSION}"):
        open_store(str(file), create=create)
    assert file.read_bytes() == before


# --- whose database it is ----------------------------------------------------------------------------


def test_reading_makes_nothing(tmp_path: Path, file: Path) -> None:
    with pytest.raises(CalibrantError, match=r"no store at .*results\.db; `calibrant run` makes one"):
        open_store(str(file), create=False)
    assert list(tmp_path.iterdir()) == []
    file.touch()
    with pytest.raises(CalibrantError, match="no store at"):
        open_store(str(file), create=False)
    assert file.read_bytes() == b"" and list(tmp_path.iterdir()) == [file]


def test_the_database_of_another_application_is_refused(file: Path) -> None:
    raw = sqlite3.connect(file)
    raw.execute("CREATE TABLE customers (name)")
    raw.close()
    before = file.read_bytes()
    with pytest.raises(CalibrantError, match=r"belongs to another application \(its tables: customers\)"):
        open_store(str(file))
    assert file.read_bytes() == before


def test_a_database_shared_with_optuna_is_taken(file: Path) -> None:
    raw = sqlite3.connect(file)
    for table in ("studies", "trials", "version_info"):
        raw.execute(f"CREATE TABLE {table} (name)")
    raw.execute("CREATE TABLE alembic_version (version_num)")
    raw.execute("INSERT INTO alembic_version VALUES ('v3.2.0.a')")
    raw.commit()
    with pytest.raises(CalibrantError, match="no store at"):
        open_store(str(file), create=False)
    with open_store(str(file)) as one:
        one.append(make())
    with open_store(str(file), create=False) as one:
        assert len(list(one.records())) == 1
    assert raw.execute("SELECT version_num FROM alembic_version").fetchall() == [("v3.2.0.a",)]


# --- speed and the other database --------------------------------------------------------------------


def test_opening_an_up_to_date_store_is_quick_and_needs_no_alembic(file: Path) -> None:
    with open_store(str(file)) as one:
        one.append(make())
    code = (
        "import sys; from calibrant.engine.store import open_store; "
        "open_store(sys.argv[1]).close(); print('alembic' in sys.modules)"
    )
    run = [sys.executable, "-c", code, str(file)]
    env = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    assert subprocess.run(run, capture_output=True, text=True, check=True, env=env).stdout == "False\n"
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        open_store(str(file)).close()
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.05


def test_migrations_are_valid_for_postgresql() -> None:
    written = io.StringIO()
    options = {"as_sql": True, "output_buffer": written}
    context = MigrationContext.configure(dialect_name="postgresql", opts=options)
    steps = list(ScriptDirectory(str(Path(migrations.__file__).parent)).walk_revisions())[::-1]
    with Operations.context(context):
        for step in steps:
            step.module.upgrade()
    sql = written.getvalue()
    assert 'problem TEXT COLLATE "C" NOT NULL' in sql and "seed BIGINT NOT NULL" in sql
    assert "ALTER TABLE calibrant_arrays ADD COLUMN picture BYTEA" in sql
