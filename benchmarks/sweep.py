"""The whole 2-D sweep, every question included, from an empty compilation cache; beside what the original needs.

The original's CPU hours (neural_testbed at its defaults, warm, on the same kind of machine) are constants: it cannot be
installed beside Calibrant. It also spends 8 CPU seconds and 1.1 GB on imports in every process, not counted here.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import Row, calibrant, fresh

ORIGINAL_CPU_HOURS = {"mlp": 0.55, "ensemble": 3.2, "ensemble+": 4.1}
SAMPLED_CPU_HOURS = {"dropout": 1.65, "bbb": 8.4, "hypermodel": 2.35, "epinet": 2.3, "sgmcmc": 120.0}
TARGET_CPU_SECONDS = {"mlp": 40, "ensemble": 1500, "ensemble+": 1500} | dict.fromkeys(SAMPLED_CPU_HOURS, 600)
TARGET_CPU_SECONDS["sgmcmc"] = 7200
ASK = 3.0  # a thousand worlds at the question's 12,000 inputs, scoring included
SLICE = ["--where", "temp=0.1", "--seeds", "2"]  # a fifteenth of the sweep, with every training size


def rows(full: bool) -> list[Row]:
    """The first agents and how two processes scale."""
    found = [_agent(agent, hours, full or agent == "mlp") for agent, hours in ORIGINAL_CPU_HOURS.items()]
    return [row for some in found for row in some] + [_scaling()]


def sampled_rows(full: bool) -> list[Row]:
    """Agents that imagine worlds without end, or by a long chain."""
    return [row for agent, hours in SAMPLED_CPU_HOURS.items() for row in _agent(agent, hours, full)]


def _agent(agent: str, hours: float, whole: bool) -> list[Row]:
    with fresh() as name:
        folder = Path(name)
        words = ["run", "testbed", "--preset", "paper", "--agents", agent, "--executor", "local", "--store", "s.db"]
        spent = calibrant(words if whole else words + SLICE, folder, folder / "cache")
        work, ask = _work(folder / "s.db")
    seconds = spent.cpu if whole else spent.cpu + 14 * work  # imports and compilation are paid once
    target = TARGET_CPU_SECONDS[agent]
    ratio = hours * 3600 / seconds
    how = "" if whole else " (a fifteenth, times 15)"
    return [
        Row(f"sweep of `{agent}`{how}", f"{seconds:.0f} CPU s", f"at most {target}", seconds <= target),
        Row("the original over ours", f"{ratio:.0f} times", ""),
        Row(
            "asking and scoring an environment",
            f"{ask:.2f} CPU s",
            f"at most {ASK:g}",
            ask <= ASK,
        ),
        Row("peak memory", f"{spent.peak_mb:.0f} MB", "at most 2000", spent.peak_mb <= 2000),
    ]


def _work(store: Path) -> tuple[float, float]:
    """CPU seconds of fitting and asking all cells, without what a process pays once; and of asking one."""
    from calibrant.engine.store import open_store

    with open_store(str(store), create=False) as opened:
        costs = [record.cost for record in opened.records()]
    asking = sum(cost.ask_cpu_seconds for cost in costs)
    return asking + sum(cost.fit_cpu_seconds for cost in costs), asking / len(costs)


def _scaling() -> Row:
    """Throughput of two worker processes over one, programs compiled beforehand."""
    with fresh() as name:
        folder, cache = Path(name), Path(name) / "cache"
        base = ["run", "testbed", "--preset", "paper", "--agents", "ensemble", "--where", "temp=0.1,train=100|1000",
                "--seeds", "8", "--executor", "processes"]  # fmt: skip
        calibrant([*base, "--seeds", "1", "--workers", "1", "--store", "warm.db"], folder, cache)
        one = calibrant([*base, "--workers", "1", "--store", "one.db"], folder, cache).wall
        two = calibrant([*base, "--workers", "2", "--store", "two.db"], folder, cache).wall
    return Row("throughput of 2 processes over 1", f"{one / two:.2f} times", "at least 1.8", one / two >= 1.8)
