"""Real data: an epoch over all of MNIST, the memory that takes, and the quick preset from an empty compilation cache.

A torch loop over data in memory needs 1.3 to 1.8 CPU seconds for that epoch (784-200-200-10, minibatches of 100, Adam,
on the same kind of machine); it is not installed beside Calibrant, so that is a constant.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import Row, calibrant, fresh

EPOCHS, BATCH, ROWS = 2, 100, 60_000
AGENT = f"mlp?steps={EPOCHS * ROWS // BATCH}&hidden=200x200"


def rows() -> list[Row]:
    from calibrant.problems.real import Real
    from calibrant.types import CalibrantError

    try:
        for name in ("iris", "wine_quality", "german_credit", "mnist"):
            Real(name).require()
    except CalibrantError as error:
        return [Row("real data", f"not measured: {str(error).partition(':')[0]}", "")]
    with fresh() as folder:
        return [*_epoch(Path(folder)), _quick(Path(folder))]


def _epoch(folder: Path) -> list[Row]:
    from calibrant.engine.store import open_store

    cell = ["--preset", "paper", "--where", f"data=mnist,train={ROWS}", "--agents", AGENT, "--seeds", "1"]
    words = ["run", "real", *cell, "--executor", "local", "--store", "epoch.db"]
    spent = calibrant(words, folder, folder / "cache")
    with open_store(str(folder / "epoch.db"), create=False) as opened:
        (record,) = opened.records()
    seconds = record.cost.fit_cpu_seconds / EPOCHS
    return [
        Row("an epoch of MNIST, 784-200-200-10", f"{seconds:.2f} CPU s", "at most 2.5", seconds <= 2.5),
        Row("accuracy after two epochs", f"{record.scores['accuracy'].mean:.3f}", ""),
        Row("peak memory", f"{spent.peak_mb:.0f} MB", "at most 1000", spent.peak_mb <= 1000),
    ]


def _quick(folder: Path) -> Row:
    spent = calibrant(["run", "real", "--store", "quick.db"], folder, folder / "cold")
    value = f"{spent.wall:.0f} s, {spent.cpu:.0f} CPU s"
    return Row("`calibrant run real`, cold", value, "under 180 s", spent.wall < 180)
