"""Tuned specs: written to a readable file with the study they come from, read back, and put in place of agents."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

import pytest

from calibrant import registry
from calibrant.engine.ledger import StudyTrial
from calibrant.tune.show import Line, Summary
from calibrant.tune.study import Study
from calibrant.tune.tuned import HEADER, PACKAGED, adopt, read_tuned, tuned_for, tuned_specs
from calibrant.types import CalibrantError


def summary(agent: str = "ensemble+", best: str = "ensemble+?l2=0.3&prior_scale=1") -> Summary:
    study = Study("testbed", agent, "tpe", ("l2=0.01..100:log,prior_scale=0.3..30:log",), where={"temp": "0.1|0.5"})
    rungs = ((1, 0.4), (3, 0.5))

    def line(number: int, spec: str, gap: float) -> Line:
        made = StudyTrial("the study", number, 0, spec, "2026-01-01T00:00:00+00:00", "complete", 0.5 + gap, rungs, 61.0)
        return Line(made, gap, 0.01)

    return Summary(study, (line(3, best, 0.0), line(0, agent, 0.125)), {}, ())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file_says_what_was_found_and_how() -> None:
    adopt(summary())
    text = Path("tuned.toml").read_text()
    assert text.startswith(HEADER) and '[testbed."ensemble+"]' in text
    entry = tomllib.loads(text)["testbed"]["ensemble+"]
    assert entry["spec"] == "ensemble+?l2=0.3&prior_scale=1"
    assert (entry["metric"], entry["objective"], entry["as_given"], entry["as_given_se"]) == (
        *("aggregate", 0.5, 0.125, 0.01),
    )
    assert (entry["sampler"], entry["trials"], entry["seeds"], entry["first_seed"]) == ("tpe", 2, 3, 1_000_000)
    assert (entry["preset"], entry["where"], entry["cpu_seconds"]) == ("quick", "temp=0.1|0.5", 122.0)
    assert isinstance(entry["date"], date) and entry["calibrant"]


def test_adopting_again_replaces_one_entry_and_keeps_the_others() -> None:
    adopt(summary())
    adopt(summary("mlp", "mlp?l2=3"))
    kept = read_tuned(Path("tuned.toml"))["testbed"]["ensemble+"]
    adopt(summary("mlp", "mlp?l2=10"))
    entries = read_tuned(Path("tuned.toml"))
    assert entries["testbed"]["mlp"]["spec"] == "mlp?l2=10" and entries["testbed"]["ensemble+"] == kept


def test_agents_are_replaced_by_what_was_found() -> None:
    adopt(summary())
    adopt(summary("ensemble?size=10", "ensemble?l2=3&size=10"))
    given = ["mlp", "ensemble+", "ensemble+?size=3", "ensemble?size=10"]
    assert tuned_specs("testbed", given) == [
        *("mlp", "ensemble+?l2=0.3&prior_scale=1", "ensemble+?size=3", "ensemble?l2=3&size=10"),
    ]


def test_the_users_file_goes_before_the_librarys(folder: Path) -> None:
    own, packaged = folder / "own.toml", folder / "packaged.toml"
    adopt(summary("mlp", "mlp?l2=3"), own)
    adopt(summary("mlp", "mlp?l2=10"), packaged)
    adopt(summary(), packaged)
    expected = {"mlp": "mlp?l2=3", "ensemble+": "ensemble+?l2=0.3&prior_scale=1"}
    assert tuned_for("testbed", (own, packaged)) == expected
    assert tuned_for("testbed", (folder / "none.toml", packaged))["mlp"] == "mlp?l2=10"
    assert tuned_for("another suite", (own, packaged)) == {}


def test_nothing_tuned_is_said(folder: Path) -> None:
    with pytest.raises(CalibrantError, match="no tuned spec of uniform, oracle for suite 'testbed'; `calibrant tune"):
        tuned_specs("testbed", ["uniform", "oracle"], (folder / "none.toml",))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("not toml at all", "cannot be read as a file of tuned specs"),
        ("testbed = 3", "should hold tables"),
        ("[testbed.mlp]\nmetric = 'nll'", "should hold tables .* with a spec, but mlp has none"),
        ("[testbed.mlp]\nspec = 3", "should hold tables"),
    ],
)
def test_a_file_that_is_something_else_is_refused(content: str, sentence: str) -> None:
    Path("tuned.toml").write_text(content)
    for attempt in (lambda: adopt(summary()), lambda: tuned_specs("testbed", ["mlp"])):
        with pytest.raises(CalibrantError, match=sentence):
            attempt()
    assert Path("tuned.toml").read_text() == content


def test_the_librarys_own_file_names_agents_and_suites_that_exist() -> None:
    for suite, agents in read_tuned(PACKAGED).items():
        registry.load("suites", suite)
        for agent, entry in agents.items():
            assert registry.canonical("agents", agent) == agent
            assert registry.canonical("agents", entry["spec"]) == entry["spec"]
            assert {"metric", "study", "sampler", "trials", "seeds", "cpu_seconds", "date", "calibrant"} <= entry.keys()
