"""A live bar on a terminal, plain lines in a pipe, nothing when asked to be quiet."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibrant.cli import progress
from calibrant.engine.run import Silent
from calibrant.types import Cell, Record

RUN = ("run", "testbed", "--agents", "oracle", "--where", "train=10", "--seeds", "1", "--executor", "local")
COMMAND = [sys.executable, "-c", "from calibrant.cli import main; main()", *RUN]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
FAILING = "def agent(seed, train, facts):\n    raise ValueError('[/b]no idea[b]')\n"


@pytest.fixture(scope="module", autouse=True)
def terminal() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "150")
        yield


def record(seed: int = 0, reason: str | None = None) -> Record:
    return Record(Cell("testbed", "[red]mine[/blue]", seed, f"cell{seed}"), reason=reason)


def test_a_pipe_gets_plain_lines(tmp_path: Path) -> None:
    done = subprocess.run(COMMAND, cwd=tmp_path, capture_output=True, text=True, check=True)
    first, last = done.stderr.splitlines()
    assert first == "3 cells, 0 already there"
    assert re.fullmatch(r"3/3 cells, [\d.]+/s, 0 s left, now oracle", last)
    assert done.stdout.splitlines() == [
        "3 cells: 0 already there, 3 done",
        "see: calibrant board testbed   or: calibrant report testbed",
    ]


def test_json_is_all_that_is_printed(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == "" and done.stdout.startswith("{")


def test_a_terminal_gets_a_live_bar(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "--agent", "failing.py:agent"], cwd=tmp_path, stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    shown = _read_all(controller)
    assert process.wait() == 1
    assert "\x1b[?25l" in shown and "\x1b[?25h" in shown  # the cursor is hidden, and comes back
    text = ESCAPE.sub("", shown)
    assert "━" in text and "6/6 cells" in text and "left" in text
    assert re.search(r"[\d.]+/s", text)
    assert text.count("failed: failing.py:agent@") >= 3
    assert "ValueError: [/b]no idea[b]" in text  # a reason is text, whatever it looks like
    assert "6 cells: 0 already there, 3 done, 3 failed" in text


def _read_all(controller: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:  # Linux says so when the last writer is gone
            break
        if not part:
            break
        parts.append(part)
    os.close(controller)
    return b"".join(parts).decode()


def test_who_watches_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(progress.make_progress(quiet=True), Silent)
    assert isinstance(progress.make_progress(quiet=False), progress.Lines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(progress.make_progress(quiet=False), progress.Bar)


def test_lines_come_every_few_seconds_and_for_every_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    lines = progress.Lines()
    lines.start(300, 100)
    for seed in range(40):
        now[0] += 0.5
        lines.advance(record(seed, "ValueError: no" if seed == 1 else None))
    lines.stop()
    assert capsys.readouterr().err.splitlines() == [
        "300 cells, 100 already there",
        "failed: [red]mine[/blue] on testbed, seed 1: ValueError: no",
        "120/300 cells, 2.0/s, 1 min 30 s left, now [red]mine[/blue]",
        "140/300 cells, 2.0/s, 1 min 20 s left, now [red]mine[/blue]",
    ]


def test_the_bar_takes_any_name_for_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A file name may hold what the terminal library takes for markup."""
    bar = progress.Bar()
    bar.start(2, 0)
    bar.advance(record(0))
    bar.advance(record(1, "[/green]oops"))
    bar.stop()
    shown = capsys.readouterr().err
    assert "failed: [red]mine[/blue] on testbed: [/green]oops" in shown and "2/2 cells" in shown
