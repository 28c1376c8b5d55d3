"""Tests keep compiled programs in a folder of their own, and their subprocesses find what they themselves find."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CALIBRANT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        yield
