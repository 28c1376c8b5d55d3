"""Which cells run together, in how many lanes, and how many programs that takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrant import registry
from calibrant.engine import cohorts
from calibrant.engine.cohorts import Task, make_tasks, padded_rows
from calibrant.engine.plan import make_cell, make_plan
from calibrant.engine.work import run_task
from calibrant.types import Cell

NATIVE = """
from dataclasses import dataclass
from typing import ClassVar

import jax

from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import FiniteBelief


def linear(weights, x):
    return x @ weights


@tree
@dataclass(frozen=True)
class Agent:
    size: int = static(2)
    scale: float = 1.0
    native: ClassVar[bool] = True

    def fit(self, key, train, facts):
        weights = jax.random.normal(key, (self.size, facts.inputs, facts.classes))
        return FiniteBelief(self.scale * weights, linear)

    @property
    def networks(self):
        return self.size
"""


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A native agent of one's own whose program is quick to compile."""
    file = tmp_path_factory.mktemp("agents") / "native.py"
    file.write_text(NATIVE)
    return f"{file}:Agent"


def cells(agents: list[str], seeds: int = 1, preset: str = "quick", **where: str) -> list[Cell]:
    return make_plan(registry.load("suites", "testbed"), preset, agents, seeds, where)


def programs(tasks: list[Task]) -> int:
    return len({cohorts._program(task.cells[0]) for task in tasks})


@pytest.mark.parametrize(
    ("size", "rows"), [(1, 10), (3, 10), (10, 10), (11, 100), (100, 100), (101, 1000), (1000, 1000)]
)
def test_training_sets_are_padded_to_the_next_power_of_ten(size: int, rows: int) -> None:
    assert padded_rows(size) == rows


@pytest.mark.parametrize(("size", "rows"), [(3918, 10_000), (10_000, 10_000), (10_001, 10_001), (60_000, 60_000)])
def test_large_training_sets_are_not_padded(size: int, rows: int) -> None:
    assert padded_rows(size) == rows


def test_agents_that_read_every_row_are_padded_closely() -> None:
    """At 30 and 300 rows a power of ten would make every step of theirs three times as long."""
    plan = cells(["hmc", "mlp"], 1, "paper", temp="0.1")
    padded = {(cell.agent, cell.problem): task.rows for task in make_tasks(plan) for cell in task.cells}
    sizes = {"testbed?train=3": (10, 10), "testbed?train=30": (30, 100), "testbed?train=300": (300, 1000)}
    assert {one: (padded["hmc", one], padded["mlp", one]) for one in sizes} == sizes


def test_tasks_hold_every_cell_once() -> None:
    plan = cells(["uniform", "mlp", "mlp?l2=3", "ensemble?size=10", "prior", "oracle"], 3, "paper")
    tasks = make_tasks(plan)
    held = [cell.id for task in tasks for cell in task.cells]
    assert len(held) == len(set(held)) and set(held) == {cell.id for cell in plan}
    assert all(1 <= len(task.cells) <= task.width for task in tasks)


def test_cells_of_one_program_run_together() -> None:
    """Seeds, temperatures and training sizes up to 10 are 27 cells, 8 at a time; other values of a number join them."""
    plan = cells(["mlp"], 3, "paper", train="1|3|10")
    assert [len(task.cells) for task in make_tasks(plan)] == [8, 8, 8, 3]
    both = make_tasks(cells(["mlp", "mlp?l2=3&lr=0.01"], 3, "paper", train="1|3|10"))
    assert [len(task.cells) for task in both] == [8] * 6 + [6] and programs(both) == 1
    assert {task.rows for task in both} == {10}


@pytest.mark.parametrize("other", ["mlp?steps=20", "mlp?hidden=50", "mlp?l2_form=fixed", "ensemble?size=1", "logistic"])
def test_words_and_sizes_are_another_program(other: str) -> None:
    tasks = make_tasks(cells(["mlp", other], train="10"))
    assert programs(tasks) == len(tasks) == 2


def test_other_shapes_are_another_program() -> None:
    problems = (
        "testbed",
        "testbed?train=11",
        "testbed?dim=3",
        "testbed?classes=3",
        "testbed?hidden=20",
        "testbed?tau=1x5",
    )
    tasks = make_tasks([make_cell(problem, "mlp", 0) for problem in problems])
    assert programs(tasks) == len(tasks) == len(problems)


@pytest.mark.parametrize(
    ("agent", "width"),
    [
        ("mlp", 8),
        ("ensemble?size=3", 2),
        ("ensemble?size=4", 2),
        ("ensemble?size=33", 1),
        ("prior", 1),
        ("uniform", 8),
    ],
)
def test_the_width_keeps_the_number_of_networks_side_by_side(agent: str, width: int) -> None:
    tasks = make_tasks(cells([agent], 3, train="10"))
    assert {task.width for task in tasks} == {width}
    networks = registry.resolve("agents", agent).networks
    assert networks * width <= max(cohorts.LANES, networks)


def test_the_width_depends_neither_on_the_plan_nor_on_its_order() -> None:
    """A resumed run has fewer cells; if it ran in fewer lanes its numbers could round differently."""
    plan = cells(["mlp", "ensemble?size=3"], 3, train="10")
    expected = {cell.id: (task.width, task.rows) for task in make_tasks(plan) for cell in task.cells}
    for some in ([cell] for cell in plan):
        assert [(task.width, task.rows) for task in make_tasks(some)] == [expected[some[0].id]]
    assert {cell.id: (task.width, task.rows) for task in make_tasks(plan[::-1]) for cell in task.cells} == expected


def test_large_data_narrows_the_width() -> None:
    (task,) = make_tasks([make_cell("testbed?train=100000&dim=100", "mlp", 0)])
    assert task.rows == 100_000 and 1 <= task.width < cohorts.LANES
    assert 4 * task.rows * 101 * task.width <= cohorts.DATA_BYTES


def test_black_box_agents_run_cell_by_cell(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def agent(seed, train, facts):\n    return lambda x: [[[0.0, 0.0]] * len(x)]\n")
    plan = cells(["oracle", f"{file}:agent"], 2, train="10")
    assert make_tasks(plan) == [Task((cell,), 1, 0) for cell in plan]


def test_every_cohort_starts_before_any_goes_on() -> None:
    tasks = make_tasks(cells(["mlp", "ensemble?size=10"], 10, train="1|10"))
    assert [task.cells[0].agent for task in tasks[:4]] == ["mlp", "ensemble?size=10"] * 2


def test_numbers_share_a_compiled_program_and_sizes_do_not(native: str) -> None:
    """Two programs, to fit and to ask, for a whole cohort with different numbers in it; two more for another size."""
    from calibrant.engine import compiled

    def newly_compiled(*agents: str) -> int:
        before = len(compiled._programs)
        for task in make_tasks(cells(list(agents), train="1|10", temp="0.1")):
            assert not any(record.failed for record in run_task(task))
        return len(compiled._programs) - before

    assert newly_compiled(f"{native}?scale=2", f"{native}?scale=3") == 2
    assert newly_compiled(f"{native}?scale=4", native) == 0
    assert newly_compiled(f"{native}?size=3") == 2


def test_games_run_more_networks_side_by_side() -> None:
    """Their steps are small: four epinets of eight draws, one ensemble of thirty, never more than eight lanes."""
    widths = {
        agent: make_tasks([make_cell("bandit?steps=100", agent, 0)])[0].width
        for agent in ("mlp", "epinet", "hypermodel", "ensemble?size=30")
    }
    assert widths == {"mlp": 8, "epinet": 4, "hypermodel": 2, "ensemble?size=30": 1}
