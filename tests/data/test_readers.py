"""The layouts of all ten datasets, on small files in the true format."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zlib
from typing import Any

import numpy as np
import pytest

from calibrant.data.catalogue import CATALOGUE
from calibrant.data.readers import READERS
from calibrant.types import CalibrantError

RNG = np.random.default_rng(0)


def idx_file(array: Any) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def npz_file(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def png_file(rows: Any) -> bytes:
    """An image per line, as the package that carries CIFAR-10 has them, stored by the filter `left`."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    steps = np.diff(rows.astype(int), axis=1, prepend=0).astype(np.uint8).reshape(len(rows), -1)
    raw = b"".join(b"\x01" + line.tobytes() for line in steps)
    header = struct.pack(">IIBBBBB", rows.shape[1], len(rows), 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("pack", [lambda blob: blob, gzip.compress])
def test_four_idx(pack: Any) -> None:
    """MNIST, Fashion-MNIST and EMNIST; EMNIST's letters begin at 1."""
    train_x, test_x = RNG.integers(0, 256, (4, 28, 28), np.uint8), RNG.integers(0, 256, (2, 28, 28), np.uint8)
    train_y, test_y = np.array([1, 26, 3, 3], np.uint8), np.array([2, 5], np.uint8)
    found = READERS["four_idx"]([pack(idx_file(array)) for array in (train_x, train_y, test_x, test_y)])
    for name, array in (("train_x", train_x), ("train_y", train_y), ("test_x", test_x), ("test_y", test_y)):
        np.testing.assert_array_equal(found[name], array)


def test_iris() -> None:
    found = READERS["iris_csv"]([b"2,4,setosa,versicolor\n5.1,3.5,1.4,0.2,0\n4.9,3.0,1.4,0.2,1\n"])
    assert found["x"].tolist() == [[5.1, 3.5, 1.4, 0.2], [4.9, 3.0, 1.4, 0.2]]
    assert found["y"].tolist() == [0, 1] and found["y"].dtype == np.uint8


def test_wine() -> None:
    found = READERS["wine_csv"]([b'"a";"b";"quality"\n7;0.27;6\n6.3;0.3;9\n'])
    assert found["x"].tolist() == [[7, 0.27], [6.3, 0.3]] and found["y"].tolist() == [6, 9]


def test_german() -> None:
    found = READERS["german_table"]([b"   1   6   4   1 \n   2  48   2   2 \n"])
    assert found["x"].tolist() == [[1, 6, 4], [2, 48, 2]] and found["x"].dtype == np.int16
    assert found["y"].tolist() == [0, 1]


def test_both_containers_of_cifar_give_the_same_arrays() -> None:
    images, labels = RNG.integers(0, 256, (12, 32, 32, 3), np.uint8), RNG.integers(0, 10, 12, np.uint8)
    batches = [slice(2 * part, 2 * part + 2) for part in range(6)]
    pictures = [png_file(images[part].reshape(2, 1024, 3)) for part in batches]
    lists = [json.dumps(labels[part].tolist()).encode() for part in (slice(10), slice(10, 12))]
    records = [
        b"".join(bytes([y]) + x.transpose(2, 0, 1).tobytes() for x, y in zip(images[part], labels[part], strict=True))
        for part in batches
    ]
    for found in (READERS["cifar_png"]([*pictures, *lists]), READERS["cifar_binary"](records)):
        np.testing.assert_array_equal(found["train_x"], images[:10])
        np.testing.assert_array_equal(found["test_x"], images[10:])
        np.testing.assert_array_equal(found["train_y"], labels[:10])
        np.testing.assert_array_equal(found["test_y"], labels[10:])


def test_cmaterdb() -> None:
    """The published archives hold `images` as bytes and `labels` as int64."""
    images, labels = RNG.integers(0, 256, (3, 32, 32, 3), np.uint8), np.array([0, 9, 4], np.int64)
    found = READERS["two_npz"]([npz_file(images=images, labels=labels), npz_file(images=images[:1], labels=labels[:1])])
    np.testing.assert_array_equal(found["train_x"], images)
    assert found["train_y"].tolist() == [0, 9, 4] and found["train_y"].dtype == np.uint8
    assert found["test_x"].shape == (1, 32, 32, 3)


def test_somebodys_decoded_copy() -> None:
    blob = npz_file(x_train=np.zeros(1), y_train=np.ones(1), test_x=np.zeros(2), test_y=np.ones(2))
    assert sorted(READERS["one_npz"]([blob])) == ["test_x", "test_y", "train_x", "train_y"]
    assert sorted(READERS["one_npz"]([npz_file(X=np.zeros(1), y=np.ones(1))])) == ["x", "y"]


@pytest.mark.parametrize(("reader", "blobs", "complaint"), [
    ("iris_csv", [b"h\n1,2,3,4,0.5\n"], "labels that are not integers"),
    ("german_table", [b"1 2 0\n"], "labels that are not integers"),
    ("two_npz", [npz_file(images=np.zeros(1))] * 2, "without 'labels'"),
    ("two_npz", [npz_file(images=np.zeros(1), labels=np.array(["a"]))] * 2, "expected integers"),
    ("cifar_binary", [bytes(3073)] * 5 + [bytes(3072)], "records of 3073 bytes"),
    ("cifar_png", [png_file(np.zeros((1, 9, 3), np.uint8))] * 6 + [b"[]", b"[]"], "32 x 32"),
    ("cifar_png", [png_file(np.zeros((1, 1024, 3), np.uint8))] * 6 + [b"[0.5]", b"[1]"], "JSON list"),
    ("cifar_png", [png_file(np.zeros((1, 1024, 3), np.uint8))] * 6 + [b"[", b"[1]"], "JSON list"),
    ("cifar_png", [png_file(np.zeros((1, 1024, 3), np.uint8))] * 6 + [b"[256]", b"[1]"], "0 to 255"),
])  # fmt: skip
def test_wrong_content_is_one_sentence(reader: str, blobs: list[bytes], complaint: str) -> None:
    with pytest.raises(CalibrantError, match=complaint):
        READERS[reader](blobs)


def test_the_catalogue_names_readers_that_exist() -> None:
    named = {getattr(origin, "reader", "four_idx") for card in CATALOGUE.values() for origin in card.origins}
    assert named | {"one_npz"} == set(READERS)
