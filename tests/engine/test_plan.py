"""The plan: which cells there are, and what their ids depend on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibrant import metrics, registry
from calibrant.agents.mlp import Mlp
from calibrant.engine import plan
from calibrant.engine.plan import make_cell, make_plan
from calibrant.problems import testbed  # the module: pytest would take the class for a test
from calibrant.suites.base import Suite
from calibrant.types import CalibrantError


@pytest.fixture
def suite() -> Suite:
    found: Suite = registry.load("suites", "testbed")
    return found


@pytest.fixture
def fresh() -> Iterator[None]:
    """Definitions are remembered for the life of a process; forget them around a test that changes one."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    plan.defined.cache_clear()
    plan.metrics_defined.cache_clear()


# --- which cells there are ------------------------------------------------------------------------


def test_the_paper_has_210_environments_per_agent(suite: Suite) -> None:
    cells = make_plan(suite, "paper", ["uniform", "oracle"])
    assert len(cells) == len({cell.id for cell in cells}) == 420
    environments = {(cell.problem, cell.seed) for cell in cells}
    assert len(environments) == 210
    for agent in ("uniform", "oracle"):
        assert {(cell.problem, cell.seed) for cell in cells if cell.agent == agent} == environments


def test_presets_bring_their_own_agents_and_seeds(suite: Suite) -> None:
    quick = suite.preset("quick")
    cells = make_plan(suite)
    assert {cell.agent for cell in cells} == set(quick.agents)
    assert len(cells) == len(quick.problems) * len(quick.agents) * quick.seeds
    assert {cell.seed for cell in make_plan(suite, seeds=1)} == {0}
    assert len(make_plan(suite, agents=["uniform"], seeds=5)) == len(quick.problems) * 5


def test_problems_of_a_suite_are_written_canonically(suite: Suite) -> None:
    """Records are found by problem spec, so a suite must write it as the registry does."""
    for preset in suite.presets.values():
        assert [registry.canonical("problems", problem) for problem in preset.problems] == list(preset.problems)
        assert len(set(preset.problems)) == len(preset.problems)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ({"train": "10"}, 3),
        ({"temp": "0.1"}, 4),
        ({"temp": "0.10", "train": "1e1"}, 1),
        ({"temp": ".1|0.5", "train": "1|10|100"}, 6),
        ({"activation": "relu"}, 12),
        ({"hidden": "50x50"}, 12),
    ],
)
def test_where_keeps_the_problems_with_these_values(suite: Suite, where: dict[str, str], count: int) -> None:
    cells = make_plan(suite, agents=["uniform"], seeds=1, where=where)
    assert len(cells) == count
    for cell in cells:
        built = registry.resolve("problems", cell.problem)
        temp, train = where.get("temp", "").split("|"), where.get("train", "").split("|")
        assert temp == [""] or built.temp in map(float, temp)
        assert train == [""] or built.train in map(float, train)


