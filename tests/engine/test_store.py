"""What goes in comes out; nothing is lost, doubled or overwritten; every failure is one sentence."""

from __future__ import annotations

import dataclasses
import io
import itertools
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sqlalchemy.dialects import postgresql

from calibrant.engine import database, migrations, rows, schema, store
from calibrant.engine.store import SqlStore, open_store
from calibrant.types import CalibrantError, Cell, Cost, Record, Scores

PROVENANCE = {"package": "0.1.0", "versions": {"jax": "0.10.2"}, "seeds": [1, 2]}
NUMBER = itertools.count()


def make(seed: int = 0, problem: str = "testbed?temp=0.1", agent: str = "mlp", **changes: Any) -> Record:
    """A finished record; the same arguments give the same cell."""
    scores = {"kl": Scores(seed + 0.5, 0.25, 3, 0.125, 0.0625, np.float32([1, 2, seed])), "ece": Scores(0.1)}
    record = Record(
        cell=Cell(problem, agent, seed, f"{problem}/{agent}/{seed}"),
        scores=scores,
        cost=Cost(fit_cpu_seconds=1.5, parameters=7),
        provenance=PROVENANCE,
        picture={"mean": np.float16([[0.5, 1.0], [0.0, 0.25]])},
    )
    return dataclasses.replace(record, **changes)


def failure(seed: int = 0, reason: str = "NaN loss", **cell: str) -> Record:
    return make(seed, scores={}, picture={}, reason=reason, **cell)


def plain(record: Record | None, items: bool = True, pictures: bool = True) -> Any:
    """A record as values that compare by ==, its arrays as bytes."""
    assert record is not None

    def exact(array: Any) -> Any:
        return None if array is None else (str(np.asarray(array).dtype), np.shape(array), np.asarray(array).tobytes())

    scores = {
        name: (one.mean, one.se, one.n, one.mc_bias, one.mc_se, exact(one.items) if items else None)
        for name, one in record.scores.items()
    }
    picture = {name: exact(array) for name, array in record.picture.items()} if pictures else {}
    return record.cell, scores, record.cost, record.provenance, picture, record.reason


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture
def opened(file: Path) -> Iterator[SqlStore]:
    with open_store(str(file)) as one:
        yield one


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    with open_store(str(tmp_path_factory.mktemp("store") / "shared.db")) as one:
        yield one


# --- what goes in comes out -----------------------------------------------------------------------

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ITEMS = st.none() | hnp.arrays(
    np.float32, st.integers(0, 20), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)
)
SCORES = st.builds(Scores, FINITE, FINITE, st.integers(0, 2**40), FINITE, FINITE, ITEMS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
COSTS = st.builds(Cost, *[FINITE] * 7, *[st.integers(0, 2**40)] * 3)
PICTURES = st.dictionaries(st.text(max_size=5), hnp.arrays(np.float32, hnp.array_shapes(max_dims=3)), max_size=2)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@settings(max_examples=60, deadline=None)
@given(
    problem=NAMES,
    agent=NAMES,
    seed=st.integers(-(2**63), 2**63 - 1),
    scores=st.dictionaries(st.text(), SCORES, max_size=4),
    cost=COSTS,
    provenance=st.dictionaries(st.text(), JSON, max_size=3),
    picture=PICTURES,
)
def test_round_trip(shared: SqlStore, problem: str, agent: str, seed: int, **rest: Any) -> None:
    record = Record(cell=Cell(problem, agent, seed, f"cell{next(NUMBER)}"), **rest)
    shared.append(record)
    assert plain(shared.get(record.cell.id)) == plain(record)
    listed = {one.cell.id: one for one in shared.records([problem], [agent], items=True, pictures=True)}
    assert plain(listed[record.cell.id]) == plain(record)


@settings(max_examples=40, deadline=None)
@given(reason=st.text(st.characters()))
def test_any_reason_is_kept_as_text(shared: SqlStore, reason: str) -> None:
    record = make(agent=f"agent{next(NUMBER)}", scores={}, picture={}, reason=reason)
    shared.append(record)
    found = shared.get(record.cell.id)
    assert found is not None and found.failed and found.reason is not None
    if not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in reason):
        assert found.reason == reason


