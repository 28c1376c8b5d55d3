"""What a user waits for: help, a first run, a run with warm caches, a board over many records."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.measure import Row, calibrant, fresh

RECORDS = 10_000


def rows() -> list[Row]:
    with fresh() as name:
        folder, cache = Path(name), Path(name) / "cache"
        helped = min(calibrant(["--help"], folder, cache).cpu for _ in range(3))
        three = ["run", "testbed", "--agents", "mlp", "--where", "temp=0.1,train=10|100|1000", "--seeds", "1"]
        cold = calibrant([*three, "--store", "cold.db"], folder, cache).wall
        warm = min(calibrant([*three, "--store", f"warm{i}.db"], folder, cache).wall for i in range(2))
        again = calibrant([*three, "--store", "cold.db"], folder, cache).wall
        board = _board(folder, cache)
    return [
        Row("`calibrant --help`", f"{helped:.2f} CPU s", "under 0.3", helped < 0.3),
        Row("cold run, one agent, three problems", f"{cold:.1f} s", "under 15", cold < 15),
        Row("warm run, one agent, three problems", f"{warm:.1f} s", "under 6", warm < 6),
        Row("the same command again (nothing to do)", f"{again:.1f} s", ""),
        Row(f"`calibrant board` over {RECORDS:,} records", f"{board:.2f} s", "under 2", board < 2),
    ]


def _board(folder: Path, cache: Path) -> float:
    """Ten thousand records made from ten real ones, then the command as a user gives it."""
    import dataclasses

    from calibrant.engine.plan import make_cell
    from calibrant.engine.store import open_store

    calibrant(["run", "testbed", "--agents", "uniform,oracle", "--seeds", "1", "--store", "few.db"], folder, cache)
    with open_store(str(folder / "few.db")) as few, open_store(str(folder / "many.db")) as many:
        real = list(few.records())
        for number in range(RECORDS):
            record = real[number % len(real)]
            cell = make_cell(record.cell.problem, record.cell.agent, number // len(real))
            many.append(dataclasses.replace(record, cell=cell))
    began = time.perf_counter()
    calibrant(["board", "testbed", "--store", "many.db"], folder, cache)
    return time.perf_counter() - began
