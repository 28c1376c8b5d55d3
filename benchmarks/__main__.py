"""`python -m benchmarks [PART ...] [--full]`: a Markdown table of what is measured and what is to be reached."""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks import commands, games, kernel, projection, real, sweep
from benchmarks.measure import Row

PARTS = ("kernel", "commands", "sweep", "agents", "real", "projection", "games")


def main(words: list[str]) -> None:
    full = "--full" in words
    chosen = [word for word in words if word != "--full"] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        raise SystemExit(f"unknown part {', '.join(sorted(unknown))}; it should be {', '.join(PARTS)}")
    print("| what | measured | to reach | met |\n|---|---|---|---|", flush=True)
    measures: dict[str, Callable[[], list[Row]]] = {
        "kernel": kernel.rows,
        "commands": commands.rows,
        "sweep": lambda: sweep.rows(full),
        "agents": lambda: sweep.sampled_rows(full),
        "real": real.rows,
        "games": lambda: games.rows(full),
        "projection": projection.rows,
    }
    found: list[Row] = []
    for part in chosen:
        measured = measures[part]()
        found += measured
        print("\n".join(row.markdown() for row in measured), flush=True)
    sys.exit(any(row.met is False for row in found))


main(sys.argv[1:])
