"""`calibrant tune` from end to end: run, kill, continue, show, adopt, and run with what was adopted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from calibrant.cli import main
from calibrant.engine.store import open_store

AGENT = """
import time
from dataclasses import dataclass

@dataclass(frozen=True)
class Tilted:
    tilt: float = 3.0
    wait: float = 0.0

    def fit(self, seed, train, facts):
        time.sleep(self.wait)
        return lambda x: [[[0.0, self.tilt]] * len(x)]
"""
SMALL = ("--where", "train=10,temp=0.5", "--executor", "local")
TUNE = ("tune", "testbed", "tilted.py:Tilted", "--space", "tilt=0|1|2", "--seeds", "2", *SMALL)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "tilted.py").write_text(AGENT)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["calibrant", *words])
        main()
    out, err = capsys.readouterr()
    assert int(ended.value.code or 0) == code, err
    return out, err


def test_tune_show_adopt_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = run(capsys, *TUNE)
    assert "trials 0-3: 1 x 1 environments each (rung 1 of 2)" in err and "4/4 cells" in err
    assert ": 4 trials (" in out and "expected best of k trials" in out and "tilted.py:Tilted@" in out
    again, err = run(capsys, *TUNE, "--adopt")
    assert again.startswith(out.rstrip("\n")) and err == ""  # nothing was left to do
    (wrote,) = again.splitlines()[len(out.splitlines()) :]
    assert wrote.startswith("wrote tuned.toml: tilted.py:Tilted@") and wrote.endswith("?tilt=0")
    shown, _ = run(capsys, "tune", "--show")
    assert shown == out
    out, _ = run(capsys, "run", "testbed", "--agent", "tilted.py:Tilted", "--tuned", "--seeds", "1", *SMALL)
    assert "1 cells: 0 already there, 1 done" in out
    out, _ = run(capsys, "board", "testbed", "--json")
    rows = json.loads(out)["rows"]
    assert {row["n"] for row in rows} == {1}  # the tuning environments are not on the board
    assert {row["agent"].partition("?")[2] for row in rows} == {"tilt=0"}


def test_json_is_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = run(capsys, *TUNE, "--json", "--adopt", "--file", "other.toml", "--metric", "nll")
    read = json.loads(out)
    assert err == "" and Path("other.toml").is_file() and not Path("tuned.toml").exists()
    (study,) = read["studies"]
    assert study["settings"]["metric"] == "nll" and study["best"].endswith("tilt=0")
    assert read["adopted"]["spec"] == study["best"] and read["interrupted"] is False
    shown = json.loads(run(capsys, "tune", "testbed", "--show", "--metric", "nll", "--json")[0])
    assert shown["studies"] == [study]


def test_failed_trials_are_told_by_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    space = ("--space", "tilt=0|nan")
    run(capsys, "tune", "testbed", "tilted.py:Tilted", *space, *SMALL, code=2)
    Path("tilted.py").write_text(AGENT.replace("time.sleep(self.wait)", "1 / (self.tilt - 1)"))
    out, _ = run(capsys, "tune", "testbed", "tilted.py:Tilted", "--space", "tilt=0|1", "--seeds", "1", *SMALL, code=1)
    assert "(testbed?temp=0.5: ZeroDivisionError" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("tune",), "say what to tune: calibrant tune SUITE AGENT"),
        (("tune", "testbed"), "say what to tune"),
        (("tune", "testbad", "mlp"), "unknown suite 'testbad', did you mean 'testbed'?"),
        (("tune", "testbed", "mpl"), "unknown agent 'mpl', did you mean 'mlp'?"),
        (("tune", "testbed", "mlp", "--trials", "0"), "trials=0 should be at least 1"),
        (("tune", "testbed", "mlp", "--cpu-minutes", "-1"), "cpu-minutes=-1 should be more than 0"),
        (("tune", "testbed", "mlp", "--seeds", "0"), "seeds=0 should be at least 1"),
        (("tune", "testbed", "mlp", "--space", "l2=1..2"), "a grid needs listed values"),
        (("tune", "testbed", "mlp", "--space", "l3=1|2"), "unknown parameter 'l3'"),
        (("tune", "testbed", "mlp", "--metric", "klt"), "unknown metric 'klt'"),
        (("tune", "testbed", "oracle"), "agent 'oracle' says of no parameter what it may be"),
        (("tune", "testbed", "mlp", "--where", "train"), "'train' is not of the form field=value"),
        (("tune", "--show"), "no store at"),
        (("run", "testbed", "--agents", "oracle", "--tuned"), "there is no tuned spec of oracle for suite 'testbed'"),
    ],
)
def test_wrong_input_is_one_sentence(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str) -> None:
    out, err = run(capsys, *words, code=2)
    assert out == "" and err.startswith("calibrant: ") and sentence in err and err.count("\n") == 1


def test_showing_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, *TUNE, "--trials", "1")
    _, err = run(capsys, "tune", "testbed", "mlp", "--show", code=2)
    assert "has no such study of mlp on testbed; `calibrant tune` makes one" in err
    run(capsys, *TUNE, "--seed", "1", "--trials", "1")
    _, err = run(capsys, "tune", "--show", "--adopt", code=2)
    assert "--adopt takes the best of one study, but these are 2:" in err


# --- killed ---------------------------------------------------------------------------------------


def told(folder: Path, store: str) -> list[tuple[Any, ...]]:
    with open_store(str(folder / store), create=False) as opened:
        (name,) = opened.studies()
        return [(one.number, one.spec, one.state, one.objective, one.rungs) for one in opened.trials(name)]


def test_killed_at_any_moment_it_continues_to_the_same_trials(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Killed in the middle of a batch, then given again."""
    words = ("tune", "testbed", "tilted.py:Tilted?wait=0.1", "--space", "tilt=0..9", "--sampler", "tpe", *SMALL)
    words += ("--trials", "12", "--seeds", "2")
    run(capsys, *words, "--store", "whole.db")
    command = [sys.executable, "-c", "from calibrant.cli import main; main()", *words, "--store", "killed.db"]
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, stdout=nowhere, stderr=nowhere, start_new_session=True)
    wait_for(folder / "killed.db", 6, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert "open" in [trial[2] for trial in told(folder, "killed.db")]
    _, err = run(capsys, *words, "--store", "killed.db")
    assert "trials 1-8: 1 x 1 environments each" in err and ", 0 already there" not in err.splitlines()[1]
    assert told(folder, "killed.db") == told(folder, "whole.db")


def wait_for(file: Path, records: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "it ended before it could be killed"
        if file.exists():
            try:
                with open_store(str(file), create=False) as opened:
                    if sum(1 for _ in opened.records()) >= records:
                        return
            except Exception:  # it is being made
                pass
        time.sleep(0.02)
    raise AssertionError("nothing was recorded")
