"""Records that travel: what leaves a store enters another as it was; what is damaged enters nowhere."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.test_store import failure, make, plain

from calibrant.engine.exchange import export_records, import_records, read_records
from calibrant.engine.store import open_store
from calibrant.types import CalibrantError


def exported(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl.gz"
    assert export_records([make(0), make(1), failure(2)], path) == 3
    return path


def test_what_leaves_enters_as_it_was_without_items_and_pictures(tmp_path: Path) -> None:
    path = exported(tmp_path)
    with open_store(str(tmp_path / "new.db")) as store:
        assert import_records(path, store) == (3, 0)
        found = [plain(one, items=False, pictures=False) for one in store.records()]
        assert import_records(path, store) == (3, 2)  # the failed cell may be tried again
    assert found == [plain(one, items=False, pictures=False) for one in (make(0), make(1), failure(2))]


def test_courses_through_time_travel_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl.gz"
    export_records([make(0), failure(1)], path, courses={"kl", "regret"})
    with open_store(str(tmp_path / "new.db")) as store:
        import_records(path, store)
        found = [plain(one, pictures=False) for one in store.records(items=True)]
    assert found == [plain(one, pictures=False) for one in (make(0), failure(1))]
    assert make(0).scores["kl"].items is not None


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    first = exported(tmp_path).read_bytes()
    assert exported(tmp_path).read_bytes() == first
    export_records(read_records(tmp_path / "records.jsonl.gz"), tmp_path / "again.jsonl.gz")
    assert (tmp_path / "again.jsonl.gz").read_bytes() == first


def test_a_success_is_left_as_it_is_and_a_failure_is_replaced(tmp_path: Path) -> None:
    path = exported(tmp_path)
    mine = make(0, scores={})
    with open_store(str(tmp_path / "mine.db")) as store:
        store.append(mine)
        store.append(failure(1))
        import_records(path, store)
        by_seed = {one.cell.seed: one for one in store.records()}
    assert by_seed[0].scores == {} and by_seed[1].scores["kl"].mean == 1.5


def rewritten(path: Path, change: Callable[[list[Any]], object]) -> Path:
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    change(lines)
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    return path


DAMAGES: dict[str, Callable[[list[Any]], object]] = {
    "line 1 .* should be": lambda lines: lines[0].update(version=2),
    "line 3 .* no 'agent'": lambda lines: lines[2].pop("agent"),
    "line 3 .* seed should be of type int": lambda lines: lines[2].update(seed="0"),
    "line 4 .* not finite": lambda lines: lines[3]["scores"].update(kl=[float("nan")]),
    "line 2 .* no '": lambda lines: lines.pop(1),
    "line 3 .* could not convert": lambda lines: lines[2].update(courses={"kl": ["much"]}),
    "line 3 .* no 'regret'": lambda lines: lines[2].update(courses={"regret": [1.0]}),
    "line 3 .* no hours": lambda lines: lines[2]["cost"].update(hours=3),
}


@pytest.mark.parametrize("message", DAMAGES)
def test_a_damaged_line_is_named_and_nothing_is_kept(message: str, tmp_path: Path) -> None:
    path = rewritten(exported(tmp_path), DAMAGES[message])
    with open_store(str(tmp_path / "new.db")) as store:
        with pytest.raises(CalibrantError, match=message):
            import_records(path, store)
        assert not list(store.records())


@pytest.mark.parametrize("content", [b"", b"PK", gzip.compress(b"{}" * 100)[:-5], gzip.compress(b"\xff")])
def test_other_files_are_refused_in_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(CalibrantError, match="should be a file of `calibrant export`"):
        list(read_records(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CalibrantError, match="calibrant export"):
        list(read_records(tmp_path / "none"))