def test_arrays_come_only_when_asked_for(opened: SqlStore) -> None:
    opened.append(make())
    assert [plain(one) for one in opened.records()] == [plain(make(), items=False, pictures=False)]
    assert [plain(one) for one in opened.records(items=True)] == [plain(make(), pictures=False)]
    assert [plain(one) for one in opened.records(pictures=True)] == [plain(make(), items=False)]
    assert opened.get("no such cell") is None


def test_numbers_of_array_libraries_are_taken(opened: SqlStore) -> None:
    record = make(
        scores={"kl": Scores(np.float32(0.5), np.float64(0.25), np.int64(2), items=np.float64([0.1, 0.2]))},
        cost=Cost(np.float32(1.5), parameters=np.int32(3)),
    )
    opened.append(record)
    found = opened.get(record.cell.id)
    assert found is not None and found.scores["kl"].mean == 0.5 and found.cost == Cost(1.5, parameters=3)
    assert found.scores["kl"].items.dtype == np.float32


def test_order_and_filters_do_not_depend_on_who_finished_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_BATCH", 2)  # several batches of problems, cells and rows
    records = [make(s, p, a) for p in ("a", "B", "é", "b?x=1", "b") for a in ("mlp", "Mlp") for s in (10, 9)]
    expected = sorted((r.cell.problem, r.cell.agent, r.cell.seed) for r in records)
    for name, order in {"forward": records, "backward": records[::-1]}.items():
        with open_store(str(tmp_path / name)) as one:
            for record in order:
                one.append(record)

            def keys(*where: Any, one: SqlStore = one) -> list[tuple[str, str, int]]:
                return [(r.cell.problem, r.cell.agent, r.cell.seed) for r in one.records(*where)]

            assert keys() == expected
            assert keys({"b", "a", "é", "none"}) == [key for key in expected if key[0] in {"b", "a", "é"}]
            assert keys(None, ["mlp"]) == [key for key in expected if key[1] == "mlp"]
            assert keys(["B"], ["Mlp"]) == [("B", "Mlp", 9), ("B", "Mlp", 10)]
            assert keys([]) == keys(None, []) == []
            assert one.done(r.cell for r in records) == {r.cell.id for r in records}


def test_provenance_is_kept_once(opened: SqlStore, file: Path) -> None:
    for seed in range(5):
        opened.append(make(seed))
    opened.append(make(5, provenance=PROVENANCE | {"package": "0.2.0"}))
    assert sqlite3.connect(file).execute("SELECT count(*) FROM calibrant_provenance").fetchone() == (2,)
    assert [r.provenance["package"] for r in opened.records()] == ["0.1.0"] * 5 + ["0.2.0"]


# --- done, failed, again --------------------------------------------------------------------------


def test_a_success_is_never_overwritten(opened: SqlStore) -> None:
    opened.append(make())
    for later in (make(), make(scores={"kl": Scores(9.0)}, picture={}), failure()):
        opened.append(later)
        assert [plain(one) for one in opened.records(items=True, pictures=True)] == [plain(make())]
        assert opened.done([make().cell]) == {make().cell.id}
        assert opened.failed([make().cell]) == set()


