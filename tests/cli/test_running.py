"""Whose tuned hyperparameters a run takes."""

from __future__ import annotations

import pytest

from calibrant.cli.running import run_suite
from calibrant.types import CalibrantError


@pytest.mark.parametrize(("suite", "tuned_on"), [("testbed", "testbed"), ("robustness", "testbed")])
def test_other_laws_take_what_was_tuned_on_the_default_one(
    suite: str, tuned_on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(name: str, agents: object) -> list[str]:
        raise CalibrantError(f"tuned on {name}")

    monkeypatch.setattr("calibrant.tune.tuned.tuned_specs", told)
    with pytest.raises(CalibrantError, match=f"tuned on {tuned_on}$"):
        run_suite(suite, [], "quick", {}, None, "local", None, None, True, "sqlite://", quiet=True)
