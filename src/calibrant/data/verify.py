"""Whether arrays are what the catalogue says: type, shape, label counts, sha256. All else fails, in one sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from calibrant.data.cards import Card, Expected
from calibrant.types import Array, CalibrantError


def digest(array: Array) -> str:
    """sha256 of the numbers: little-endian, in C order, whatever the container was.

    >>> digest(np.array([1, 2], ">u2")) == digest(np.array([1, 2], "<u2"))
    True
    """
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return hashlib.sha256(plain.reshape(-1).view(np.uint8).data).hexdigest()


def check_arrays(card: Card, arrays: Mapping[str, Array]) -> None:
    """Raises unless these are the dataset's arrays, all of them and no others."""
    names = [one.name for one in card.arrays]
    if sorted(arrays) != sorted(names):
        raise CalibrantError(f"the arrays are {', '.join(sorted(arrays)) or 'none'}; expected {', '.join(names)}")
    for expected in card.arrays:
        check_array(expected, arrays[expected.name])


def check_array(expected: Expected, array: Array) -> None:
    if array.dtype.hasobject or array.dtype.newbyteorder("<") != np.dtype(expected.dtype).newbyteorder("<"):
        raise CalibrantError(f"'{expected.name}' is of type {array.dtype}; expected {expected.dtype}")
    if array.shape != expected.shape:
        raise CalibrantError(f"'{expected.name}' has shape {list(array.shape)}; expected {list(expected.shape)}")
    if expected.counts:
        counts = np.bincount(array, minlength=len(expected.counts)).tolist()
        if counts != list(expected.counts):
            raise CalibrantError(f"'{expected.name}' has label counts {_short(counts)}; expected "
                                 f"{_short(list(expected.counts))}")  # fmt: skip
    if expected.sha256 is not None and (found := digest(array)) != expected.sha256:
        raise CalibrantError(f"'{expected.name}' has sha256 {found[:12]}...; expected {expected.sha256[:12]}...")


def _short(counts: list[int]) -> str:
    return str(counts) if len(counts) <= 12 else f"[{', '.join(map(str, counts[:12]))}, ...]"
