"""`calibrant run` killed, interrupted, run twice at once, shut out: the same command continues to the same numbers."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest

from calibrant.engine.store import open_store
from calibrant.types import Array, Record

SLOW = """
import time
import numpy as np

def agent(seed, train, facts):
    time.sleep(0.4)
    weights = np.random.default_rng(seed).normal(size=(1, facts.inputs, facts.classes))
    return lambda x: x @ weights
"""

MENDABLE = """
import pathlib

def agent(seed, train, facts):
    if facts.temperature > 0.3 and not pathlib.Path("mended").exists():
        raise ValueError("not yet")
    return lambda x: [[[0.0] * facts.classes] * len(x)]
"""

SETTINGS = ("--where", "train=10", "--seeds", "1")  # 3 cells per agent
WHOLE = ("run", "testbed", "--agents", "mlp?steps=20,oracle", "--agent", "slow.py:agent", *SETTINGS)
SOME = ("run", "testbed", "--agents", "oracle", "--agent", "slow.py:agent", *SETTINGS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run was left in peace."""
    folder = tmp_path_factory.mktemp("sound")
    (folder / "slow.py").write_text(SLOW)
    assert outcome(folder, *WHOLE, "--executor", "local")["done"] == 9
    return folder


@pytest.fixture(scope="module")
def uninterrupted(sound: Path) -> dict[str, Record]:
    return stored(sound)


# --- running --------------------------------------------------------------------------------------


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    """In a session of its own, so that a signal to its process group is what Ctrl-C sends."""
    command = [sys.executable, "-c", "from calibrant.cli import main; main()", *words]
    out = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, text=True, start_new_session=True)


