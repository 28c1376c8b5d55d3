"""The suites `coins` and `logistic` from end to end: run, board, report, and refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from calibrant import registry
from calibrant.cli import main

CASES = {
    "coins": (["--where", "coins=10"], {"coins_independent", "coins_shared", "coins_posterior"}),
    "logistic": (["--where", "dim=300"], {"uniform", "marginal", "prior"}),
}


def run(*words: str) -> int:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["calibrant", *words])
        main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize("suite", sorted(CASES))
def test_run_board_report(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    where, agents = CASES[suite]
    assert run("run", suite, "--seeds", "1", "--executor", "local", *where) == 0
    capsys.readouterr()
    assert run("board", suite, "--json") == 0
    board: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert {row["agent"] for row in board["rows"]} == agents
    assert not any(row["failed"] for row in board["rows"])
    assert {"kl_tau10", "kl_tau100", "kl_tau10_kappa1", "kl_tau10_dyadic"} <= {row["metric"] for row in board["rows"]}
    assert run("board", suite) == 0
    assert run("report", suite, "-o", "report.html") == 0
    assert "kl_tau10" in Path("report.html").read_text()
    capsys.readouterr()
    assert run("run", suite, "--seeds", "1", "--executor", "local", *where, "--agents", "mlp") == 1
    assert "agent 'mlp' learns from data and" in capsys.readouterr().out


@pytest.mark.parametrize("suite", sorted(CASES))
def test_specs_are_canonical(suite: str) -> None:
    """A board finds records by the problem's canonical spec, so presets must spell it that way."""
    for preset in registry.load("suites", suite).presets.values():
        for problem in preset.problems:
            assert registry.canonical("problems", problem) == problem
        for agent in preset.agents:
            registry.canonical("agents", agent)
