"""`calibrant reproduce` from end to end, on a paper of one's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from calibrant.cli import main

PAPER = """
name = "tiny"
title = "A tiny paper"
citation = "Nobody, 2020"
[items.table1]
title = "Table 1"
plan = { suite = "testbed", problems = ["testbed?train=1&tuples=20&worlds=20"], seeds = 2 }
[[items.table1.values]]
label = "ORACLE"
agent = "oracle"
published = { kl_tau10 = 0.0 }
[[items.table1.values]]
label = "UNIFORM"
agent = "uniform"
published = { accuracy = 0.4 }
"""
MINE = """
def agent(seed, train, facts):
    raise ValueError("no idea")
"""


class Terminal:
    """Runs commands as the script does, in this process and in an empty folder with a paper in it."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self._captured = captured

    def __call__(self, *words: str, code: int = 0) -> str:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
            patch.setattr(sys, "argv", ["calibrant", *words])
            main()
        out, err = self._captured.readouterr()
        assert (ended.value.code or 0) == code, err
        return out if code != 2 else err

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code))


@pytest.fixture
def calibrant(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Terminal:
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(PAPER)
    return Terminal(capsys)


def test_a_receipt_is_printed_stored_and_written(calibrant: Terminal) -> None:
    text = calibrant("reproduce", "tiny.toml:table1", "--executor", "local")
    assert "1 of 2 claims agree, 1 differs." in text and "wrote tiny-table1.md" in text
    assert "ORACLE" in Path("tiny-table1.md").read_text()

    found = calibrant.json("reproduce", "tiny.toml:table1", "--no-run", "--out", "other.md")
    assert found["path"] == "other.md" and Path("other.md").is_file()
    assert found["ran"]["already"] == found["cells"] == 4 and found["ran"]["done"] == 0
    assert found["verdicts"] == {"agrees": 1, "differs": 1, "undecided": 0, "not run": 0}
    assert found["whole"] and not found["tuned"]
    oracle, uniform = found["rows"]
    assert set(oracle) == {
        "kind", "label", "agent", "metric", "expected", "published", "error", "ours", "as_published", "of", "failed",
        "cpu_seconds", "n", "verdict",
    }  # fmt: skip
    assert set(oracle["ours"]) == {"mean", "low", "high", "se", "n", "z", "z_alike", "mc_bias", "verdict"}
    assert (uniform["published"], uniform["ours"]["mean"], uniform["verdict"]) == (0.4, 0.5, "differs")


def test_a_part_says_so_and_leaves_the_whole_alone(calibrant: Terminal) -> None:
    Path("docs/results").mkdir(parents=True)
    text = calibrant("reproduce", "tiny.toml:table1", "--agents", "oracle", "--seeds", "1", "--executor", "local")
    assert "Partial: 1 of 2 seeds; only oracle." in text
    assert [path.name for path in Path("docs/results").iterdir()] == ["tiny-table1-partial.md"]


def test_tuned_hyperparameters_stand_for_the_defaults(calibrant: Terminal) -> None:
    Path("tiny.toml").write_text(PAPER.replace('"uniform"', '"logistic"'))
    err = calibrant("reproduce", "tiny.toml:table1", "--tuned", "--seeds", "1", code=2)
    assert "there is no tuned spec of oracle, logistic for suite 'testbed'" in err
    Path("tuned.toml").write_text('[testbed."logistic"]\nspec = "logistic?steps=3"\n')
    calibrant("reproduce", "tiny.toml:table1", "--agents", "oracle", "--seeds", "1", "--executor", "local")
    found = calibrant.json("reproduce", "tiny.toml:table1", "--tuned", "--seeds", "1", "--no-run")
    assert [(row["agent"], row["n"]) for row in found["rows"]] == [("oracle", 1), ("logistic?steps=3", 0)]
    assert found["tuned"] and found["path"] == "tiny-table1-tuned-partial.md"


def test_a_failed_cell_is_exit_code_one_and_in_the_receipt(calibrant: Terminal) -> None:
    Path("mine.py").write_text(MINE)
    Path("tiny.toml").write_text(PAPER.replace('"uniform"', '"mine.py:agent"'))
    found = calibrant.json("reproduce", "tiny.toml:table1", "--seeds", "1", "--executor", "local", code=1)
    assert found["failed"] == 1 and found["rows"][1]["verdict"] == "not run"
    assert "ValueError: no idea" in found["ran"]["reasons"][0]


def test_without_an_item_what_there_is_is_listed(calibrant: Terminal) -> None:
    entries = calibrant.json("reproduce")
    assert entries == calibrant.json("list", "papers")
    testbed = next(entry for entry in entries if entry["name"] == "neural-testbed")
    assert list(testbed["parameters"]) == ["table2", "figure6"] and "Osband" in testbed["summary"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["neural-testbed:tabel2"], "'neural-testbed' has no item 'tabel2', did you mean 'table2'?"),
        (["neural-tesbed:table2"], "unknown paper 'neural-tesbed', did you mean 'neural-testbed'?"),
        (["tiny.toml:table1", "--agents", "orcle"], "says nothing about agent 'orcle', did you mean 'oracle'?"),
        (["tiny.toml:table1", "--no-run"], "no store at calibrant.db"),
        (["tiny.toml:table1", "--seeds", "0"], "seeds=0 should be at least 1"),
    ],
)
def test_wrong_input_is_one_sentence(calibrant: Terminal, words: list[str], sentence: str) -> None:
    err = calibrant("reproduce", *words, code=2)
    assert sentence in err and err.count("\n") == 1
