"""Calibrant measures how well a learning system knows what it does not know.

`calibrant.evaluate("mlp", "testbed")` runs an agent on a suite and returns its board; `calibrant.load("calibrant.db")`
reads what was run before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from calibrant.api import evaluate, load

__all__ = ["__version__", "evaluate", "load"]


def __getattr__(name: str) -> Any:
    """`evaluate` and `load` are imported when first used: naming the package costs nothing."""
    if name in ("evaluate", "load"):
        from calibrant import api

        return getattr(api, name)
    raise AttributeError(f"module 'calibrant' has no attribute '{name}'")
