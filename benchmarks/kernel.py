"""The training step of the testbed's network: GFLOP per CPU second, as a share of what this core can do."""

from __future__ import annotations

import time

from benchmarks.measure import Row

STEPS, BATCH, MEMBERS = 1000, 100, 32
FLOP = 3 * 2 * BATCH * (2 * 50 + 50 * 50 + 50 * 2)  # per network and step: forward, and twice that backward


def peak_gflop() -> float:
    """A large single-precision product in one thread: the practical peak of a core."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    a = np.ones((2048, 2048), np.float32)
    best = 0.0
    with threadpool_limits(1):
        for _ in range(5):
            began = time.process_time()
            a @ a
            best = max(best, 2 * 2048**3 / (time.process_time() - began) / 1e9)
    return best


def training_gflop(row_major: bool) -> tuple[float, float]:
    """GFLOP per CPU second of training, and microseconds per network and step, in either layout."""
    from calibrant.engine import machine

    machine.settle()
    import jax
    import jax.numpy as jnp

    from calibrant.nets.mlp import Mlp
    from calibrant.train.loop import train_members
    from calibrant.types import Data, Facts

    network = Mlp((2, 50, 50, 2))

    def by_rows(params, x):  # type: ignore[no-untyped-def]
        for weight, bias in params[:-1]:
            x = jax.nn.relu(x @ weight.T + bias)
        return x @ params[-1][0].T + params[-1][1]

    apply = by_rows if row_major else network
    keys = jax.random.split(jax.random.key(0), MEMBERS)
    x = jax.random.normal(keys[0], (BATCH, 2))
    data, facts = Data(x, (x[:, 0] > 0).astype(jnp.int32)), Facts(2, 2, BATCH, 0.1)

    def train(params):  # type: ignore[no-untyped-def]
        return train_members(keys[1], apply, params, data, facts, l2=0.01, steps=STEPS, batch=BATCH, lr=1e-3)

    params = jax.vmap(network.init)(keys)
    program = jax.jit(train).lower(params).compile()
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        jax.block_until_ready(program(params))
        best = min(best, time.process_time() - began)
    per_step = best / STEPS / MEMBERS
    return FLOP / per_step / 1e9, per_step * 1e6


def rows() -> list[Row]:
    peak = peak_gflop()
    ours, microseconds = training_gflop(row_major=False)
    usual, _ = training_gflop(row_major=True)
    return [
        Row("sgemm peak of one core", f"{peak:.0f} GFLOP/CPU s", ""),
        Row("training step, one network", f"{microseconds:.0f} µs", "46 µs by hand"),
        Row("training", f"{ours:.0f} GFLOP/CPU s, {ours / peak:.0%} of peak", "at least 25", ours >= 25),
        Row("feature-major over row-major layout", f"{ours / usual:.2f} times", "above 1", ours > usual),
    ]
