"""Where decoded arrays are kept: one folder per dataset, one .npy file per array, a manifest written last.

Every file is written beside its name and moved there when it is whole, and the manifest comes after all of them. So
a process may be killed at any moment: without a manifest there is no dataset, and a file that does not agree with its
manifest is never used. Arrays are memory-mapped when they are opened, and hashed once per process.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from calibrant.data.cards import Card, Expected
from calibrant.data.verify import check_array, digest
from calibrant.types import Array, CalibrantError

MANIFEST = "manifest.json"
STALE_SECONDS = 3600.0  # a part-written file that nobody touched for so long was left by a killed process


@dataclass(frozen=True)
class Manifest:
    """What is kept of a dataset, and where it came from."""

    name: str
    source: str
    sha256: Mapping[str, str]  # of each array
    bytes: Mapping[str, int]  # of each file


def data_folder(given: str | Path | None = None) -> Path:
    """The given folder, else `$CALIBRANT_DATA`, else the user's data folder."""
    chosen = given or os.environ.get("CALIBRANT_DATA")
    base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return Path(chosen).expanduser() if chosen else base / "calibrant" / "data"


def keep(card: Card, arrays: Mapping[str, Array], folder: Path, source: str) -> Manifest:
    """Write verified arrays, then their manifest."""
    place = folder / card.name
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / MANIFEST).unlink(missing_ok=True)
        _sweep(place)
        for one in card.arrays:
            array = np.ascontiguousarray(arrays[one.name], np.dtype(one.dtype).newbyteorder("<"))
            _write(_file(place, one), functools.partial(np.lib.format.write_array, array=array, allow_pickle=False))
        manifest = Manifest(
            card.name,
            source,
            {one.name: digest(arrays[one.name]) for one in card.arrays},
            {one.name: _file(place, one).stat().st_size for one in card.arrays},
        )
        text = json.dumps(dataclasses.asdict(manifest), indent=2).encode()
        _write(place / MANIFEST, lambda stream: stream.write(text))
    except OSError as error:
        raise CalibrantError(f"cannot write to '{place}': {error.strerror or error}") from error
    return manifest


def manifest_of(card: Card, folder: Path) -> Manifest | None:
    """What is kept, or None when nothing is. Reads no array; raises when the manifest is not one."""
    path = folder / card.name / MANIFEST
    try:
        found = json.loads(path.read_bytes())
        names = [one.name for one in card.arrays]
        sha256 = {name: str(found["sha256"][name]) for name in names}
        return Manifest(card.name, str(found["source"]), sha256, {name: int(found["bytes"][name]) for name in names})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _damaged(card, path.parent, f"{MANIFEST}: {type(error).__name__}") from error


def open_arrays(card: Card, folder: Path) -> dict[str, Array] | None:
    """The kept arrays, memory-mapped and verified; None when nothing is kept; raises when anything is amiss."""
    manifest = manifest_of(card, folder)
    if manifest is None:
        return None
    place = folder / card.name
    arrays: dict[str, Array] = {}
    for one in card.arrays:
        path, sha256 = _file(place, one), manifest.sha256[one.name]
        try:
            if one.sha256 not in (None, sha256):
                raise CalibrantError(f"'{one.name}' is from another edition of the dataset")
            status = path.stat()
            if status.st_size != manifest.bytes[one.name]:
                raise CalibrantError(f"{path.name} has {status.st_size} bytes, not {manifest.bytes[one.name]}")
            arrays[one.name] = np.load(path, mmap_mode="r", allow_pickle=False)
            _verified(dataclasses.replace(one, sha256=sha256), path, status.st_size, status.st_mtime_ns)
        except (OSError, ValueError, CalibrantError) as error:
            raise _damaged(card, place, str(error)) from error
    return arrays


# --- parts --------------------------------------------------------------------------------------


@functools.cache
def _verified(expected: Expected, path: Path, size: int, changed: int) -> None:
    """Hash a file once per process; a file that was changed since is another file."""
    check_array(expected, np.load(path, mmap_mode="r", allow_pickle=False))


def _file(place: Path, expected: Expected) -> Path:
    return place / f"{expected.name}.npy"


def _write(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def _sweep(place: Path) -> None:
    for left in place.glob(".*.part"):
        with suppress(OSError):  # its writer may have finished meanwhile
            if time.time() - left.stat().st_mtime > STALE_SECONDS:
                left.unlink()


def _damaged(card: Card, place: Path, what: str) -> CalibrantError:
    return CalibrantError(f"what is kept of '{card.name}' in '{place}' is damaged ({what}); "
                          f"`calibrant data get {card.name}` makes it anew")  # fmt: skip