def test_a_failure_is_replaced_by_the_next_attempt(opened: SqlStore) -> None:
    cells = [make(0).cell, make(1).cell]
    opened.append(failure(0, "out of memory"))
    assert opened.done(cells) == set() and opened.failed(cells) == {cells[0].id}
    opened.append(failure(0, "timed out"))
    assert [one.reason for one in opened.records()] == ["timed out"]
    opened.append(make(0))
    assert opened.done(cells) == {cells[0].id} and opened.failed(cells) == set()
    assert plain(opened.get(cells[0].id)) == plain(make(0))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (make(scores={"kl": Scores(float("nan"))}), "metric 'kl' .* is not finite"),
        (make(scores={"kl": Scores(0.0, se=float("inf"))}), "metric 'kl' .* is not finite"),
        (make(scores={"kl": Scores(0.0, items=np.float32([1, np.nan]))}), "metric 'kl' .* is not finite"),
        (make(scores={"kl": Scores(0.0, items=np.float64([1e300]))}), "metric 'kl' .* is not finite"),
        (make(cost=Cost(fit_cpu_seconds=float("nan"))), "the cost of cell"),
        (make(provenance={"x": float("inf")}), "the provenance of cell"),
        (make(provenance={"x": object()}), "the provenance of cell"),
        (make(reason="failed, and yet has scores"), "should have no scores"),
        (make(2**63), "at most 64 bits"),
        (make(agent="file\udcff.py:Agent"), "not plain text"),
        (make(picture={"mean": np.array([None])}), "array 'mean' cannot be packed"),
    ],
)
def test_what_cannot_be_kept_is_refused(opened: SqlStore, wrong: Record, words: str) -> None:
    with pytest.raises(CalibrantError, match=words):
        opened.append(wrong)
    assert list(opened.records()) == []


# --- one transaction ------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", range(5))
def test_an_interrupt_between_statements_leaves_all_or_nothing(opened: SqlStore, file: Path, statement: int) -> None:
    opened.append(failure(0))
    engine, count = opened._base.engine, itertools.count()

    def interrupt(*_: object) -> None:
        if next(count) == statement:
            raise KeyboardInterrupt

    sa.event.listen(engine, "after_cursor_execute", interrupt)
    reached = statement < 4  # BEGIN, provenance, record, arrays
    if reached:
        with pytest.raises(KeyboardInterrupt):
            opened.append(make(0))
    else:
        opened.append(make(0))
    sa.event.remove(engine, "after_cursor_execute", interrupt)
    assert plain(opened.get(make(0).cell.id)) == plain(failure(0) if reached else make(0))
    assert sqlite3.connect(file).execute("SELECT count(*) FROM calibrant_arrays").fetchone() == (0 if reached else 1,)
    other = sqlite3.connect(file, timeout=0)
    other.execute("BEGIN IMMEDIATE")  # no lock is left behind
    other.close()
    opened.append(make(0))
    assert plain(opened.get(make(0).cell.id)) == plain(make(0))


def test_reading_needs_no_write_lock_and_writing_goes_on_meanwhile(opened: SqlStore, file: Path) -> None:
    for seed in range(3):
        opened.append(make(seed))
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    assert len(list(opened.records())) == 3 and len(opened.done([make(0).cell])) == 1
    with open_store(str(file)) as second:
        assert len(list(second.records())) == 3
    writer.close()
    listing = opened.records()
    next(listing)
    opened.append(make(3))
    assert len(list(listing)) == 2  # one consistent view
    assert len(list(opened.records())) == 4


