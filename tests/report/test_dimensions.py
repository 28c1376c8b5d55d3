"""Suites in which training sizes differ from dimension to dimension: a panel for each, and no false design."""

from __future__ import annotations

from calibrant import registry
from calibrant.report.board import make_board
from calibrant.report.curves import curve_charts
from calibrant.report.page import sentences, suite_page
from calibrant.suites.base import Suite
from calibrant.types import Cell, Record, Scores

HD: Suite = registry.load("suites", "testbed-hd")
PROBLEMS = ("testbed?train=2", "testbed?train=20", "testbed?dim=10", "testbed?train=100&dim=10")


def records() -> list[Record]:
    return [
        Record(Cell(problem, agent, seed, f"{problem}{agent}{seed}"), {"kl_tau10": Scores(loss + seed)})
        for agent, loss in (("mlp", 2.0), ("bbb", 1.0))
        for problem in PROBLEMS
        for seed in range(4)
    ]


def test_a_panel_per_dimension_with_its_own_training_sizes() -> None:
    charts = curve_charts(make_board(records(), HD, by=("dim", "train", "temp")))
    assert [chart.name for chart in charts] == ["curve-2-0.1", "curve-10-0.1"]
    assert charts[1].spec["title"] == "dimension 10, temperature 0.1"
    assert [chart.spec["encoding"]["x"]["axis"]["values"] for chart in charts] == [[2, 20], [10, 100]]


def test_sizes_that_differ_between_dimensions_are_no_product() -> None:
    """2 dimensions x 4 sizes would be 8 settings of 2 seeds; there are 4 of 4."""
    assert sentences(suite_page(records(), HD))[0] == "2 agents on 16 environments."
