"""Data files are checked when they are read, and ours say what was published, about things that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from calibrant import registry
from calibrant.metrics import catalogue
from calibrant.papers.format import FOLDER, Paper, find, papers, read_paper
from calibrant.types import CalibrantError

SMALL = """
name = "small"
title = "A small paper"
citation = "Nobody, 2020"
[items.table1]
title = "Table 1"
plan = { problems = ["testbed?train=1"], seeds = 2 }
[[items.table1.values]]
label = "UNIFORM"
agent = "uniform"
published = { accuracy = 0.5 }
"""


def write(folder: Path, text: str, name: str = "small.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


# --- our own files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_file_is_named_after_its_paper_and_speaks_about_what_exists(path: Path) -> None:
    paper = read_paper(path)
    assert paper.name == path.stem.replace("_", "-")
    patterns = [re.escape(metric.name).replace(r"\{\}", r"tau\d+(_\w+)?") for metric in catalogue()]
    for item in paper.items.values():
        for agent in item.agents:
            assert registry.canonical("agents", agent) == agent
        for problem in item.plan.problems:
            registry.resolve("problems", problem)
        if item.plan.suite:
            suite = registry.load("suites", item.plan.suite)
            assert item.plan.preset is None or suite.preset(item.plan.preset)
        metrics = {metric for row in item.values for metric in row.published} | {*item.estimators.values()}
        metrics |= {metric for trend in item.trends for metric in trend.metrics}
        for metric in metrics:
            assert any(re.fullmatch(pattern, metric) for pattern in patterns), metric


def test_table_2_is_transcribed_without_slips() -> None:
    """Against the aggregate d1 + d10 / 10 of each row, worked out by hand from the printed table."""
    paper, item = find("neural-testbed:table2")
    rows = {row.label: row.published for row in paper.items[item].values}
    by_hand = {
        "MLP": 0.2657, "ENSEMBLE": 0.2636, "DROPOUT": 0.2627, "BBB": 0.2665, "HYPERMODEL": 0.2407,
        "ENSEMBLE+": 0.2305, "SGMCMC": 0.2167,
    }  # fmt: skip
    assert {label: round(row["kl_tau1"] + row["kl_tau10"] / 10, 4) for label, row in rows.items()} == by_hand
    assert sum(row["accuracy"] for row in rows.values()) == pytest.approx(5.549)
    assert sum(row["ece"] for row in rows.values()) == pytest.approx(0.564)
    suite = registry.load("suites", "testbed")
    plan = paper.items[item].plan
    assert plan.preset == "paper" and len(suite.preset("paper").problems) * plan.seeds == 210


def test_figure_6_claims_a_direction_on_problems_that_ask_every_order() -> None:
    paper, name = find("neural-testbed:figure6")
    item = paper.items[name]
    assert not item.values and [trend.measure for trend in item.trends] == ["difference", "share"]
    for problem in item.plan.problems:
        built = registry.resolve("problems", problem)
        assert built.temp == 0.1 and built.tau == (1, 3, 10, 30, 100)
        assert {f"kl_tau{tau}" for tau in built.tau} == set(item.trends[0].metrics)


def test_the_example_in_the_documentation_is_valid(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "receipts.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    item = read_paper(write(tmp_path, example)).items["table1"]
    assert len(item.values) == 3 and item.agents == ("mlp", "ensemble?size=10")


# --- finding -----------------------------------------------------------------------------------------


def test_papers_of_a_folder_are_found_by_name(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    write(tmp_path, SMALL.replace('"small"', '"other-one"'), "other_one.toml")
    assert list(papers(tmp_path)) == ["other-one", "small"]
    paper, item = find("small:table1", tmp_path)
    assert (paper.title, item) == ("A small paper", "table1")
    assert find(f"{tmp_path}/small.toml:table1")[0] == paper


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("smal:table1", "unknown paper 'smal', did you mean 'small'?"),
        ("small:tabel1", "'small' has no item 'tabel1', did you mean 'table1'?; it has small:table1"),
        ("small", "'small' names no item; it has small:table1"),
        ("missing.toml:table1", "cannot read 'missing.toml': No such file"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest(tmp_path: Path, reference: str, sentence: str) -> None:
    write(tmp_path, SMALL)
    with pytest.raises(CalibrantError, match=re.escape(sentence)):
        find(reference, tmp_path)


# --- checking ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("accuracy = 0.5", "accuracy = nan", "published.accuracy: it should be a finite number"),
        ("accuracy = 0.5", 'accuracy = "half"', "published.accuracy: it should be a valid number"),
        ("{ accuracy = 0.5 }", "{ }", "published: Dictionary should have at least 1 item"),
        ("accuracy = 0.5 }", "accuracy = 0.5 }\nerrors = { ece = 0.1 }", "an error is given for 'ece', but no value"),
        ("accuracy = 0.5 }", "accuracy = 0.5 }\nerrors = { accuracy = 0 }", "it should be greater than 0"),
        ("seeds = 2", "seeds = 0", "plan.seeds: it should be greater than or equal to 1"),
        (
            "seeds = 2",
            'seeds = 2, suite = "testbed", preset = "paper"',
            "a plan names either a suite and its preset, or problems",
        ),
        ('title = "Table 1"', 'title = "Table 1"\nrelative_to = "mlp"', "relative_to and ratios go together"),
        ('title = "Table 1"', 'title = "Table 1"\nrelative_to = "mlp"\nratios = ["ece"]', "which has no values"),
        ('title = "Table 1"', 'titel = "Table 1"', "items.table1.title: Field required"),
        ('name = "small"', 'name = "../small"', "name: String should match pattern"),
        ("citation", "citation =", "is not TOML"),
    ],
)
def test_a_wrong_file_is_told_in_one_sentence(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    path = write(tmp_path, SMALL.replace(old, new))
    with pytest.raises(CalibrantError, match=re.escape(sentence)) as caught:
        read_paper(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_trend_names_its_metrics(tmp_path: Path) -> None:
    trend = '[[items.table1.trends]]\nclaim="c"\nbetter="mlp"\nworse="uniform"\nmetrics=["ece","kl_tau1"]\n'
    made: Paper = read_paper(write(tmp_path, SMALL + trend))
    assert made.items["table1"].agents == ("uniform", "mlp")
    for wrong in (trend + 'similar_at=["kl_tau10"]', trend.replace('"ece",', ""), trend + 'measure="factor"'):
        with pytest.raises(CalibrantError, match="trends"):
            read_paper(write(tmp_path, SMALL + wrong))