def test_threads_may_share_a_store(opened: SqlStore) -> None:
    threads = [threading.Thread(target=lambda: [opened.append(make(seed)) for seed in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.cell.seed for one in opened.records()] == list(range(20))


# --- names of stores ------------------------------------------------------------------------------


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


# --- opening for reading only ---------------------------------------------------------------------


def test_reading_makes_nothing(tmp_path: Path, file: Path) -> None:
    with pytest.raises(CalibrantError, match=r"no store at .*results\.db; `calibrant run` makes one"):
        open_store(str(file), create=False)
    assert list(tmp_path.iterdir()) == []
    file.touch()
    with pytest.raises(CalibrantError, match="no store at"):
        open_store(str(file), create=False)
    assert file.read_bytes() == b"" and list(tmp_path.iterdir()) == [file]


# --- other files and other databases --------------------------------------------------------------


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


@pytest.mark.parametrize(
    "damage",
    [
        "scores='[1]'",
        "scores='{\"kl\":'",
        "scores='{\"kl\":[1,2,3,4,5,6,7]}'",
        "cost='{\"new\":1}'",
        "provenance='gone'",
    ],
)
def test_a_damaged_row_names_its_cell(file: Path, damage: str) -> None:
    finished(file, 1)
    raw = sqlite3.connect(file)
    raw.execute(f"UPDATE calibrant_records SET {damage}")
    raw.commit()
    with open_store(str(file)) as one, pytest.raises(CalibrantError, match=r"record of cell testbed.* is damaged"):
        list(one.records())


def test_damaged_arrays_do_not_touch_a_listing(file: Path) -> None:
    finished(file, 2)
    raw = sqlite3.connect(file)
    raw.execute("UPDATE calibrant_arrays SET items=substr(items, 1, 40)")
    raw.commit()
    with open_store(str(file)) as one:
        assert len(list(one.records(pictures=True))) == 2
        with pytest.raises(CalibrantError, match=r"record of cell .* is damaged"):
            list(one.records(items=True))
        with pytest.raises(CalibrantError, match=r"record of cell .* is damaged"):
            one.get(make(0).cell.id)


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


# --- versions -------------------------------------------------------------------------------------


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


def test_all_steps_together_make_the_tables_we_use(opened: SqlStore) -> None:
    with opened._base.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE})
        assert compare_metadata(context, schema.metadata) == []


@pytest.mark.parametrize("create", [True, False])
def test_an_older_store_is_upgraded_with_its_records(file: Path, create: bool) -> None:
    at_version(file, "0001")
    insert_as_of_0001(file, make(0))
    with open_store(str(file), create=create) as one:
        one.append(make(1))
        found = list(one.records(items=True, pictures=True))
    assert plain(found[0]) == plain(make(0, picture={})) and plain(found[1]) == plain(make(1))


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


@pytest.mark.parametrize("create", [True, False])
def test_a_newer_store_is_refused_and_left_alone(file: Path, create: bool) -> None:
    finished(file, 1)
    raw = sqlite3.connect(file)
    raw.execute("UPDATE calibrant_alembic_version SET version_num='0099'")
    raw.commit()
    raw.close()
    before = file.read_bytes()
    with pytest.raises(CalibrantError, match=f"schema version 0099, but .* up to {schema.VERSION}"):
        open_store(str(file), create=create)
    assert file.read_bytes() == before


# --- speed ----------------------------------------------------------------------------------------


def test_opening_an_up_to_date_store_is_quick_and_needs_no_alembic(file: Path) -> None:
    finished(file, 1)
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


def test_ten_thousand_records_are_listed_quickly(opened: SqlStore) -> None:
    template = rows.encode(make(scores={f"metric{i}": Scores(i / 7, 0.1 / 7, 1000) for i in range(12)}, picture={}))
    many = [template.record | {"cell": f"{i:032x}", "seed": i} for i in range(10_000)]
    with opened._base.writing() as connection:
        connection.execute(schema.provenance.insert(), template.provenance)
        connection.execute(schema.records.insert(), many)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        assert sum(1 for _ in opened.records()) == 10_000
        seconds.append(time.process_time() - start)
    assert min(seconds) < 2.0  # about 0.4 on a quiet machine


# --- the other database ---------------------------------------------------------------------------


def postgres(statement: Any) -> str:
    return str(statement.compile(dialect=postgresql.dialect()))


def test_statements_are_valid_for_postgresql() -> None:
    upsert = postgres(store.keep_record("postgresql"))
    assert "ON CONFLICT (cell) DO UPDATE SET problem = excluded.problem" in upsert
    assert upsert.endswith("WHERE calibrant_records.reason IS NOT NULL")
    assert "ON CONFLICT DO NOTHING" in postgres(store.keep_provenance("postgresql"))
    assert "INSERT INTO calibrant_arrays" in postgres(schema.arrays.insert())
    listing = postgres(store.listing(items=True, pictures=False).where(schema.records.c.problem.in_(["a"])))
    assert "LEFT OUTER JOIN calibrant_arrays" in listing and "calibrant_arrays.picture" not in listing
    assert "calibrant_arrays" not in postgres(store.listing(items=False, pictures=False))


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
