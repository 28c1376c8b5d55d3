"""Layouts: how the files of each container become the arrays of a dataset. The names are used in the catalogue."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.data import decode
from calibrant.types import Array, CalibrantError

Arrays = dict[str, Array]
NAMES = ("train_x", "train_y", "test_x", "test_y")


def four_idx(blobs: Sequence[bytes]) -> Arrays:
    """MNIST and its relatives: train images, train labels, test images, test labels."""
    return {name: decode.idx(blob) for name, blob in zip(NAMES, blobs, strict=True)}


def iris_csv(blobs: Sequence[bytes]) -> Arrays:
    """One header line; four measurements in centimetres; the species 0, 1, 2."""
    rows = decode.table(blobs[0], ",", header=1)
    return {"x": rows[:, :-1], "y": _small(rows[:, -1])}


def wine_csv(blobs: Sequence[bytes]) -> Arrays:
    """One header line; eleven measurements; the quality from 0 to 10, which is the class."""
    rows = decode.table(blobs[0], ";", header=1)
    return {"x": rows[:, :-1], "y": _small(rows[:, -1])}


def german_table(blobs: Sequence[bytes]) -> Arrays:
    """Twenty-four integers; then 1 for good risks, 2 for bad ones, which become 0 and 1."""
    rows = decode.table(blobs[0], None)
    return {"x": rows[:, :-1].astype(np.int16), "y": _small(rows[:, -1] - 1)}


def cifar_png(blobs: Sequence[bytes]) -> Arrays:
    """Five training pictures and a test picture, each with an image per line; two JSON lists of labels."""
    *pictures, train_y, test_y = blobs
    rows = [decode.png(picture) for picture in pictures]
    if any(one.shape[1] != 32 * 32 for one in rows):
        raise CalibrantError("a picture whose lines are not 32 x 32 images")
    images = [one.reshape(-1, 32, 32, 3) for one in rows]
    return {
        "train_x": np.concatenate(images[:-1]),
        "train_y": _json_labels(train_y),
        "test_x": images[-1],
        "test_y": _json_labels(test_y),
    }


def cifar_binary(blobs: Sequence[bytes]) -> Arrays:
    """Five training files and a test file of records: the label, then 32 x 32 reds, greens, blues."""
    record = 1 + 3 * 32 * 32
    if any(len(blob) % record for blob in blobs):
        raise CalibrantError(f"a binary batch that is not made of records of {record} bytes")
    rows = [np.frombuffer(blob, np.uint8).reshape(-1, record) for blob in blobs]
    train, test = np.concatenate(rows[:-1]), rows[-1]
    return {"train_x": _colour_last(train), "train_y": train[:, 0], "test_x": _colour_last(test), "test_y": test[:, 0]}


def two_npz(blobs: Sequence[bytes]) -> Arrays:
    """CMATERdb: a training and a test archive, each with `images` and `labels`."""
    found: Arrays = {}
    for split, blob in zip(("train", "test"), blobs, strict=True):
        arrays = decode.npz(blob)
        found |= {f"{split}_x": _take(arrays, "images"), f"{split}_y": _small(_take(arrays, "labels"))}
    return found


def one_npz(blobs: Sequence[bytes]) -> Arrays:
    """Somebody's decoded copy: `train_x` or `x_train`, and so on; `x` and `y` where there is no split."""
    return {_our_name(name): array for name, array in decode.npz(blobs[0]).items()}


READERS: Mapping[str, Callable[[Sequence[bytes]], Arrays]] = {
    reader.__name__: reader
    for reader in (four_idx, iris_csv, wine_csv, german_table, cifar_png, cifar_binary, two_npz, one_npz)
}


# --- parts --------------------------------------------------------------------------------------


def _small(values: Array) -> Array:
    """Labels as uint8, if that changes none of them."""
    if values.dtype.kind not in "fiu":
        raise CalibrantError(f"labels of type {values.dtype}; expected integers")
    if not ((values >= 0) & (values <= 255) & (values % 1 == 0)).all():
        raise CalibrantError("labels that are not integers from 0 to 255")
    return values.astype(np.uint8)


def _json_labels(blob: bytes) -> Array:
    try:
        values: Any = json.loads(blob)
    except ValueError as error:
        raise CalibrantError(f"not a JSON list of labels: {error}") from error
    if not isinstance(values, list) or not all(isinstance(value, int) for value in values):
        raise CalibrantError("not a JSON list of labels")
    return _small(np.array(values, np.int64))


def _colour_last(records: Array) -> Array:
    return np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _take(arrays: Mapping[str, Array], name: str) -> Array:
    if name not in arrays:
        raise CalibrantError(f"an npz file without '{name}'; it holds {', '.join(arrays) or 'nothing'}")
    return arrays[name]


def _our_name(name: str) -> str:
    left, _, right = name.lower().partition("_")
    return f"{right}_{left}" if left in ("x", "y") and right in ("train", "test") else name.lower()
