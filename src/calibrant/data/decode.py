"""File formats into arrays: gzip, idx, tables of numbers, PNG, npz. Pure functions of bytes; nothing is unpickled.

Each one refuses what it does not know, and what is longer or shorter than it says, in one sentence.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.types import Array, CalibrantError

LIMIT_BYTES = 2**30  # decoded


def gunzip(blob: bytes, limit: int = LIMIT_BYTES) -> bytes:
    """Unpacked when it is gzip, as it is otherwise.

    >>> gunzip(b"plain")
    b'plain'
    """
    if not blob.startswith(b"\x1f\x8b"):
        return blob
    return _inflate(blob, 31, limit, "the gzip file")


def idx(blob: bytes) -> Array:
    """The format of MNIST (LeCun): two zeros, type 8, the rank, big-endian sizes, then unsigned bytes; may be gzipped.

    >>> idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9])).tolist()
    [7, 8, 9]
    """
    raw = gunzip(blob)
    if len(raw) < 4 or raw[:3] != b"\0\0\x08" or not 1 <= raw[3] <= 4 or len(raw) < 4 + 4 * raw[3]:
        raise CalibrantError("not an idx file of unsigned bytes")
    start = 4 + 4 * raw[3]
    shape = struct.unpack(f">{raw[3]}I", raw[4:start])
    if len(raw) - start != math.prod(shape):
        raise CalibrantError(f"an idx file of shape {list(shape)} holds {len(raw) - start} bytes: it is cut or padded")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def table(blob: bytes, separator: str | None, header: int = 0) -> Array:
    """Lines of numbers as float64 [rows, columns], after `header` lines; None separates by blanks.

    >>> table(b"a;b\\n1;2.5\\n3;4\\n", ";", header=1).tolist()
    [[1.0, 2.5], [3.0, 4.0]]
    """
    try:
        lines = blob.decode("ascii").splitlines()[header:]
        rows = [[float(field) for field in line.split(separator)] for line in lines if line.strip()]
    except ValueError as error:
        raise CalibrantError(f"not a table of numbers: {error}") from error
    if len({len(row) for row in rows}) != 1:
        raise CalibrantError("a table whose rows differ in length, or that has none")
    return np.array(rows, np.float64)


def npz(blob: bytes) -> Mapping[str, Array]:
    """The arrays of a NumPy archive. Those that hold pickled objects are refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
            if sum(entry.file_size for entry in entries) > LIMIT_BYTES:
                raise CalibrantError(f"an npz file that unpacks to more than {LIMIT_BYTES} bytes")
            return {entry.filename.removesuffix(".npy"): _npy(archive.read(entry)) for entry in entries}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise CalibrantError(f"not an npz file of plain arrays: {error}") from error


def png(blob: bytes) -> Array:
    """A picture of 8-bit red, green and blue, not interlaced, as uint8 [height, width, 3] (PNG, ISO/IEC 15948)."""
    width, height, packed = _png_chunks(blob)
    stride = 3 * width + 1
    if height * stride > LIMIT_BYTES:
        raise CalibrantError(f"a PNG of {height} x {width} pixels; expected at most {LIMIT_BYTES} bytes")
    raw = _inflate(packed, zlib.MAX_WBITS, height * stride, "the PNG")
    if len(raw) != height * stride:
        raise CalibrantError("a PNG whose pixels are cut short")
    lines = np.frombuffer(raw, np.uint8).reshape(height, stride)
    return _unfiltered(lines[:, 0], lines[:, 1:].reshape(height, width, 3))


# --- parts --------------------------------------------------------------------------------------


def _inflate(blob: bytes, wbits: int, limit: int, what: str) -> bytes:
    """zlib with a limit: at most `limit` bytes are ever made."""
    machine = zlib.decompressobj(wbits)
    try:
        raw = machine.decompress(blob, limit)
        more = machine.unconsumed_tail and machine.decompress(machine.unconsumed_tail, 1)
    except zlib.error as error:
        raise CalibrantError(f"{what} is damaged: {error}") from error
    if more:
        raise CalibrantError(f"{what} unpacks to more than {limit} bytes")
    if not machine.eof:
        raise CalibrantError(f"{what} is cut short")
    return raw


def _npy(raw: bytes) -> Array:
    stream = io.BytesIO(raw)
    array = np.lib.format.read_array(stream, allow_pickle=False)
    if stream.read(1):
        raise ValueError("an array is longer than its header says")
    return array


def _png_chunks(blob: bytes) -> tuple[int, int, bytes]:
    """Width, height and the packed pixels, with every checksum checked."""
    if not blob.startswith(b"\x89PNG\r\n\x1a\n"):
        raise CalibrantError("not a PNG")
    packed: list[bytes] = []
    size: tuple[int, int] | None = None
    at = 8
    while at + 12 <= len(blob):
        length, kind = struct.unpack(">I4s", blob[at : at + 8])
        body, check = blob[at + 8 : at + 8 + length], blob[at + 8 + length : at + 12 + length]
        if len(check) < 4 or zlib.crc32(kind + body) != int.from_bytes(check, "big"):
            raise CalibrantError("a PNG with a damaged chunk")
        if kind == b"IHDR" and length == 13:
            *wide_high, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            if (depth, colour, interlaced) != (8, 2, 0):
                raise CalibrantError("a PNG of another kind; expected 8-bit red, green, blue, not interlaced")
            size = (wide_high[0], wide_high[1])
        elif kind == b"IDAT":
            packed.append(body)
        elif kind == b"IEND" and size:
            return *size, b"".join(packed)
        at += 12 + length
    raise CalibrantError("a PNG that is cut short")


def _unfiltered(kinds: Array, lines: Array) -> Array:
    """Each line was stored as differences: 0 none, 1 left, 2 above, 3 their mean, 4 the nearest of the neighbours."""
    if kinds.size and kinds.max() > 4:
        raise CalibrantError("a PNG with an unknown filter")
    out = lines.copy()
    left = kinds == 1
    out[left] = np.cumsum(lines[left], axis=1, dtype=np.uint8)  # needs no other line: all of them at once
    for row in np.flatnonzero(kinds > 1):
        above = out[row - 1] if row else np.zeros_like(out[0])
        if kinds[row] == 2:
            out[row] = lines[row] + above
        else:
            out[row] = _sequential(int(kinds[row]), lines[row].tolist(), above.tolist())
    return out


def _sequential(kind: int, line: Any, above: Any) -> Array:
    """Filters 3 and 4 need the pixel to the left, so they go one by one."""
    done = [[0, 0, 0]]
    corner = [0, 0, 0]
    for stored, up in zip(line, above, strict=True):
        guess = [(a + b) // 2 for a, b in zip(done[-1], up, strict=True)] if kind == 3 else [
            _paeth(a, b, c) for a, b, c in zip(done[-1], up, corner, strict=True)
        ]  # fmt: skip
        done.append([(s + g) % 256 for s, g in zip(stored, guess, strict=True)])
        corner = up
    return np.array(done[1:], np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    near = left + up - corner
    return min((abs(near - left), 0, left), (abs(near - up), 1, up), (abs(near - corner), 2, corner))[2]
