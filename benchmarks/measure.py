"""Rows of the table, and how seconds are measured: CPU seconds of a process and its children, user and system."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    name: str
    value: str
    target: str
    met: bool | None = None

    def markdown(self) -> str:
        verdict = {True: "yes", False: "**no**", None: ""}[self.met]
        return f"| {self.name} | {self.value} | {self.target} | {verdict} |"


@dataclass(frozen=True)
class Spent:
    cpu: float
    wall: float
    peak_mb: float
    output: str


def calibrant(words: Sequence[str], folder: Path, cache: Path) -> Spent:
    """Run the command in a folder with its own compilation cache; CPU seconds include its workers."""
    command = [str(Path(sys.executable).parent / "calibrant"), *words]
    environment = os.environ | {"CALIBRANT_CACHE": str(cache)}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed: {done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(cpu, time.perf_counter() - began, after.ru_maxrss / 1024, done.stdout)


def fresh() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="calibrant-bench-")
