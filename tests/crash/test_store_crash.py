"""Processes that write at once, are killed, interrupted, shut out or run out of disk: what was acknowledged stays."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibrant.engine.store import open_store
from calibrant.types import Cell, Record, Scores

PRELUDE = """
import os, resource, signal, sys
import alembic.command, numpy.random  # all before privileges are dropped
import numpy as np
from calibrant.engine.store import open_store
from calibrant.types import CalibrantError, Cell, Cost, Record, Scores

def record(seed):
    items = np.random.default_rng(seed).exponential(size=1000).astype(np.float32)
    return Record(Cell("p", "a", seed, f"cell{seed}"), {"kl": Scores(float(seed), n=1000, items=items)})

def become_nobody():
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)

def say(*words):
    print(*words, flush=True)

url = sys.argv[1]
"""


def start(code: str, file: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRELUDE + code, str(file), *map(str, arguments)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)


def lines(process: subprocess.Popen[str]) -> list[str]:
    """What a process says until it ends well."""
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return said.splitlines()


def finished_whole(file: Path) -> set[int]:
    """The seeds of the finished cells, after checking that the file is sound and each is there once with its items."""
    raw = sqlite3.connect(file)
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    raw.close()
    with open_store(str(file), create=False) as store:
        found = list(store.records(items=True))
    assert all(len(one.scores["kl"].items) == one.scores["kl"].n == 1000 for one in found)
    seeds = [one.cell.seed for one in found]
    assert len(seeds) == len(set(seeds))
    return set(seeds)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that any user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_two_processes_make_and_fill_one_store(tmp_path: Path) -> None:
    code = """
with open_store(url) as store:
    for seed in range(int(sys.argv[2]), int(sys.argv[3])):
        store.append(record(seed))
"""
    file = tmp_path / "results.db"
    writers = [start(code, file, 0, 120), start(code, file, 60, 180)]  # half of the cells are delivered twice
    for writer in writers:
        lines(writer)
    assert finished_whole(file) == set(range(180))
    assert [path.name for path in tmp_path.iterdir()] == ["results.db"]


@pytest.mark.parametrize("acknowledged", [1, 37])
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path, acknowledged: int) -> None:
    code = """
store = open_store(url)
for seed in range(100_000):
    store.append(record(seed))
    say(seed)
"""
    file = tmp_path / "results.db"
    writer = start(code, file)
    assert writer.stdout is not None
    said = [int(writer.stdout.readline()) for _ in range(acknowledged)]
    writer.kill()
    said += [int(line) for line in writer.stdout.read().splitlines()]
    assert writer.wait() == -signal.SIGKILL
    writer.stdout.close()
    kept = finished_whole(file)
    assert kept >= set(said) and len(kept) <= len(said) + 1
    with open_store(str(file)) as store:  # the next run continues
        store.append(Record(Cell("p", "a", -1, "next"), {"kl": Scores(0.0)}))
        assert len(list(store.records())) == len(kept) + 1


def test_interrupts_at_any_moment_leave_whole_records(tmp_path: Path) -> None:
    code = """
store = open_store(url)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born ignoring it
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
delays = np.random.default_rng(0).uniform(1e-5, 3e-3, 300)
for seed, delay in enumerate(delays):
    one = record(seed)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        store.append(one)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        say("interrupted", seed)
    else:
        say("kept", seed)
signal.setitimer(signal.ITIMER_REAL, 0)
store.append(record(9999))
"""
    file = tmp_path / "results.db"
    said = [line.split() for line in lines(start(code, file))]
    acknowledged = {int(seed) for word, seed in said if word == "kept"}
    assert len(said) - len(acknowledged) > 20  # the interrupts did hit
    kept = finished_whole(file)
    assert kept >= acknowledged | {9999}


def test_a_limit_of_the_file_system_keeps_what_is_done(tmp_path: Path) -> None:
    code = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open_store(url) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    try:
        for seed in range(1000):
            store.append(record(seed))
            say(seed)
    except CalibrantError as error:
        say(error)
    say(len(list(store.records(items=True))))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.append(record(5000))
"""
    file = tmp_path / "results.db"
    *acknowledged, sentence, readable = lines(start(code, file))
    assert "finished cells are kept, and the same command continues" in sentence
    assert 0 < len(acknowledged) == int(readable) < 1000
    assert finished_whole(file) == {int(seed) for seed in acknowledged} | {5000}


TRY = """
become_nobody()
for create in (True, False):
    try:
        with open_store(url, create=create) as store:
            say("read", len(list(store.records(items=True))))
            store.append(record(1))
            say("wrote")
    except CalibrantError as error:
        say(error)
"""


def fill(file: Path) -> None:
    with open_store(str(file)) as store:
        store.append(Record(Cell("p", "a", 0, "cell0"), {"kl": Scores(0.0)}))


def test_a_read_only_directory_is_told_and_its_store_can_be_read(open_directory: Path) -> None:
    file = open_directory / "results.db"
    open_directory.chmod(0o555)
    nothing_there = lines(start(TRY, file))
    assert "cannot be opened: this user may not" in nothing_there[0] and "no store at" in nothing_there[1]
    assert list(open_directory.iterdir()) == []

    open_directory.chmod(0o777)
    fill(file)
    before = file.read_bytes()
    file.chmod(0o444)
    open_directory.chmod(0o555)
    to_write, read, wrote = lines(start(TRY, file))
    assert "this user may not" in to_write or "read-only" in to_write
    assert read == "read 1"
    assert "cannot be written: its file or its directory is read-only" in wrote
    assert file.read_bytes() == before and list(open_directory.iterdir()) == [file]


def test_a_read_only_file_is_told_and_can_be_read(open_directory: Path) -> None:
    file = open_directory / "results.db"
    fill(file)
    before = file.read_bytes()
    file.chmod(0o444)
    said = lines(start(TRY, file))
    assert "read 1" in said and "wrote" not in said
    assert any("cannot be written: its file or its directory is read-only" in line for line in said)
    assert file.read_bytes() == before


def test_an_unreadable_file_is_told(open_directory: Path) -> None:
    file = open_directory / "results.db"
    fill(file)
    file.chmod(0)
    said = lines(start(TRY, file))
    assert len(said) == 2 and all("cannot be opened: this user may not read it" in line for line in said)
