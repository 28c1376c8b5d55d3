"""One integer becomes named child seeds: problem, agent, worlds, metric.

A child is the SHA-256 of its path, so it depends on no library's seeding rules. Problem streams go further:
their bits come from Philox, whose raw output NumPy guarantees, and every distribution is our own
transformation of uniform numbers (`Stream`), so a problem is the same on every version of NumPy and JAX.
Golden checksums in `tests/golden` guard that.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant.types import Array


def child(*path: object) -> int:
    """A 128-bit seed for a path such as ("testbed?temp=0.1", 3, "labels").

    >>> child("a", 1) == child("a", 1), child("a", 1) == child("a", 2)
    (True, False)
    """
    text = "/".join(str(part) for part in path)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def jax_key(*path: object) -> Any:
    """A JAX threefry key for a path."""
    import jax
    import jax.numpy as jnp

    seed = child(*path)
    words = jnp.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], jnp.uint32)
    return jax.random.wrap_key_data(words, impl="threefry2x32")


class Stream:
    """Random numbers that stay the same across library versions.

    >>> Stream("doc").uniform(2).round(6).tolist()
    [0.023758, 0.531232]
    """

    def __init__(self, *path: object) -> None:
        self._bits = np.random.Philox(key=child(*path))

    def uniform(self, *shape: int) -> Array:
        """Strictly inside (0, 1), 53 bits."""
        raw = self._bits.random_raw(int(np.prod(shape, dtype=np.int64)))
        return ((raw >> np.uint64(11)).astype(np.float64).reshape(shape) + 0.5) * 2.0**-53

    def normal(self, *shape: int) -> Array:
        return ndtri(self.uniform(*shape))

    def truncated_normal(self, *shape: int, at: float = 2.0) -> Array:
        """A standard normal cut at +-`at` and not rescaled: its variance is below 1."""
        low, high = ndtr(-at), ndtr(at)
        return ndtri(low + (high - low) * self.uniform(*shape))

    def integers(self, high: int, *shape: int) -> Array:
        return np.minimum((self.uniform(*shape) * high).astype(np.int64), high - 1)