def test_the_same_agent_written_twice_runs_once(suite: Suite) -> None:
    cells = make_plan(suite, agents=["mlp", "mlp?l2=1", "mlp?steps=1000&l2=1.0", " mlp"], seeds=1)
    assert len(cells) == 12 and {cell.agent for cell in cells} == {"mlp"}
    assert len(make_plan(suite, agents=["mlp", "mlp?l2=2"], seeds=1)) == 24


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"where": {"tmp": "0.1"}}, "problems of suite 'testbed' have no 'tmp', did you mean 'temp'?"),
        ({"where": {"sample": "1"}}, "problems of suite 'testbed' have no 'sample'"),
        ({"where": {"temp": "0.2"}}, "no problem of suite 'testbed' (quick) has temp=0.2"),
        ({"seeds": 0}, "seeds=0 should be at least 1"),
        ({"preset": "pper"}, "has no preset 'pper', did you mean 'paper'?"),
        ({"agents": ["mpl"]}, "unknown agent 'mpl', did you mean 'mlp'?"),
        ({"agents": ["mlp?stps=3"]}, "unknown parameter 'stps' in 'mlp?stps=3', did you mean 'steps'?"),
        ({"agents": ["mlp?steps=0"]}, "steps=0 in 'mlp?steps=0': it should be greater than or equal to 1"),
        ({"agents": ["mlp?l2=nan"]}, "l2=nan in 'mlp?l2=nan': it should be a finite number"),
    ],
)
def test_wrong_input_is_one_sentence(suite: Suite, arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(CalibrantError) as caught:
        make_plan(suite, **arguments)  # type: ignore[arg-type]
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


# --- what an id depends on ------------------------------------------------------------------------


def test_an_id_tells_problem_agent_and_seed_apart() -> None:
    cells = [
        make_cell(problem, agent, seed)
        for problem in ("testbed", "testbed?temp=0.5", "testbed?train=100", "testbed?tuples=500")
        for agent in ("mlp", "mlp?l2=2", "mlp?steps=20", "mlp?hidden=50", "uniform")
        for seed in (0, 1)
    ]
    assert len({cell.id for cell in cells}) == len(cells)


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("target", [Mlp, testbed.Testbed])
def test_another_version_is_another_cell(monkeypatch: pytest.MonkeyPatch, target: type) -> None:
    before = make_cell("testbed", "mlp", 0).id
    monkeypatch.setattr(target, "version", 17, raising=False)
    _forget()
    assert make_cell("testbed", "mlp", 0).id != before


@pytest.mark.usefixtures("fresh")
def test_another_version_of_a_metric_is_another_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    before = make_cell("testbed", "mlp", 0).id
    changed = metrics.versions() | {"ece": 17}
    monkeypatch.setattr(metrics, "versions", lambda: changed)
    _forget()
    assert make_cell("testbed", "mlp", 0).id != before


@pytest.mark.usefixtures("fresh")
def test_another_default_is_another_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spec still reads `mlp`, but it no longer means the same."""
    before = make_cell("testbed", "mlp", 0)
    field = Mlp.__dataclass_fields__["lr"]
    monkeypatch.setattr(field, "default", 2e-3)
    monkeypatch.setattr(Mlp, "lr", 2e-3)
    monkeypatch.setattr(Mlp.__init__, "__defaults__", tuple(2e-3 if d == 1e-3 else d for d in _defaults()))
    _forget()
    after = make_cell("testbed", "mlp", 0)
    assert (after.problem, after.agent, after.seed) == (before.problem, before.agent, before.seed)
    assert after.id != before.id


def _defaults() -> tuple[object, ...]:
    return Mlp.__init__.__defaults__ or ()


def test_an_edited_file_is_another_agent(tmp_path: Path, suite: Suite) -> None:
    file = tmp_path / "mine.py"
    ids = []
    for body in ("0.0", "1.0"):
        file.write_text(f"def agent(seed, train, facts):\n    return lambda x: [[[{body}, 0.0]] * len(x)]\n")
        cell, *_ = make_plan(suite, agents=[f"{file}:agent"], seeds=1)
        assert cell.agent.startswith(f"{file}:agent@")
        ids.append((cell.agent, cell.id))
    assert ids[0][0] != ids[1][0] and ids[0][1] != ids[1][1]


def test_ids_do_not_depend_on_the_process(suite: Suite) -> None:
    """Hash seeds change the order of sets, and of nothing that an id is made of."""
    code = (
        "from calibrant import registry\n"
        "from calibrant.engine.plan import make_plan\n"
        "cells = make_plan(registry.load('suites', 'testbed'), agents=['ensemble+?l2=3&size=4', 'oracle'], seeds=1)\n"
        "print(*(cell.id for cell in cells))\n"
    )
    here = [cell.id for cell in make_plan(suite, agents=["ensemble+?size=4&l2=3.0", "oracle"], seeds=1)]
    path = os.pathsep.join(filter(None, sys.path))
    for hash_seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.split() == here
