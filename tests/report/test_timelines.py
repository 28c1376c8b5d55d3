"""Courses of games: the right means at the right times, a line per agent or per rule."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrant import registry
from calibrant.report.timelines import timeline_charts, timelines
from calibrant.suites.base import Suite
from calibrant.types import Array, Cell, Record, Scores

BANDIT: Suite = registry.load("suites", "bandit")
ACTIVE: Suite = registry.load("suites", "active")


def record(problem: str, agent: str, seed: int, metric: str, items: Array) -> Record:
    return Record(
        Cell(problem, agent, seed, f"{problem}{agent}{seed}"), {metric: Scores(float(items.mean()), items=items)}
    )


def played(agent: str, level: float, problem: str = "bandit?steps=2000") -> list[Record]:
    rng = np.random.default_rng(0)
    course = level * np.linspace(1, 0, 100)
    return [record(problem, agent, seed, "average_regret", course + rng.normal(0, 0.01, 100)) for seed in range(4)]


def test_regret_is_averaged_from_the_beginning() -> None:
    (panel,) = timelines([*played("mlp", 1.0), *played("epinet", 0.5)], BANDIT)
    assert [course.line for course in panel.courses] == ["epinet", "mlp"] and panel.panel == ()
    times, points = panel.courses[1].times, panel.courses[1].points
    assert times[0] == 20 and times[-1] == 2000 and len(times) < 40
    assert points[-1].mean == pytest.approx(0.5, abs=0.02) and points[0].mean == pytest.approx(1.0, abs=0.05)
    assert all(point.low < point.mean < point.high for point in points)


def test_settings_have_panels_of_their_own() -> None:
    records = [*played("mlp", 1.0), *played("mlp", 0.5, "bandit?steps=2000&dim=10")]
    assert [panel.panel for panel in timelines(records, BANDIT)] == [(("dim", "2"),), (("dim", "10"),)]


def test_active_learning_has_a_line_per_rule_and_a_panel_per_agent() -> None:
    marks = registry.resolve("problems", "active?labels=50").marks
    records = [
        record(f"active?labels=50{rule}", agent, seed, "curve_accuracy", np.linspace(0.5, 0.9, len(marks)))
        for rule in ("", "&priority=uniform")
        for agent in ("mlp", "epinet")
        for seed in range(3)
    ]
    found = timelines(records, ACTIVE)
    assert [panel.panel for panel in found] == [(("agent", "epinet"),), (("agent", "mlp"),)]
    assert {course.line for course in found[0].courses} == {"bald", "uniform"}
    assert found[0].courses[0].times == (1, 2, 5, 10, 20, 50)


def test_charts_are_plain_json_with_the_agents_they_hide_by() -> None:
    charts = timeline_charts(timelines([*played("mlp", 1.0), *played("uniform", 2.0)], BANDIT))
    (spec,) = (chart.spec for chart in charts)
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert {row["agent"] for row in spec["data"]["values"]} == {"mlp", "uniform"}


def test_failed_games_have_no_course() -> None:
    failed = Record(Cell("bandit?steps=2000", "mlp", 0, "x"), reason="it ran away")
    assert timelines([failed], BANDIT) == []
