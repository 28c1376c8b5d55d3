"""Prior functions at many rows: block by block they are what they are at once."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from calibrant.nets import prior_functions
from calibrant.nets.mlp import Mlp
from calibrant.nets.prior_functions import Tangent, at_rows

NETWORK = Mlp((3, 5, 2))


@pytest.mark.parametrize("prior", [NETWORK, Tangent(NETWORK)], ids=["network", "tangent"])
@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 21])
def test_blocks_change_nothing(prior: Mlp | Tangent, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the rows fill one block, several, or a part of the last."""
    fixed = jax.vmap(prior.init)(jax.random.split(jax.random.key(1), 4))
    x = np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32)
    whole = jax.vmap(prior, (0, None))(fixed, x)
    monkeypatch.setattr(prior_functions, "BLOCK", 8)
    found = at_rows(prior, fixed, x)
    assert found.shape == (4, rows, 2)
    np.testing.assert_allclose(found, whole, rtol=1e-5, atol=1e-6)


def test_the_layers_of_all_rows_are_never_there_at_once() -> None:
    """The largest array of the compiled program holds a block's layer, or all values, not the layers of all rows."""
    rows, members, wide = 20_000, 8, 200
    prior = Mlp((3, wide, 2))
    fixed = jax.vmap(prior.init)(jax.random.split(jax.random.key(1), members))
    program = jax.jit(lambda x: at_rows(prior, fixed, x)).lower(np.zeros((rows, 3), np.float32)).compile()
    used = program.memory_analysis().temp_size_in_bytes
    assert used < 4 * members * rows * wide / 4
