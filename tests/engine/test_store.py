"""What goes in comes out; nothing is lost, doubled or overwritten; every failure is one sentence."""

from __future__ import annotations

import dataclasses
import itertools
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sqlalchemy.dialects import postgresql

from calibrant.engine import rows, schema, store
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


# --- what goes in comes out --------------------------------------------------------------------------

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


# --- done, failed, again -----------------------------------------------------------------------------


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


def test_what_is_not_finite_leaves_no_trace(opened: SqlStore) -> None:
    with pytest.raises(CalibrantError, match="such a cell is recorded as failed"):
        opened.append(make(scores={"kl": Scores(0.5), "ece": Scores(float("nan"))}))
    assert list(opened.records()) == [] and opened.done([make().cell]) == set()


# --- damage ------------------------------------------------------------------------------------------
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
def test_a_damaged_row_names_its_cell(opened: SqlStore, file: Path, damage: str) -> None:
    opened.append(make())
    raw = sqlite3.connect(file)
    raw.execute(f"UPDATE calibrant_records SET {damage}")
    raw.commit()
    with pytest.raises(CalibrantError, match=r"record of cell testbed.* is damaged"):
        list(opened.records())


def test_damaged_arrays_do_not_touch_a_listing(opened: SqlStore, file: Path) -> None:
    opened.append(make())
    raw = sqlite3.connect(file)
    raw.execute("UPDATE calibrant_arrays SET items=substr(items, 1, 40)")
    raw.commit()
    assert len(list(opened.records(pictures=True))) == 1
    with pytest.raises(CalibrantError, match=r"record of cell .* is damaged"):
        list(opened.records(items=True))
    with pytest.raises(CalibrantError, match=r"record of cell .* is damaged"):
        opened.get(make().cell.id)


# --- one transaction ---------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", range(6))
def test_an_interrupt_between_statements_leaves_all_or_nothing(opened: SqlStore, file: Path, statement: int) -> None:
    opened.append(failure(0))
    engine, count = opened._base.engine, itertools.count()

    def interrupt(*_: object) -> None:
        if next(count) == statement:
            raise KeyboardInterrupt

    sa.event.listen(engine, "after_cursor_execute", interrupt)
    reached = statement < 5  # BEGIN, provenance, record, arrays, checkpoint
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


# --- speed and the other database --------------------------------------------------------------------
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
