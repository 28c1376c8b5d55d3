"""What the README shows works: its commands and its Python are run, in order, in an empty folder.

In `sh`, `bash` and `console` blocks every line that begins with `calibrant` or `python` is run; set-up (`make`, `pip`,
`git`) is not. A `python` block is run, and kept under the name that its first line gives as a comment, as in
`# my_agent.py`. A block after the comment `<!-- not run -->` is left out. Anything else in a shell block is a mistake.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^(?P<skip><!-- not run -->\s*)?^```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^```\s*$", re.M | re.S)
RUN, SET_UP = ("calibrant", "python"), ("make", "pip", "git", "uv")


@dataclass(frozen=True)
class Step:
    """Something to run: a line of shell, or a Python script."""

    language: str
    text: str
    line: int


def steps(markdown: str) -> Iterator[Step]:
    for block in FENCE.finditer(markdown):
        line = markdown.count("\n", 0, block.start("text")) + 1
        if block["skip"]:
            continue
        if block["language"] == "python":
            yield Step("python", block["text"], line)
        elif block["language"] in ("sh", "bash", "console"):
            yield from _commands(block["text"], line, block["language"] == "console")


def _commands(text: str, first: int, with_prompt: bool) -> Iterator[Step]:
    """The commands of a shell block; in a console block only what follows a prompt is one."""
    pending = ""
    for line, content in enumerate(text.splitlines(), first):
        if with_prompt and not pending and not content.startswith("$ "):
            continue
        command = pending + (content.removeprefix("$ ") if with_prompt else content)
        pending = command[:-1] if command.endswith("\\") else ""
        word = (command.split() or ["#"])[0]
        if pending or word.startswith("#") or word in SET_UP:
            continue
        assert word in RUN, f"line {line} of the README is neither run nor known as set-up: {command}"
        yield Step("sh", command, line)


def perform(step: Step, folder: Path) -> None:
    """Run one step; it fails with what was printed."""
    programs = Path(sys.executable).parent
    env = os.environ | {"PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}
    if step.language == "python":
        named = re.match(r"# (\w+\.py)\n", step.text)
        file = folder / (named[1] if named else "block.py")
        file.write_text(step.text)
        command = [sys.executable, file.name]
    else:
        command = ["bash", "-o", "pipefail", "-c", step.text]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"line {step.line} of the README fails: {step.text}\n{done.stdout}{done.stderr}"


@pytest.fixture(autouse=True)
def default_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALIBRANT_STORE", raising=False)


@pytest.mark.slow
def test_everything_the_readme_shows_works(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    shown = list(steps((ROOT / "README.md").read_text()))
    assert {step.language for step in shown} == {"sh", "python"}
    for step in shown:
        perform(step, tmp_path)


SAMPLE = """
```sh
make demo   # sets up
calibrant list agents  # names
calibrant run testbed \\
    --seeds 1
```

<!-- not run -->
```sh
calibrant serve
```

```console
$ calibrant board testbed
testbed   a table
$ python -c "print(1)"
```

```python
# mine.py
value = 1
```

```json
{"not": "run"}
```
"""


def test_steps_are_found_in_order() -> None:
    assert list(steps(SAMPLE)) == [
        Step("sh", "calibrant list agents  # names", 4),
        Step("sh", "calibrant run testbed     --seeds 1", 6),
        Step("sh", "calibrant board testbed", 15),
        Step("sh", 'python -c "print(1)"', 17),
        Step("python", "# mine.py\nvalue = 1\n", 21),
    ]
    with pytest.raises(AssertionError, match="line 3 of the README is neither run nor known"):
        list(steps("\n```bash\nrm -rf results\n```\n"))


def test_steps_are_really_run(tmp_path: Path) -> None:
    perform(Step("python", "# mine.py\nvalue = 1\n", 1), tmp_path)
    perform(Step("sh", "python -c 'import mine; assert mine.value == 1'", 1), tmp_path)
    perform(Step("sh", "calibrant --version | grep -q .", 1), tmp_path)
    for step in (
        Step("sh", "calibrant board testbed", 7),
        Step("sh", "calibrant board testbed | cat", 7),
        Step("python", "raise ValueError\n", 7),
    ):
        with pytest.raises(AssertionError, match="line 7 of the README fails"):
            perform(step, tmp_path)
