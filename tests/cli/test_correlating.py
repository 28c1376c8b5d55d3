"""`calibrant correlate` from end to end on tiny sizes: tables, JSON, figures, and one sentence for what is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from calibrant.cli import main

AGENTS = "knn?neighbours=1,knn,random_forest?trees=3"  # without compilation
RUNS = (
    ("testbed", "train=10,temp=0.1|0.5", "2", AGENTS + ",uniform"),
    ("testbed-hd", "dim=2,train=20", "2", AGENTS),
    ("robustness", "train=10,activation=relu|tanh,hidden=50x50", "2", AGENTS),
)


def run(*words: str) -> int:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["calibrant", *words])
        main()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("store") / "results.db"
    for suite, where, seeds, agents in RUNS:
        words = ("--agents", agents, "--where", where, "--seeds", seeds, "--executor", "local", "--store", str(file))
        assert run("run", suite, *words) == 0
    return str(file)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run("correlate", *words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def sentence(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run("correlate", *words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("calibrant: ") and err.count("\n") == 1
    return err


def test_two_suites_as_table_and_json(capsys: pytest.CaptureFixture[str], store: str) -> None:
    text = printed(capsys, "testbed", "testbed-hd", "--store", store)
    assert text.startswith("3 agents on 4 environments of testbed and 2 environments of testbed-hd")
    assert "left out: uniform (no score in suite 'testbed-hd')" in text
    found: Any = json.loads(printed(capsys, "testbed", "testbed-hd", "--store", store, "--json"))
    side = {"suite": "testbed", "metric": "kl_tau10_dyadic", "environments": 4, "part": "", "better": "lower"}
    assert found["a"] == side
    assert {one["agent"] for one in found["points"]} == set(AGENTS.split(","))
    kinds = {one["kind"]: one for one in found["correlations"]}
    assert kinds.keys() == {"pearson", "log", "rank"} and all(-1 <= one["value"] <= 1 for one in kinds.values())
    assert kinds["rank"]["agents_low"] is None and found["percentiles"] == [5, 95]  # three agents are too few


def test_metrics_and_agents_are_chosen(capsys: pytest.CaptureFixture[str], store: str) -> None:
    words = ("testbed", "testbed", "--metric-a", "kl_tau1", "--metric-b", "accuracy", "--agents", AGENTS + ",uniform")
    found: Any = json.loads(printed(capsys, *words, "--store", store, "--json"))
    assert (found["a"]["metric"], found["b"]["metric"], found["b"]["better"]) == ("kl_tau1", "accuracy", "higher")
    assert len(found["points"]) == 4


def test_the_values_of_a_field(capsys: pytest.CaptureFixture[str], store: str) -> None:
    words = ("robustness", "--by", "activation", "--metric-a", "kl_tau10", "--store", store)
    found: Any = json.loads(printed(capsys, *words, "--json", "--kind", "rank"))
    assert found["values"] == ["tanh", "relu"] and found["environments"] == [2, 2] and found["kind"] == "rank"
    assert found["cells"][0][0]["value"] == 1 and found["cells"][0][1] == found["cells"][1][0]
    assert "between values of activation" in printed(capsys, *words)


def test_two_suites_at_every_value_of_a_field(capsys: pytest.CaptureFixture[str], store: str) -> None:
    words = ("testbed-hd", "testbed", "--by", "temp", "--blocks", "2", "--store", store)
    found: Any = json.loads(printed(capsys, *words, "--json"))
    assert list(found["values"]) == ["0.1", "0.5"] and found["values"]["0.5"]["b"]["environments"] == 2
    text = printed(capsys, *words)
    assert text.splitlines()[0].endswith("by temp; correlations of logarithms.")
    assert "environments of testbed, temp=0.5" in text and "within blocks of seeds" in text


def test_figures(capsys: pytest.CaptureFixture[str], store: str, tmp_path: Path) -> None:
    for name in ("figure.html", "figure.svg"):
        out = printed(capsys, "testbed", "testbed-hd", "--store", store, "--out", str(tmp_path / name))
        assert out.rstrip().endswith(f"wrote {tmp_path / name}")
    assert (tmp_path / "figure.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "figure.svg").read_text().startswith("<svg ")


def test_what_is_wrong_is_one_sentence(capsys: pytest.CaptureFixture[str], store: str, tmp_path: Path) -> None:
    at = ("--store", store)
    assert "name two suites" in sentence(capsys, "testbed", *at)
    assert "no field 'traim', did you mean 'train'" in sentence(capsys, "testbed", "testbed-hd", "--by", "traim", *at)
    assert "give --metric-a and --where-a alone" in sentence(
        capsys, "testbed", "--by", "temp", "--metric-b", "ece", *at
    )
    assert "at least 3 agents" in sentence(capsys, "testbed", "testbed-hd", "--agents", AGENTS.rpartition(",")[0], *at)
    assert "unknown suite 'testbet'" in sentence(capsys, "testbet", "testbed", *at)
    assert "FILE.html or FILE.svg" in sentence(capsys, "testbed", "testbed-hd", "-o", "figure.png", *at)
    assert "testbed-hd" in sentence(capsys, "testbed", "testbed-hd", "--metric-b", "regret", *at)
    assert "no.db" in sentence(capsys, "testbed", "robustness", "--store", str(tmp_path / "no.db"))
