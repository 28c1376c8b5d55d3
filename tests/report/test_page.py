"""A suite in plain words: who leads, what failed, and how to measure it again."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from calibrant.report.charts import loss_charts
from calibrant.report.curves import curve_charts
from calibrant.report.page import command_for, sentences, suite_page, summarise
from calibrant.suites.real import SUITE as REAL
from calibrant.suites.testbed import SUITE
from calibrant.types import CalibrantError, Cell, Record, Scores

PROBLEMS = ("testbed", "testbed?train=100", "testbed?temp=0.5", "testbed?train=100&temp=0.5")


def record(agent: str, problem: str, seed: int, loss: float, date: str = "2026-03-01") -> Record:
    scores = {name: Scores(loss) for name in ("kl_tau1", "kl_tau10")}
    return Record(
        Cell(problem, agent, seed, f"{problem}{agent}{seed}"),
        {} if math.isnan(loss) else scores,
        provenance={"date": date, "libraries": {"jax": "1", "numpy": "2"}, "commit": None},
        reason="out of memory" if math.isnan(loss) else None,
    )


def records(losses: Mapping[str, float], problems: tuple[str, ...] = PROBLEMS, seeds: int = 5) -> list[Record]:
    """The same losses everywhere, up to a factor that all agents share and a little that they do not."""
    return [
        record(agent, problem, seed, loss * (1 + seed / 10) + 0.001 * ((seed * 7 + place * 3) % 5))
        for place, (agent, loss) in enumerate(losses.items())
        for problem in problems
        for seed in range(seeds)
    ]


def test_a_clear_leader_is_named_with_its_ratio() -> None:
    page = suite_page(records({"mlp": 1.0, "ensemble+": 0.5, "oracle": 0.0, "uniform": 2.0}), SUITE)
    asked, joint, single = sentences(page)
    assert asked == "4 agents on 20 environments: 2 training sizes × 2 temperatures × 5 seeds."
    assert joint.startswith("For joint predictions (KL τ=10), ensemble+ leads: its loss is 0.50")
    assert joint.endswith("times that of mlp (95\N{NO-BREAK SPACE}% interval 0.500 to 0.502).")
    assert single.startswith("For single predictions (KL τ=1), ensemble+ leads")


def test_agents_that_are_not_told_apart_share_the_lead() -> None:
    page = suite_page(records({"mlp": 1.0, "ensemble": 1.0, "uniform": 2.0}), SUITE)
    assert "does not tell mlp and ensemble apart: they form the leading tier" in sentences(page)[1]


def test_an_agent_with_few_environments_cannot_lead() -> None:
    few = records({"ensemble": 0.1}, PROBLEMS[:1], seeds=2)
    page = suite_page([*records({"mlp": 1.0, "ensemble+": 0.5}), *few], SUITE)
    _, joint, single, partial = sentences(page)
    assert "ensemble+ leads" in joint and "ensemble+ leads" in single
    assert partial == "ensemble has been run on some of the environments only, and cannot lead."


def test_a_suite_names_its_own_losses() -> None:
    iris = ("real", "real?train=100")
    losses = {"mlp?l2_form=fixed": 1.0, "uniform": 2.0}
    nll = [
        Record(one.cell, {"nll": one.scores["kl_tau1"], "joint_nll_tau10_dyadic": one.scores["kl_tau10"]})
        for one in records(losses, iris)
    ]
    page = suite_page(nll, REAL)
    _, joint, single = sentences(page)
    assert joint.startswith("For joint predictions (joint NLL τ=10 dyadic), mlp?l2_form=fixed leads")
    assert single.startswith("For single predictions (NLL), mlp?l2_form=fixed leads")
    assert page.sliced is not None and [chart.name for chart in curve_charts(page.sliced)] == ["curve-iris"]
    assert {chart.name for chart in loss_charts(page.overall)} == {"loss-nll", "loss-joint_nll_tau10_dyadic"}


def test_one_agent_has_a_loss_but_leads_nobody() -> None:
    said = sentences(suite_page(records({"uniform": 2.0}, PROBLEMS[:1]), SUITE))
    assert said[0] == "1 agent on 5 environments: 1 training size × 1 temperature × 5 seeds."
    assert said[1] == "For joint predictions (KL τ=10), uniform has a loss of 2.40 nats."


def test_failures_are_counted_with_their_reasons() -> None:
    broken = [record("prior", problem, 0, math.nan) for problem in PROBLEMS[:3]]
    page = suite_page([*records({"mlp": 1.0}), *broken], SUITE)
    assert sentences(page)[-1] == "3 of 23 cells failed and are part of no mean."
    assert page.provenance.failures == (("prior", 3, "out of memory"),)
    assert "prior" in page.overall.agents


def test_provenance_keeps_every_value_and_the_newest_day() -> None:
    facts = summarise([record("mlp", "testbed", seed, 1.0, date=f"2026-0{seed + 1}-09") for seed in (2, 0, 1)])
    assert facts.newest == "2026-03-09" and facts.cells == facts.environments == 3
    assert facts.facts == {"libraries": ("jax 1, numpy 2",)}


def test_the_command_names_preset_settings_agents_and_seeds() -> None:
    some = records({"mlp": 1.0, "my agent.py:A@0123456789ab?l2=3": 2.0}, PROBLEMS, seeds=3)
    assert command_for(some, SUITE) == (
        "calibrant run testbed --preset quick --where 'train=10|100,temp=0.1|0.5' --agents mlp "
        "--agent 'my agent.py:A?l2=3' --seeds 3"
    )
    everything = records({"mlp": 1.0}, SUITE.presets["paper"].problems, seeds=10)
    assert command_for(everything, SUITE) == "calibrant run testbed --preset paper --agents mlp --seeds 10"


def test_a_suite_without_records_is_one_sentence() -> None:
    with pytest.raises(CalibrantError, match="no records of suite 'testbed'"):
        suite_page([record("mlp", "elsewhere", 0, 1.0)], SUITE)
