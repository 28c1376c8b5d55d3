"""The suite `real` from end to end: iris from the installed package into an empty folder, others refused at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import registry
from calibrant.cli import main
from calibrant.data import sources
from calibrant.engine import run as engine
from calibrant.engine.plan import make_plan

AGENTS = "uniform,mlp?steps=60,ensemble?size=3&steps=60"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A store with iris at ten rows, two seeds, and the data folder that the run filled."""
    folder = tmp_path_factory.mktemp("data")
    store = str(tmp_path_factory.mktemp("store") / "real.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CALIBRANT_DATA", str(folder))
        words = ["--where", "data=iris,train=10", "--agents", AGENTS, "--seeds", "2", "--executor", "local"]
        assert call("run", "real", *words, "--store", store) == 0
    return store, folder


def call(*words: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["calibrant", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
    return int(stopped.value.code or 0)


def test_the_board_has_the_suites_columns(made: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert call("board", "real", "--json", "--store", made[0]) == 0
    board = json.loads(capsys.readouterr().out)
    rows = {(row["agent"], row["metric"]): row for row in board["rows"]}
    assert board["baseline"] is None or board["baseline"].startswith("mlp")
    metrics = {metric for _, metric in rows}
    assert metrics == {"nll", "joint_nll_tau10_dyadic", "accuracy", "ece", "fit_cpu_seconds"}
    assert rows["uniform", "nll"]["mean"] == pytest.approx(np.log(3), abs=1e-6)
    assert rows["uniform", "joint_nll_tau10_dyadic"]["mean"] == pytest.approx(10 * np.log(3), abs=1e-5)
    assert rows["uniform", "nll"]["n"] == 2 and not any(row["failed"] for row in board["rows"])
    learned = rows["mlp?steps=60", "accuracy"]["mean"]
    assert 0.5 < learned <= 1  # a third by chance; 60 steps on ten flowers reach 0.7 to 0.9
    assert (made[1] / "iris" / "manifest.json").is_file()


def test_boards_by_dataset_and_reports_do_not_break(made: tuple[str, Path], tmp_path: Path) -> None:
    assert call("board", "real", "--by", "data,train", "--store", made[0]) == 0
    page = tmp_path / "report.html"
    assert call("report", "real", "-o", str(page), "--store", made[0]) == 0
    assert "Real data" in page.read_text()


def test_what_is_not_here_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every cell fails with the command that helps, no executor is given any of them, the exit code is 1."""
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(sources, "installed", lambda _: None)
    given: list[Any] = []
    monkeypatch.setattr(engine, "make_tasks", lambda cells, *_: given.extend(cells) or [])
    words = ["--where", "data=mnist,train=10", "--agents", "mlp", "--seeds", "2", "--store", str(tmp_path / "s.db")]
    assert call("run", "real", *words) == 1
    said = capsys.readouterr()
    assert "run `calibrant data get mnist` first" in said.out + said.err
    assert not given


def test_only_what_is_missing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    plan = make_plan(registry.load("suites", "real"), "paper", ["uniform"], 1, {"data": "iris|cifar10", "train": "10"})
    refused = engine.refuse(plan)
    assert [record.cell.problem for record in refused] == ["real?data=cifar10"]
    assert refused[0].failed and "calibrant data get cifar10" in str(refused[0].reason)
