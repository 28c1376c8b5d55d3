"""Bandits: what a step costs at 50 dimensions and 1000 arms, that it costs the same late as early, and memory.

The original, driven from Python, takes 2.9 ms (`mlp`) and 94 ms (`ensemble+`) per step there on the same kind of
machine; it cannot be installed beside Calibrant, so these are constants. `--full` plays all 20 seeds of 50,000 steps.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import Row, calibrant, fresh

STEPS, SEEDS = 50_000, 20
LIMITS = {"mlp": (15, 2.9), "ensemble+?size=30": (60, 94.0)}  # CPU minutes for all seeds, ms per step of the original
REST = ("ensemble?size=30", "dropout", "bbb", "hypermodel", "epinet", "deep_kernel")


def rows(full: bool) -> list[Row]:
    with fresh() as folder:
        measured = [row for agent in LIMITS for row in (_whole if full else _slice)(agent, Path(folder))]
        return [*measured, *(_step(agent, Path(folder)) for agent in REST), _constant()]


def _slice(agent: str, folder: Path) -> list[Row]:
    """Some steps of one chunk of seeds, multiplied; compilation is counted once."""
    minutes, original = LIMITS[agent]
    micro, compiling, peak = _measure(agent, 2000)
    spent = (micro * 1e-6 * STEPS * SEEDS + compiling) / 60
    return _rows(agent, spent, f"{micro:.0f} µs a step", minutes, original * 1000 / micro, peak)


def _whole(agent: str, folder: Path) -> list[Row]:
    minutes, original = LIMITS[agent]
    words = ["run", "bandit", "--preset", "paper", "--where", "dim=50", "--agents", agent, "--store", "games.db"]
    spent = calibrant(words, folder, folder / "cache")
    micro = spent.cpu / (STEPS * SEEDS) * 1e6
    return _rows(agent, spent.cpu / 60, "whole", minutes, original * 1000 / micro, spent.peak_mb)


def _rows(agent: str, spent: float, how: str, minutes: float, ratio: float, peak: float) -> list[Row]:
    name = f"bandit, 50 dimensions, 20 seeds: `{agent}`"
    return [
        Row(
            name, f"{spent:.1f} CPU min ({how}), original over ours {ratio:.0f}", f"at most {minutes}", spent <= minutes
        ),
        Row("its peak memory", f"{peak:.0f} MB", "at most 2000", peak <= 2000),
    ]


def _step(agent: str, folder: Path) -> Row:
    micro, _, peak = _measure(agent, 500)
    return Row(f"bandit, 50 dimensions, a step of `{agent}`", f"{micro:.0f} µs, {peak:.0f} MB", "")


def _constant() -> Row:
    """The same number of steps early and late in one game: the buffer is full from step 10,000 on."""
    early, late = _measure("mlp", 2000)[0], _measure("mlp", 2000, first=40_000)[0]
    return Row(
        "a step after 40,000 others over one at the start", f"{late / early:.2f} times", "below 1.2", late < 1.2 * early
    )


def _measure(agent: str, steps: int, first: int = 0) -> tuple[float, float, float]:
    """Microseconds per step and seed, CPU seconds of compilation, peak memory in MB: of this process so far."""
    from calibrant.engine import machine

    machine.settle()
    from calibrant import registry
    from calibrant.engine.cohorts import make_tasks
    from calibrant.engine.plan import make_cell
    from calibrant.engine.played import make_games
    from calibrant.engine.scoring import Stopwatch

    cells = [make_cell("bandit?dim=50", registry.canonical("agents", agent), seed) for seed in range(8)]
    task = make_tasks(cells)[0]
    games = make_games(task)
    positions, book = games.begin(*games.fixed), games.book
    with Stopwatch() as compiling:
        positions, _ = games.advance(positions, first, first + steps, book)
    with Stopwatch() as playing:
        games.advance(positions, first, first + steps, book)
    each = playing.cpu / (steps * task.width)
    return each * 1e6, compiling.cpu - playing.cpu, machine.peak_memory_mb()
