"""Where a number comes from: package, commit, libraries, hardware."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from calibrant.engine import machine

LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "optax", "scikit-learn")


@cache
def provenance() -> dict[str, Any]:
    return {
        "calibrant": _version("calibrant"),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": machine.cpu_name(),
        "cores": machine.cores(),
        "libraries": {name: _version(name) for name in LIBRARIES},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _commit() -> str | None:
    """The commit of a source checkout, marked when it has local changes; None for an installed package."""
    folder = Path(__file__).parent
    try:
        top = _git(folder, "rev-parse", "--show-toplevel")
        if not (Path(top) / "src" / "calibrant").is_dir():
            return None
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
        return _git(folder, "rev-parse", "HEAD")[:12] + ("+changes" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
