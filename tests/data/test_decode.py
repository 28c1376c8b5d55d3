"""Decoders on tiny files in the true formats, and on what is wrong with files: cut, padded, damaged, too large."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest

from calibrant.data import decode
from calibrant.types import CalibrantError


def idx_file(array: Any) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def npz_file(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def paeth(left: int, up: int, corner: int) -> int:
    """As the standard words it: the neighbour nearest to left + up - corner; ties go left, up, corner."""
    estimate = left + up - corner
    away = abs(estimate - left), abs(estimate - up), abs(estimate - corner)
    return (left, up, corner)[away.index(min(away))]


def png_file(pixels: Any, kinds: list[int], depth: int = 8, colour: int = 2, interlaced: int = 0) -> bytes:
    """An encoder of all five filters, one byte at a time, in two IDAT chunks."""
    height, width, _ = pixels.shape
    old = np.pad(pixels.astype(int), ((1, 0), (1, 0), (0, 0)))
    raw = b""
    for row, kind in enumerate(kinds, start=1):
        raw += bytes([kind])
        for column in range(1, width + 1):
            for c in range(3):
                here, left = int(old[row, column, c]), int(old[row, column - 1, c])
                up, corner = int(old[row - 1, column, c]), int(old[row - 1, column - 1, c])
                guess = (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind]
                raw += bytes([(here - guess) % 256])
    packed = zlib.compress(raw)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    data = chunk(b"IDAT", packed[:20]) + chunk(b"IDAT", packed[20:])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"tEXt", b"a\0b") + data + chunk(b"IEND", b"")


IMAGES = np.arange(2 * 3 * 4).reshape(2, 3, 4)
PIXELS = np.random.default_rng(0).integers(0, 256, (10, 7, 3)).astype(np.uint8)
PNG = png_file(PIXELS, [4, 3, 2, 1, 0, 1, 4, 3, 2, 4])


# --- idx and gzip -------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [lambda blob: blob, gzip.compress])
def test_idx(pack: Any) -> None:
    found = decode.idx(pack(idx_file(IMAGES)))
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, IMAGES)
    assert decode.idx(pack(idx_file(np.array([3, 1])))).tolist() == [3, 1]


@pytest.mark.parametrize("blob", [
    b"", b"\0\0\x08", b"\0\0\x0d\x01\0\0\0\0", b"\0\0\x08\x00", b"\0\0\x08\x05" + bytes(20), b"\0\0\x08\x03\0\0\0\x01",
    idx_file(IMAGES)[:-1], idx_file(IMAGES) + b"\0", struct.pack(">BBBBI", 0, 0, 8, 1, 2**32 - 1),
])  # fmt: skip
def test_what_is_not_idx_is_refused(blob: bytes) -> None:
    with pytest.raises(CalibrantError, match="idx"):
        decode.idx(blob)


def test_gzip_is_unpacked_up_to_a_limit() -> None:
    packed = gzip.compress(bytes(100_000))
    assert decode.gunzip(packed, limit=100_000) == bytes(100_000)
    with pytest.raises(CalibrantError, match="more than 99999 bytes"):
        decode.gunzip(packed, limit=99_999)


def test_a_damaged_or_cut_gzip_is_refused() -> None:
    packed = gzip.compress(np.random.default_rng(0).bytes(1000))
    with pytest.raises(CalibrantError, match="cut short"):
        decode.gunzip(packed[:500])
    broken = packed[:300] + bytes([packed[300] ^ 255]) + packed[301:]
    with pytest.raises(CalibrantError, match="damaged"):
        decode.gunzip(broken)


# --- tables -------------------------------------------------------------------------------------


def test_tables() -> None:
    wine = b'"acid";"quality"\r\n7;6\r\n6.3;5\r\n'
    assert decode.table(wine, ";", header=1).tolist() == [[7, 6], [6.3, 5]]
    assert decode.table(b"   1   2  \n  3   4 \n\n", None).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("blob", [b"", b"1;2\n3\n", b"1;x\n", "1;é\n".encode(), b"\xff\xfe"])
def test_what_is_no_table_is_refused(blob: bytes) -> None:
    with pytest.raises(CalibrantError, match="table"):
        decode.table(blob, ";")


# --- npz ----------------------------------------------------------------------------------------


def test_npz() -> None:
    found = decode.npz(npz_file(images=IMAGES, labels=np.array([1, 2])))
    assert sorted(found) == ["images", "labels"]
    np.testing.assert_array_equal(found["images"], IMAGES)


def test_pickles_are_never_loaded() -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return pytest.fail, ("unpickled",)

    stream = io.BytesIO()
    np.savez(stream, labels=np.array([Trap()], dtype=object))
    with pytest.raises(CalibrantError, match="allow_pickle=False"):
        decode.npz(stream.getvalue())


def test_a_cut_npz_is_refused() -> None:
    blob = npz_file(images=IMAGES)
    for cut in (0, 10, len(blob) // 2, len(blob) - 1):
        with pytest.raises(CalibrantError, match="npz"):
            decode.npz(blob[:cut])


def test_a_large_npz_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "LIMIT_BYTES", 500)
    with pytest.raises(CalibrantError, match="more than 500 bytes"):
        decode.npz(npz_file(images=np.zeros(1000, np.uint8)))


# --- png ----------------------------------------------------------------------------------------


def test_png_with_every_filter() -> None:
    found = decode.png(PNG)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, PIXELS)


@pytest.mark.parametrize("kind", range(5))
def test_png_filters_on_the_first_line(kind: int) -> None:
    np.testing.assert_array_equal(decode.png(png_file(PIXELS[:1], [kind])), PIXELS[:1])


def test_other_kinds_of_png_are_refused() -> None:
    for wrong in ({"depth": 16}, {"colour": 0}, {"interlaced": 1}):
        with pytest.raises(CalibrantError, match="8-bit red, green, blue"):
            decode.png(png_file(PIXELS, [0] * 10, **wrong))


def test_a_cut_or_damaged_png_is_refused() -> None:
    for cut in (0, 7, 20, 60, len(PNG) - 1):
        with pytest.raises(CalibrantError, match="PNG"):
            decode.png(PNG[:cut])
    at = PNG.index(b"IDAT") + 10
    with pytest.raises(CalibrantError, match="damaged chunk"):
        decode.png(PNG[:at] + bytes([PNG[at] ^ 1]) + PNG[at + 1 :])


def test_a_png_that_unpacks_to_more_or_less_than_it_says_is_refused() -> None:
    header = struct.pack(">IIBBBBB", 7, 10, 8, 2, 0, 0, 0)
    for lines, complaint in ((9, "cut short"), (11, "more than")):
        packed = zlib.compress(bytes(lines * 22))
        blob = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
        with pytest.raises(CalibrantError, match=complaint):
            decode.png(blob)


def test_an_enormous_png_is_refused_before_it_is_unpacked() -> None:
    header = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0)
    blob = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    with pytest.raises(CalibrantError, match="at most"):
        decode.png(blob)
