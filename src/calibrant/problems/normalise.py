"""Raw rows become inputs of order one, by what the training rows say and nothing else.

feature   The default. z_j = (x_j - mean_j) / scale_j with the mean and the standard deviation of feature j over the
          training rows that the agent is given (divided by T, not T - 1). A feature that is constant there is only
          centred. Pixels share one unit, so a pixel is never magnified more than the average one: its scale is at least
          the root mean square of all pixels' standard deviations. Otherwise a corner of the picture that is
          blank in ten training images, but for a speck, would reach hundreds in a test image.
paper     What the program of Osband et al., 2022 does: every row by its own mean and standard deviation across its
          features. It mixes units in tables and loses a row's scale; for images it is a change of contrast.

Statistics are sums in double precision over blocks of rows, so that a large set is never held twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np

from calibrant.types import Array

How: TypeAlias = Literal["feature", "paper"]
BLOCK_NUMBERS = 2**16  # of a block of rows: half a megabyte in double precision, which stays in cache


def normalise(train: Array, test: Array, how: How, one_unit: bool) -> tuple[Array, Array]:
    """Training and test rows [rows, ...] of any type as inputs [rows, features], float32."""
    train, test = (rows.reshape(len(rows), -1) for rows in (train, test))
    if how == "paper":
        return by_row(train), by_row(test)
    mean, scale = statistics(train, one_unit)
    return by_feature(train, mean, scale), by_feature(test, mean, scale)


def statistics(train: Array, one_unit: bool) -> tuple[Array, Array]:
    """Mean and scale of every feature; `one_unit` says that all features are measured in the same one."""
    mean = sum(block.sum(axis=0) for _, block in _blocks(train)) / len(train)
    variance = sum(((block - mean) ** 2).sum(axis=0) for _, block in _blocks(train)) / len(train)
    if one_unit:
        variance = np.maximum(variance, variance.mean())
    return mean, np.sqrt(np.where(variance > 0, variance, 1.0))


def by_feature(rows: Array, mean: Array, scale: Array) -> Array:
    done = np.empty(rows.shape, np.float32)
    for at, block in _blocks(rows):
        done[at] = (block - mean) / scale
    return done


def by_row(rows: Array) -> Array:
    done = np.empty(rows.shape, np.float32)
    for at, block in _blocks(rows):
        spread = block.std(axis=1, keepdims=True)
        done[at] = (block - block.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    return done


def _blocks(rows: Array) -> Iterator[tuple[slice, Array]]:
    step = max(1, BLOCK_NUMBERS // rows.shape[1])
    for start in range(0, len(rows), step):
        at = slice(start, start + step)
        yield at, np.asarray(rows[at], np.float64)