def finish(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    assert "Traceback" not in err
    return out, err


def outcome(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    out, _ = finish(start(folder, *words, "--json"), code)
    found: dict[str, Any] = json.loads(out)
    assert found["exit_code"] == code
    return found


def stored(folder: Path) -> dict[str, Record]:
    with open_store(str(folder / "calibrant.db"), create=False) as store:
        records = list(store.records(items=True, pictures=True))
    found = {record.cell.id: record for record in records}
    assert len(found) == len(records)
    return found


def count(folder: Path) -> int:
    """How many cells the store has, without disturbing whoever writes it."""
    try:
        connection = sqlite3.connect(f"file:{folder / 'calibrant.db'}?mode=ro", uri=True)
        try:
            return int(connection.execute("SELECT count(*) FROM calibrant_records").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0  # not there yet


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def assert_no_one_left(group: int) -> None:
    """Within a moment: a worker that was told to stop may still be on its way out."""
    deadline = time.monotonic() + 5
    while members := [one for one in psutil.process_iter(["status"]) if in_group(one, group)]:
        assert time.monotonic() < deadline, f"still there: {members}"
        time.sleep(0.05)


def in_group(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE
    except ProcessLookupError:
        return False


def assert_same(found: dict[str, Record], expected: dict[str, Record]) -> None:
    """Bit by bit: widths are fixed, so a cell's numbers do not depend on who ran beside it."""
    assert found.keys() == expected.keys()
    for cell_id, record in found.items():
        assert numbers(record) == numbers(expected[cell_id]), record.cell


def numbers(record: Record) -> dict[str, tuple[object, ...]]:
    assert record.reason is None
    scores = {
        name: (one.mean, one.se, one.n, one.mc_bias, one.mc_se, as_bytes(one.items))
        for name, one in record.scores.items()
    }
    return {**scores, **{f"picture {name}": (as_bytes(array),) for name, array in record.picture.items()}}


def as_bytes(array: Array | None) -> bytes:
    return b"" if array is None else np.asarray(array).tobytes()


# --- killed and interrupted -----------------------------------------------------------------------


def test_killed_at_random_moments_it_resumes_to_the_same_numbers(
    folder: Path, uninterrupted: dict[str, Record]
) -> None:
    before = 0
    for executor, more in (("processes", 1), ("local", 2)):
        process = start(folder, *WHOLE, "--executor", executor)
        until(lambda least=before + more: count(folder) >= least, process)  # type: ignore[misc]
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        process.communicate()
        after = count(folder)
        assert before + more <= after < 9
        before = after
    result = outcome(folder, *WHOLE, "--executor", "local")
    assert (result["total"], result["already"], result["done"]) == (9, before, 9 - before)
    assert_same(stored(folder), uninterrupted)


def test_a_cell_that_is_run_apart_has_the_same_numbers(folder: Path, uninterrupted: dict[str, Record]) -> None:
    """Cells of one cohort, run at different times, come to sit in other lanes beside other cells."""
    apart = ("run", "testbed", "--agents", "mlp?steps=20", "--seeds", "1", "--executor", "local")
    assert outcome(folder, *apart, "--where", "train=10,temp=0.5")["done"] == 1
    assert outcome(folder, *apart, "--where", "train=10")["done"] == 2
    assert_same(stored(folder), {key: one for key, one in uninterrupted.items() if one.cell.agent == "mlp?steps=20"})


@pytest.mark.parametrize("executor", ["local", "processes"])
def test_ctrl_c_leaves_a_store_to_resume_from(folder: Path, uninterrupted: dict[str, Record], executor: str) -> None:
    process = start(folder, *SOME, "--executor", executor, "--workers", "2")
    until(lambda: count(folder) >= 4, process)  # so that some are done and some are not
    os.killpg(process.pid, signal.SIGINT)
    out, _ = finish(process, 130)
    assert "interrupted; the same command continues from here" in out
    kept = count(folder)
    assert f"6 cells: 0 already there, {kept} done" in out and 4 <= kept < 6
    assert_no_one_left(process.pid)
    assert outcome(folder, *SOME, "--executor", "local")["already"] == kept
    assert_same(
        stored(folder), {key: one for key, one in uninterrupted.items() if not one.cell.agent.startswith("mlp")}
    )


def test_ctrl_c_before_the_first_cell_is_quiet(folder: Path) -> None:
    """Also for workers that are just being born: it is the parent's business alone."""
    process = start(folder, *SOME, "--executor", "processes", "--workers", "2")
    until(lambda: (folder / "calibrant.db").exists(), process)
    time.sleep(random.uniform(0, 0.8))
    os.killpg(process.pid, signal.SIGINT)
    _, err = finish(process, 130)
    assert all("cells" in line for line in err.splitlines()), err


# --- at once, and little by little ----------------------------------------------------------------


def test_two_runs_at_once_end_with_every_cell_once(folder: Path, uninterrupted: dict[str, Record]) -> None:
    both = [start(folder, *SOME, "--executor", "local", "--json") for _ in range(2)]
    results = [json.loads(finish(process)[0]) for process in both]
    assert all(one["total"] == one["already"] + one["done"] == 6 for one in results)
    assert_same(
        stored(folder), {key: one for key, one in uninterrupted.items() if not one.cell.agent.startswith("mlp")}
    )


def test_only_what_is_missing_is_run(folder: Path) -> None:
    words = ("run", "testbed", "--where", "train=10", "--executor", "local")
    steps = [
        (("--agents", "oracle", "--seeds", "1"), 0, 3),
        (("--agents", "oracle", "--agent", "slow.py:agent", "--seeds", "2"), 3, 9),
    ]
    for more, already, done in steps:
        result = outcome(folder, *words, *more)
        assert (result["already"], result["done"], result["failed"]) == (already, done, 0)


def test_a_failed_cell_is_told_shown_and_tried_again(folder: Path) -> None:
    (folder / "mendable.py").write_text(MENDABLE)
    settings = ("--where", "train=10", "--seeds", "1", "--executor", "local")
    words = ("run", "testbed", "--agent", "mendable.py:agent", *settings)
    out, err = finish(start(folder, *words), 1)
    assert "3 cells: 0 already there, 2 done, 1 failed" in out
    assert "  failed: mendable.py:agent@" in out and "ValueError: not yet" in out and "ValueError: not yet" in err
    rows = json.loads(finish(start(folder, "board", "testbed", "--json"))[0])["rows"]
    assert {(row["n"], row["failed"]) for row in rows} == {(2, 1)}
    again = outcome(folder, *words, code=1)
    assert (again["already"], again["done"], again["failed"]) == (2, 0, 1)
    assert again["reasons"][0].endswith("on testbed?temp=0.5: ValueError: not yet")
    (folder / "mended").touch()
    assert outcome(folder, *words)["done"] == 1
    assert not any(record.failed for record in stored(folder).values())


# --- shut out -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "board"])
def test_a_file_that_is_no_store_is_told_and_left_alone(folder: Path, command: str) -> None:
    file = folder / "calibrant.db"
    file.write_bytes(b"dear diary, " * 1000)
    _, err = finish(start(folder, command, "testbed"), 2)
    assert err == "calibrant: calibrant.db is not a store: the file is no SQLite database; nothing in it was changed\n"
    assert file.read_bytes() == b"dear diary, " * 1000
    assert sorted(path.name for path in folder.iterdir()) == ["calibrant.db", "slow.py"]


def test_a_damaged_store_is_told_and_left_alone(folder: Path, sound: Path) -> None:
    whole = (sound / "calibrant.db").read_bytes()
    file = folder / "calibrant.db"
    file.write_bytes(whole[: len(whole) // 2])
    for words in (("run", "testbed", "--agents", "oracle"), ("board", "testbed")):
        _, err = finish(start(folder, *words), 2)
        assert err.startswith("calibrant: store calibrant.db is damaged or cut short") and err.count("\n") == 1
    assert file.read_bytes() == whole[: len(whole) // 2]


def test_a_read_only_directory_is_told() -> None:
    """As another user where the tests run as root, whom nothing is read-only to; so everything is imported first."""
    code = """
import os, sys
import alembic.command
import calibrant.cli.running
from calibrant import registry
from calibrant.cli import main
from calibrant.engine.plan import make_plan
make_plan(registry.load("suites", "testbed"), "quick", ["oracle"])
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
main()
"""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        words = ("run", "testbed", "--agents", "oracle", "--store", f"{name}/results.db")
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert list(Path(name).iterdir()) == []
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"calibrant: store {name}/results.db cannot be opened: this user may not")
    assert done.stderr.count("\n") == 1
