"""How a board is printed and written, and what happens when nobody reads it to the end."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from calibrant import api
from calibrant.cli import output
from calibrant.engine.run import Outcome
from calibrant.report.board import Board
from calibrant.types import CalibrantError


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    store = str(tmp_path_factory.mktemp("store") / "results.db")
    return api.evaluate(
        ["uniform", "oracle"],
        "testbed",
        store=store,
        seeds=1,
        where={"train": "10"},
        baseline="uniform",
        executor="local",
    )


def printed(board: Board, format: str, captured: pytest.CaptureFixture[str]) -> str:
    output.board(board, format, None)
    return captured.readouterr().out


def test_table(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(board, "table", capsys)
    assert "oracle" in text and "uniform" in text and "\x1b" not in text
    assert text.index("oracle") < text.index("uniform")  # the better one comes first
    assert all(len(line) <= 120 for line in text.splitlines())


def test_json(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(board, "json", capsys)) == json.loads(json.dumps(board.to_json()))


def test_csv(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(board, "csv", capsys))))
    assert len(rows) == len(board.rows)
    for row, expected in zip(rows, board.rows, strict=True):
        assert (row["agent"], row["metric"], int(row["n"])) == (expected.agent, expected.metric, expected.n)
        assert float(row["mean"]) == expected.mean


def test_latex(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(board, "latex", capsys)
    assert r"\begin{tabular}" in text and r"\end{tabular}" in text and "oracle" in text
    assert text.count("{") == text.count("}")


def test_parquet(board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Written where PyArrow is installed, and a sentence where it is not."""
    file = tmp_path / "board.parquet"
    try:
        import pyarrow.parquet
    except ImportError:
        with pytest.raises(CalibrantError, match="Parquet needs PyArrow"):
            output.board(board, "parquet", file)
        return
    output.board(board, "parquet", file)
    assert capsys.readouterr().out == f"wrote {file}\n"
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(file).to_pylist()
    assert [(row["agent"], row["metric"], row["mean"]) for row in rows] == [
        (row.agent, row.metric, row.mean) for row in board.rows
    ]


def test_parquet_is_not_printed(board: Board) -> None:
    with pytest.raises(CalibrantError, match="say where to write it with --out FILE"):
        output.board(board, "parquet", None)


def test_a_written_board_is_what_would_be_printed(
    board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "board.csv"
    file.write_text("old")
    output.board(board, "csv", file)
    assert capsys.readouterr().out == f"wrote {file}\n"
    assert file.read_text().rstrip("\n") == printed(board, "csv", capsys).rstrip("\n")
    assert list(tmp_path.iterdir()) == [file]
    beside = tmp_path / "beside"
    beside.touch()
    assert file.stat().st_mode == beside.stat().st_mode  # as readable for others as any new file


def test_what_cannot_be_written_leaves_nothing_behind(board: Board, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(CalibrantError, match=r"cannot write .*taken.: it is a directory"):
        output.board(board, "csv", tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_an_outcome_names_failures_once_and_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    output.outcome(
        Outcome(9, 2, 3, 4, reasons=("a: x", "a: x", "b: y", "b: y")), "testbed", "sqlite:///calibrant.db", False
    )
    assert capsys.readouterr().out.splitlines() == [
        "9 cells: 2 already there, 3 done, 4 failed",
        "  failed: a: x",
        "  failed: b: y",
        "see: calibrant board testbed   or: calibrant report testbed",
    ]
    output.outcome(Outcome(9, 2, 3, 0, interrupted=True), "testbed", "other.db", False)
    assert capsys.readouterr().out.splitlines() == [
        "9 cells: 2 already there, 3 done",
        "interrupted; the same command continues from here",
    ]


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    """As in `calibrant list agents | head -1`: exit code 0, and not a word on the standard error."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "from calibrant.cli import main; main()", "list", "suites"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
