"""Shot noise: photons are counted, and few arrive.

The corruption `shot_noise` of MNIST-C (Mu and Gilmer, 2019) at its default severity: a pixel of brightness p in
[0, 1] becomes min(N / 3, 1) with N ~ Poisson(3 p). The published archive was drawn from a generator that nobody
seeded, so ours has its distribution, not its bytes. Our draws come from `seeds.Stream` and the Poisson distribution
from a table of correctly rounded probabilities, so they are the same on every machine.
"""

from __future__ import annotations

import decimal
import functools

import numpy as np

from calibrant.seeds import Stream
from calibrant.types import Array

PHOTONS = 3  # of a white pixel, on average: the most severe of the published levels 60, 25, 12, 5, 3
BLOCK = 1000  # images at a time, to stay small


def shot_noise(images: Array, *path: object) -> Array:
    """Noisy copies of uint8 images; `path` names the stream of random numbers.

    >>> shot_noise(np.array([[0, 255]], np.uint8), "doc").tolist()
    [[0, 255]]
    """
    stream = Stream(*path)
    noisy = np.empty_like(images)
    for start in range(0, len(images), BLOCK):
        part = images[start : start + BLOCK]
        u = stream.uniform(*part.shape)
        photons = sum((u > at_most[part]).astype(np.uint8) for at_most in _poisson())
        noisy[start : start + BLOCK] = photons * np.uint8(255 // PHOTONS)
    return noisy


@functools.cache
def _poisson() -> tuple[Array, ...]:
    """P(N <= k) for k < PHOTONS, for each of the 256 brightnesses."""
    with decimal.localcontext() as context:
        context.prec = 40  # the exponential of `decimal` is correctly rounded, that of a C library need not be
        tables: list[list[float]] = [[] for _ in range(PHOTONS)]
        for value in range(256):
            mean = decimal.Decimal(value * PHOTONS) / 255
            term = (-mean).exp()
            total = decimal.Decimal(0)
            for k in range(PHOTONS):
                total += term
                term = term * mean / (k + 1)
                tables[k].append(float(total))
    return tuple(np.array(one) for one in tables)
