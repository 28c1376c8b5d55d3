"""Arrays come back bit for bit, small, and damage is noticed."""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from calibrant.engine.packing import MAGIC, pack, unpack
from calibrant.types import CalibrantError

DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
)
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)))


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=8), ARRAYS, max_size=5))
def test_round_trip_is_exact(arrays: dict[str, np.ndarray]) -> None:
    back = unpack(pack(arrays))
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].shape == array.shape
        assert back[name].dtype == array.dtype.newbyteorder("<")
        assert back[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()


def test_strided_and_listed_values_are_taken() -> None:
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    back = unpack(pack({"transposed": grid.T, "stepped": grid[::2, ::-1], "list": [1.5, 2.5]}))
    np.testing.assert_array_equal(back["transposed"], grid.T)
    np.testing.assert_array_equal(back["stepped"], grid[::2, ::-1])
    np.testing.assert_array_equal(back["list"], [1.5, 2.5])
    back["list"][0] = 9.0  # a result belongs to its caller
    assert back["list"][0] == 9.0


def test_eight_arrays_of_scores_are_smaller_than_plain_zlib() -> None:
    generator = np.random.default_rng(0)
    scores = {f"metric{i}": np.exp(generator.normal(size=1000)).astype(np.float32) for i in range(8)}
    raw = b"".join(array.tobytes() for array in scores.values())
    assert len(pack(scores)) < 27_000 < len(zlib.compress(raw, 9)) < len(raw)


@pytest.mark.parametrize("array", [np.array([object()]), np.array(["text"]), np.array([1j]), np.array([1], "M8[s]")])
def test_only_numbers_are_packed(array: np.ndarray) -> None:
    with pytest.raises(CalibrantError, match="array 'wrong' cannot be packed"):
        pack({"wrong": array})


def test_every_flipped_bit_and_every_cut_is_noticed_or_harmless() -> None:
    arrays = {"a": np.linspace(0, 1, 40, dtype=np.float32), "b": np.arange(5)}
    blob = pack(arrays)
    for at in range(len(blob)):
        with pytest.raises(CalibrantError, match="damaged"):
            unpack(blob[:at])
        flipped = bytearray(blob)
        flipped[at] ^= 0x10
        try:
            back = unpack(bytes(flipped))
        except CalibrantError:
            continue
        for name, array in arrays.items():  # some bits of a zlib header say nothing about the content
            np.testing.assert_array_equal(back[name], array)


def crafted(header: object, *planes: bytes) -> bytes:
    streams = [zlib.compress(json.dumps(header).encode())] + [zlib.compress(plane) for plane in planes]
    return MAGIC + b"".join(struct.pack("<I", len(stream)) + stream for stream in streams)


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"PK\x03\x04",
        crafted([["a", "|O", [1]]], bytes(8)),
        crafted([["a", "<f4", [1]]], b"1", b"2", b"3"),
        crafted([["a", "<f4", [2]]], b"1", b"2", b"3", b"4"),
        crafted([["a", "<f4", [-1]]], b"", b"", b"", b""),
        crafted([["a", "|u1", [4]]], bytes(10_000_000)),
        crafted({"a": 1}),
        crafted([["a", "nonsense", [1]]], b"1"),
        crafted("x" * 2_000_000),
    ],
)
def test_crafted_blobs_are_refused(blob: bytes) -> None:
    with pytest.raises(CalibrantError, match="packed arrays are damaged"):
        unpack(blob)
