"""Asking for help, or merely importing the package, must not wait for numerical libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import calibrant

HEAVY = {
    "alembic", "blackjax", "jax", "jaxlib", "jinja2", "mujoco", "numpy", "optax", "optuna", "pydantic", "scipy",
    "sklearn", "sqlalchemy", "torch",
}  # fmt: skip
SOURCE = Path(calibrant.__file__).parents[1]


def modules_after(code: str) -> set[str]:
    """Top-level names of all modules that a fresh interpreter loads, in order of `-X importtime`."""
    command = [sys.executable, "-X", "importtime", "-c", f"import sys; sys.path.insert(0, {str(SOURCE)!r}); {code}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize("module", ["calibrant", "calibrant.cli", "calibrant.cli.app", "calibrant.registry"])
def test_importing_is_light(module: str) -> None:
    loaded = modules_after(f"import {module}")
    assert "calibrant" in loaded
    assert not loaded & HEAVY


def test_naming_things_is_light() -> None:
    """Suites and lists of names are strings until something is run."""
    loaded = modules_after(
        "from calibrant import registry; registry.table('agents'); registry.load('suites', 'testbed')"
    )
    assert not loaded & HEAVY


def test_help_is_light() -> None:
    loaded = modules_after("import calibrant.cli; sys.argv = ['calibrant', '--help']; calibrant.cli.main()")
    assert "typer" in loaded
    assert not loaded & HEAVY


def test_the_probe_sees_heavy_imports() -> None:
    assert "numpy" in modules_after("import numpy")
