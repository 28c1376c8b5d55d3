"""What an answer has to be before it can become a score: an array of finite numbers of the right shape.

Finite logits are required: NaN is no prediction, and -inf says "impossible", which one wrong label turns into an
infinite loss. A class that is thought impossible gets a very low logit instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from calibrant.types import Array, CalibrantError


class Misshapen(CalibrantError):
    """An answer is not an array of numbers of the expected shape."""


class NotFinite(CalibrantError):
    """An answer holds NaN or an infinity."""


def check_logits(answer: Any, shape: tuple[int, ...], what: str) -> Array:
    """The answer as float32, or one sentence that names it (`what`) and its shape.

    >>> check_logits([[0.0, 1.0]], (1, 3), "the answer of world 4")
    Traceback (most recent call last):
    calibrant.adapters.answers.Misshapen: the answer of world 4 has shape [1, 2]; expected [1, 3]
    """
    logits = check_numbers(answer, what)
    if logits.shape != shape:
        raise Misshapen(f"{what} has shape {shape_of(logits)}; expected {_brackets(shape)}")
    with np.errstate(over="ignore"):
        single = logits.astype(np.float32)
    if not np.isfinite(single).all():
        held = "NaN" if np.isnan(single).any() else "numbers beyond single precision"
        raise NotFinite(f"{what}, of shape {shape_of(single)}, holds {held}; expected finite logits")
    return single


def check_weights(weights: Any, count: int) -> Array | None:
    """Weights [count] that are finite, not negative and not all zero, scaled to sum to one; None stays None."""
    if weights is None:
        return None
    given = check_numbers(weights, "the weights").astype(np.float64)
    if given.shape != (count,):
        raise Misshapen(f"the weights have shape {shape_of(given)}; expected {_brackets((count,))}, one for each world")
    if not (np.isfinite(given).all() and (given >= 0).all() and given.sum() > 0):
        raise CalibrantError("the weights of worlds should be finite, not negative and not all zero")
    return given / given.sum()


def check_numbers(answer: Any, what: str) -> Array:
    try:
        array = np.asarray(answer)
    except Exception as error:  # another library's array may refuse for reasons of its own
        kind = type(answer).__name__
        raise Misshapen(f"{what} should be a NumPy array, not an object of type {kind}: {error}") from error
    if array.dtype.kind not in "fiu":
        raise Misshapen(f"{what}, of shape {shape_of(array)}, holds {array.dtype}; expected real numbers")
    return array


def shape_of(array: Array) -> str:
    return _brackets(array.shape)


def _brackets(shape: Iterable[int]) -> str:
    return "[" + ", ".join(str(size) for size in shape) + "]"
