"""Curves run along what varies; theory is drawn where a suite knows it."""

from __future__ import annotations

import pytest

from calibrant import registry
from calibrant.report.curves import curve_charts, runs_along
from calibrant.report.html import render
from calibrant.report.page import sentences, suite_page
from calibrant.suites.base import Suite
from calibrant.types import Cell, Record, Scores

COINS: Suite = registry.load("suites", "coins")
LOGISTIC: Suite = registry.load("suites", "logistic")
AGENTS = {"coins": ("coins_posterior", "coins_shared"), "logistic": ("prior", "uniform")}


def records(suite: Suite, problems: tuple[str, ...]) -> list[Record]:
    scores = {metric: Scores(1.0) for metric in suite.metrics}
    return [
        Record(Cell(problem, agent, seed, f"{problem}{agent}{seed}"), scores)
        for problem in problems
        for agent in AGENTS[suite.name]
        for seed in range(2)
    ]


@pytest.mark.parametrize(
    ("suite", "along", "words"), [(COINS, "coins", "number of coins"), (LOGISTIC, "dim", "dimension")]
)
def test_without_training_sizes_curves_run_along_the_next_axis(suite: Suite, along: str, words: str) -> None:
    page = suite_page(records(suite, suite.preset("quick").problems), suite)
    assert page.sliced is not None and runs_along(page.sliced) == along
    (chart,) = curve_charts(page.sliced, suite.expected)
    sizes = sorted({value[along] for value in chart.spec["data"]["values"]})
    assert chart.spec["encoding"]["x"]["axis"]["values"] == sizes and len(sizes) > 2
    assert sentences(page)[0].endswith(f"{len(sizes)} {'bag size' if suite is COINS else 'dimension'}s × 2 seeds.") == (
        suite is COINS  # logistic regression also has a temperature
    )
    text = render([page])
    assert f"Loss against {words}" in text and ("Dotted: what theory expects" in text) == (suite is COINS)


def test_bags_with_and_without_training_data_have_a_panel_each() -> None:
    own = records(COINS, (*COINS.preset("trained").problems, *COINS.preset("quick").problems))
    sliced = suite_page(own, COINS).sliced
    assert sliced is not None and runs_along(sliced) == "coins"
    assert [chart.spec["title"] for chart in curve_charts(sliced)] == ["all environments", "train 100"]


def test_theory_is_silent_about_what_it_does_not_know() -> None:
    assert COINS.expected is not None
    assert COINS.expected("coins_shared", "kl_tau10", {"coins": 10, "train": 100}) is None
    assert COINS.expected("mlp", "kl_tau10", {"coins": 10, "train": 0}) is None
    assert COINS.expected("coins_shared", "accuracy", {"coins": 10, "train": 0}) is None


def test_theory_stands_beside_what_is_measured() -> None:
    sliced = suite_page(records(COINS, COINS.preset("quick").problems), COINS).sliced
    assert sliced is not None
    (drawn,), (bare,) = curve_charts(sliced, COINS.expected), curve_charts(sliced)
    known = {(v["agent"], v["metric"], v["coins"]): v["expected"] for v in drawn.spec["data"]["values"]}
    assert known["coins_posterior", "kl_tau10_dyadic", 100] == pytest.approx(1.1624, abs=1e-3)
    assert known["coins_posterior", "kl_tau10_kappa1", 10] == known["coins_shared", "kl_tau10_kappa1", 10]
    assert len(drawn.spec["layer"]) == len(bare.spec["layer"]) + 1
    assert all(value["expected"] is None for value in bare.spec["data"]["values"])
