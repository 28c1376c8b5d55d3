"""Whatever the container was, arrays are judged by type, shape, label counts and sha256."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import pytest

from calibrant.data.cards import Card, Expected
from calibrant.data.verify import check_array, check_arrays, digest
from calibrant.types import CalibrantError

Y = np.array([0, 2, 2, 1], np.uint8)
LABELS = Expected("y", (4,), "uint8", digest(Y), (1, 1, 2))
X = np.arange(8, dtype=np.float64).reshape(4, 2)
POINTS = Expected("x", (4, 2), "float64", digest(X))
CARD = Card("toy", "Toy", "structured", 3, 3, 1, (POINTS, LABELS), (), "nobody", "none")


def test_the_digest_is_of_the_numbers() -> None:
    assert digest(X) == hashlib.sha256(X.astype("<f8").tobytes()).hexdigest()
    assert digest(X) == digest(X.astype(">f8")) == digest(np.asfortranarray(X))
    assert digest(X) != digest(X.astype(np.float32)) and digest(X) != digest(X[::-1])


def test_what_is_right_passes() -> None:
    check_arrays(CARD, {"x": X, "y": Y})
    check_arrays(CARD, {"y": Y, "x": X.astype(">f8")})


def test_wrong_type_shape_counts_and_hash() -> None:
    with pytest.raises(CalibrantError, match="'y' is of type int64; expected uint8"):
        check_array(LABELS, Y.astype(np.int64))
    with pytest.raises(CalibrantError, match="'y' is of type object"):
        check_array(LABELS, Y.astype(object))
    with pytest.raises(CalibrantError, match=r"'y' has shape \[3\]; expected \[4\]"):
        check_array(LABELS, Y[:3])
    with pytest.raises(CalibrantError, match=r"label counts \[2, 1, 1\]; expected \[1, 1, 2\]"):
        check_array(LABELS, np.array([0, 0, 2, 1], np.uint8))
    with pytest.raises(CalibrantError, match=r"label counts \[1, 1, 1, 1\]"):
        check_array(LABELS, np.array([0, 3, 2, 1], np.uint8))
    with pytest.raises(CalibrantError, match="'y' has sha256"):
        check_array(LABELS, np.array([2, 0, 2, 1], np.uint8))  # the same counts in another order
    with pytest.raises(CalibrantError, match="'x' has sha256"):
        check_array(POINTS, X + 1e-15)


def test_counts_are_checked_where_no_hash_is_known() -> None:
    unknown = dataclasses.replace(LABELS, sha256=None)
    check_array(unknown, np.array([2, 0, 2, 1], np.uint8))
    with pytest.raises(CalibrantError, match="label counts"):
        check_array(unknown, np.array([0, 0, 2, 1], np.uint8))


def test_all_arrays_and_no_others() -> None:
    for arrays in ({"x": X}, {"x": X, "y": Y, "z": Y}, {}):
        with pytest.raises(CalibrantError, match="expected x, y"):
            check_arrays(CARD, arrays)
