"""Kept arrays: written whole or not at all, memory-mapped, and never trusted unread."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant.data import store
from calibrant.data.cards import Card, Expected
from calibrant.data.store import MANIFEST, data_folder, keep, manifest_of, open_arrays
from calibrant.data.verify import digest
from calibrant.types import CalibrantError

ARRAYS = {"x": np.arange(20, dtype=np.float64).reshape(10, 2), "y": np.array([0, 1] * 5, np.uint8)}


def toy(hashed: bool = True) -> Card:
    sha256 = {name: digest(array) if hashed else None for name, array in ARRAYS.items()}
    expected = (Expected("x", (10, 2), "float64", sha256["x"]), Expected("y", (10,), "uint8", sha256["y"], (5, 5)))
    return Card("toy", "Toy", "structured", 2, 8, 2, expected, (), "nobody", "none")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    keep(toy(), ARRAYS, tmp_path, "a test")
    return tmp_path


def test_what_is_kept_is_opened(kept: Path) -> None:
    arrays = open_arrays(toy(), kept)
    assert arrays is not None and all(isinstance(array, np.memmap) for array in arrays.values())
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
    assert not arrays["x"].flags.writeable
    manifest = manifest_of(toy(), kept)
    assert manifest is not None and manifest.source == "a test" and manifest.sha256["x"] == digest(ARRAYS["x"])
    assert sorted(path.name for path in (kept / "toy").iterdir()) == [MANIFEST, "x.npy", "y.npy"]


def test_nothing_kept_is_none(tmp_path: Path) -> None:
    assert open_arrays(toy(), tmp_path) is None and manifest_of(toy(), tmp_path) is None


def test_without_a_manifest_there_is_no_dataset(kept: Path) -> None:
    (kept / "toy" / MANIFEST).unlink()
    assert open_arrays(toy(), kept) is None


def spoil_last_byte(place: Path) -> None:
    content = (place / "x.npy").read_bytes()
    (place / "x.npy").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def drop_counts(place: Path) -> None:
    np.save(place / "y.npy", np.zeros(10, np.uint8))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "a flipped bit": spoil_last_byte,
    "cut short": lambda place: (place / "x.npy").write_bytes((place / "x.npy").read_bytes()[:-8]),
    "empty": lambda place: (place / "x.npy").write_bytes(b""),
    "gone": lambda place: (place / "y.npy").unlink(),
    "other labels": drop_counts,
    "an object array": lambda place: np.save(place / "y.npy", np.array([None] * 10), allow_pickle=True),
    "half a manifest": lambda place: (place / MANIFEST).write_text('{"name": "toy", "sou'),
    "another manifest": lambda place: (place / MANIFEST).write_text("[]"),
    "a manifest of nothing": lambda place: (place / MANIFEST).write_text('{"source": "", "sha256": {}, "bytes": {}}'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_and_named(kept: Path, damage: str) -> None:
    assert open_arrays(toy(), kept) is not None  # verified once already: that must not hide what happens later
    DAMAGES[damage](kept / "toy")
    with pytest.raises(CalibrantError, match=r"'toy' .* is damaged .*calibrant data get toy"):
        open_arrays(toy(), kept)


def test_a_manifest_that_vouches_for_altered_arrays_does_not_help(kept: Path) -> None:
    """Only where no sha256 is published is the manifest's own believed."""
    altered = ARRAYS | {"x": ARRAYS["x"] + 1}
    keep(toy(hashed=False), altered, kept, "a test")
    assert open_arrays(toy(hashed=False), kept) is not None
    with pytest.raises(CalibrantError, match="another edition"):
        open_arrays(toy(), kept)


def test_where_no_hash_is_published_the_manifest_remembers(tmp_path: Path) -> None:
    keep(toy(hashed=False), ARRAYS, tmp_path, "a test")
    assert open_arrays(toy(hashed=False), tmp_path) is not None
    spoil_last_byte(tmp_path / "toy")
    with pytest.raises(CalibrantError, match="sha256"):
        open_arrays(toy(hashed=False), tmp_path)


# --- dying at any moment ------------------------------------------------------------------------


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", range(6))
def test_dying_before_any_step_leaves_no_half_dataset(kept: Path, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """Three files are synced and moved: six moments at which a writer may die."""
    steps = 0
    move, sync = Path.replace, os.fsync

    def step() -> None:
        nonlocal steps
        if steps == moment:
            raise Killed
        steps += 1

    def replace(self: Path, target: Path) -> Path:
        step()
        return move(self, target)

    def fsync(descriptor: int) -> None:
        step()
        sync(descriptor)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "replace", replace)
        patch.setattr(os, "fsync", fsync)
        keep(toy(), ARRAYS, kept, "a second time")
    assert open_arrays(toy(), kept) is None
    assert not list((kept / "toy").glob(".*.part"))
    keep(toy(), ARRAYS, kept, "a third time")
    assert open_arrays(toy(), kept) is not None


WRITER = """
import sys
from pathlib import Path
import numpy as np
from calibrant.data.cards import Card, Expected
from calibrant.data.store import keep
x = np.arange(2_000_000, dtype=np.float64).reshape(-1, 2)
card = Card("toy", "Toy", "structured", 2, 8, 2, (Expected("x", x.shape, "float64", None),), (), "", "")
print("ready", flush=True)
while True:
    keep(card, {"x": x}, Path(sys.argv[1]), "a writer that is killed")
"""


def test_a_killed_writer(tmp_path: Path) -> None:
    """SIGKILL while 16 MB are rewritten again and again: there is either the whole dataset or none."""
    card = Card("toy", "Toy", "structured", 2, 8, 2, (Expected("x", (1_000_000, 2), "float64", None),), (), "", "")
    for wait in (0.03, 0.2):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        time.sleep(wait)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        arrays = open_arrays(card, tmp_path)
        assert arrays is None or arrays["x"][-1, -1] == 1_999_999


def test_what_the_dead_left_is_swept_away_and_what_the_living_write_is_not(kept: Path) -> None:
    old, new = kept / "toy" / ".x.npy.1.part", kept / "toy" / ".x.npy.2.part"
    for left in (old, new):
        left.write_bytes(b"half")
    os.utime(old, (time.time() - 2 * store.STALE_SECONDS,) * 2)
    keep(toy(), ARRAYS, kept, "a test")
    assert not old.exists() and new.exists()


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "toy").write_text("a file where a folder should be")
    with pytest.raises(CalibrantError, match="cannot write to"):
        keep(toy(), ARRAYS, tmp_path, "a test")


# --- where --------------------------------------------------------------------------------------


def test_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "mine"))
    assert data_folder() == tmp_path / "mine" and data_folder(tmp_path) == tmp_path
    monkeypatch.delenv("CALIBRANT_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "calibrant" / "data"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".local" / "share" / "calibrant" / "data"
    assert data_folder("~/x") == tmp_path / "x"


def test_the_manifest_is_readable_json(kept: Path) -> None:
    found = json.loads((kept / "toy" / MANIFEST).read_text())
    assert found["name"] == "toy" and found["bytes"]["y"] == (kept / "toy" / "y.npy").stat().st_size
