"""Named members out of zip, tar.gz and deb archives, in memory: nothing is unpacked to disk, nothing is run.

Because nothing is written, no entry can escape a folder. Sizes are taken from headers and compared with a limit
before memory is; links, duplicates and names that climb are refused.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from calibrant.types import CalibrantError

LIMIT_BYTES = 2**30  # of all members together; the largest catalogued set unpacks to 220 MB
PASSED_BYTES = 2**32  # how far into a compressed tar we look
BLOCK = 2**20


def read_members(archive: Path, members: Sequence[str], limit: int = LIMIT_BYTES) -> tuple[bytes, ...]:
    """The contents of `members`, in their order."""
    for name in members:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name:
            raise CalibrantError(f"'{name}' is no path inside an archive")
    try:
        with archive.open("rb") as stream:
            found = _open(stream, archive.name, set(members), limit)
    except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, tarfile.TarError, zipfile.BadZipFile,
            lzma.LZMAError, zlib.error) as error:  # fmt: skip
        raise CalibrantError(f"'{archive.name}' is damaged or cut short: {error}") from error
    missing = [name for name in members if name not in found]
    if missing:
        raise CalibrantError(f"'{archive.name}' holds no '{missing[0]}'")
    return tuple(found[name] for name in members)


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# --- the three kinds ----------------------------------------------------------------------------


def _open(stream: IO[bytes], name: str, wanted: set[str], limit: int) -> dict[str, bytes]:
    magic = stream.read(8)
    stream.seek(0)
    if magic.startswith(b"PK\x03\x04"):
        return _zip(stream, name, wanted, limit)
    if magic.startswith(b"\x1f\x8b"):
        with tarfile.open(fileobj=stream, mode="r:gz") as tar:
            return _tar(tar, name, wanted, limit)
    if magic == b"!<arch>\n":
        with tarfile.open(fileobj=_deb_data(stream, name), mode="r:*") as tar:
            return _tar(tar, name, wanted, limit)
    raise CalibrantError(f"'{name}' is no zip, tar.gz or deb archive")


def _zip(stream: IO[bytes], name: str, wanted: set[str], limit: int) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with zipfile.ZipFile(stream) as archive:
        entries = [entry for entry in archive.infolist() if entry.filename in wanted]
        _within(sum(entry.file_size for entry in entries), limit, name)
        for entry in entries:
            _new(entry.filename, found, name)
            with archive.open(entry) as member:
                found[entry.filename] = member.read(entry.file_size)
                if member.read(1):
                    raise CalibrantError(f"'{entry.filename}' in '{name}' is longer than announced")
    return found


def _tar(tar: tarfile.TarFile, name: str, wanted: set[str], limit: int) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    total = 0
    for entry in tar:
        _within(entry.offset_data, PASSED_BYTES, name)
        path = entry.name.removeprefix("./")
        if path not in wanted:
            continue
        _new(path, found, name)
        total += entry.size
        _within(total, limit, name)
        member = tar.extractfile(entry) if entry.isreg() else None
        if member is None:
            raise CalibrantError(f"'{path}' in '{name}' is not a plain file")
        found[path] = member.read()
    return found


def _deb_data(stream: IO[bytes], name: str) -> IO[bytes]:
    """A .deb is an `ar` archive; its files are in the member data.tar.*."""
    stream.seek(8)
    while header := stream.read(60):
        if len(header) < 60 or header[58:] != b"`\n":
            break
        title, size = header[:16].decode("ascii", "replace").strip().rstrip("/"), int(header[48:58])
        if title.startswith("data.tar"):
            _within(size, LIMIT_BYTES, name)
            return io.BytesIO(stream.read(size))
        stream.seek(size + size % 2, io.SEEK_CUR)
    raise CalibrantError(f"'{name}' is damaged or cut short: no data.tar inside")


# --- checks -------------------------------------------------------------------------------------


def _within(size: int, limit: int, name: str) -> None:
    if size > limit:
        raise CalibrantError(f"'{name}' unpacks to {size} bytes and more; expected at most {limit}")


def _new(member: str, found: dict[str, bytes], name: str) -> None:
    if member in found:
        raise CalibrantError(f"'{name}' holds '{member}' twice")
