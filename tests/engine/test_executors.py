"""Both executors give the same records; a worker that dies, an agent that raises or a lost parent harm nobody else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest

from calibrant import registry
from calibrant.engine.cohorts import make_tasks
from calibrant.engine.executors import DIED, Local, Processes, make_executor
from calibrant.engine.plan import make_plan
from calibrant.engine.run import run_plan
from calibrant.engine.store import open_store
from calibrant.types import CalibrantError, Cell, Record

MINE = """
import numpy as np

def agent(seed, train, facts):
    weights = np.random.default_rng(seed).normal(size=(3, facts.inputs, facts.classes))
    return lambda x: x @ weights
"""

DEADLY = """
import os, pathlib, signal, sys

def agent(seed, train, facts):
    case = facts.train_size, facts.temperature
    if case == (1, 0.01):
        killed = pathlib.Path(__file__).with_name("killed-once")
        if not killed.exists():
            killed.touch()
            os._exit(7)
    if case == (1, 0.1):
        sys.exit(3)
    if case == (10, 0.01):
        raise ValueError("boom:\\n  " + os.environ["XLA_FLAGS"])
    if case == (10, 0.5):
        os.kill(os.getpid(), signal.SIGKILL)
    return lambda x: [[[0.0] * facts.classes] * len(x)]
"""

ENDLESS = """
import os, pathlib, time

def agent(seed, train, facts):
    pathlib.Path(__file__).with_name(f"worker-{os.getpid()}").touch()
    time.sleep(600)
"""


SCRIPT = """
import pathlib
import calibrant

with pathlib.Path("runs").open("a") as file:
    file.write("x")
agents, where = ["oracle", "mine.py:agent"], {"train": 10, "temp": 0.1}
board = calibrant.evaluate(agents, "testbed", seeds=1, where=where, executor="processes", workers=2)
print({row.failed for row in board.rows}, sorted(row.n for row in board.rows if row.metric == "ece"))
"""


def command(*words: object) -> list[str]:
    return [sys.executable, "-c", "from calibrant.cli import main; main()", *map(str, words)]


def cells(agent: str) -> list[Cell]:
    return make_plan(registry.load("suites", "testbed"), "quick", [agent], 1, {"train": "1|10"})


def case(record: Record) -> tuple[int, float]:
    problem = registry.resolve("problems", record.cell.problem)
    return problem.train, problem.temp


# --- the same records -----------------------------------------------------------------------------


def test_local_and_processes_give_the_same_records(tmp_path: Path) -> None:
    """Bit by bit, for a compiled agent, a control and a black box."""
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    stored = []
    for executor in ("local", "processes"):
        store = tmp_path / f"{executor}.db"
        agents = ("--agents", "mlp?steps=20,oracle", "--agent", f"{file}:agent")
        problems = ("--where", "train=1|10,temp=0.1", "--seeds", 1)
        how = ("--executor", executor, "--workers", 2, "--store", store)
        subprocess.run(command("run", "testbed", *agents, *problems, *how), check=True, capture_output=True)
        with open_store(str(store), create=False) as opened:
            stored.append(list(opened.records(items=True, pictures=True)))
    local, processes = stored
    assert len(local) == len(processes) == 6
    for one, other in zip(local, processes, strict=True):
        assert one.cell == other.cell and one.reason is None and other.reason is None
        assert one.scores.keys() == other.scores.keys() and one.picture.keys() == other.picture.keys()
        for name, score in one.scores.items():
            twin = other.scores[name]
            assert (score.mean, score.se, score.n) == (twin.mean, twin.se, twin.n), name
            assert (score.mc_bias, score.mc_se) == (twin.mc_bias, twin.mc_se), name
            assert np.array_equal(np.asarray(score.items), np.asarray(twin.items)), name
        for name, array in one.picture.items():
            assert np.array_equal(array, other.picture[name]), name


def test_a_plain_script_is_not_run_again_by_its_workers(tmp_path: Path) -> None:
    """Nobody should have to know about `if __name__ == "__main__"` to evaluate an agent."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "script.py").write_text(SCRIPT)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{0} [1, 1]\n", "")
    assert (tmp_path / "runs").read_text() == "x"


def test_both_settle_one_thread_even_when_jax_is_already_imported(tmp_path: Path) -> None:
    """A plan imports JAX with its agents; the flags still reach it, because it reads them when it first computes."""
    code = """
import os, pathlib
import jax
from calibrant.engine import machine
machine.settle()
assert "xla_cpu_multi_thread_eigen=false" in os.environ["XLA_FLAGS"]
assert {os.environ[name] for name in machine.THREAD_VARIABLES} == {"1"}
assert jax.config.jax_compilation_cache_dir.startswith(os.environ["CALIBRANT_CACHE"])
machine.settle()
assert os.environ["XLA_FLAGS"].count("xla_cpu_multi_thread_eigen") == 1
"""
    env = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS" and "NUM_THREADS" not in name}
    env |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "CALIBRANT_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_executor_is_chosen_by_name_and_work() -> None:
    assert isinstance(make_executor("local", 8, 100), Local)
    assert isinstance(make_executor("auto", 1, 100), Local)
    assert isinstance(make_executor("auto", 8, 1), Local)
    for name, workers, tasks, count in [("auto", 2, 100, 2), ("processes", 8, 3, 3), ("processes", 1, 3, 1)]:
        made = make_executor(name, workers, tasks)
        assert isinstance(made, Processes) and made.workers == count
    with pytest.raises(CalibrantError, match="unknown executor 'cloud': it should be auto, local or processes"):
        make_executor("cloud", None, 1)
    with pytest.raises(CalibrantError, match="workers=0 should be at least 1"):
        make_executor("auto", 0, 1)


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, float], Record]:
    """Six cells of an agent that does another thing on each of them."""
    file = tmp_path_factory.mktemp("deadly") / "deadly.py"
    file.write_text(DEADLY)
    plan = cells(f"{file}:agent")
    records = [record for some in Processes(2).run(make_tasks(plan)) for record in some]
    assert sorted(record.cell.id for record in records) == sorted(cell.id for cell in plan)  # each of them once
    return {case(record): record for record in records}


def test_a_task_that_kills_its_worker_is_a_failed_cell(survived: dict[tuple[int, float], Record]) -> None:
    assert survived[10, 0.5].reason == DIED
    assert not survived[10, 0.5].scores and survived[10, 0.5].provenance


def test_a_task_whose_worker_is_killed_once_is_run_again(survived: dict[tuple[int, float], Record]) -> None:
    assert survived[1, 0.01].reason is None
    assert survived[1, 0.01].scores["nll"].mean == pytest.approx(np.log(2))


def test_an_agent_that_raises_is_a_failed_cell_with_its_reason(survived: dict[tuple[int, float], Record]) -> None:
    """The reason is one line, and tells in passing that workers use one thread."""
    reason = survived[10, 0.01].reason
    assert reason is not None and reason.startswith("ValueError: boom: -") and "\n" not in reason
    assert "--xla_cpu_multi_thread_eigen=false" in reason
    assert not survived[10, 0.01].scores


def test_an_agent_that_exits_is_a_failed_cell(survived: dict[tuple[int, float], Record]) -> None:
    assert survived[1, 0.1].reason == "SystemExit: 3"


def test_the_others_finish(survived: dict[tuple[int, float], Record]) -> None:
    assert {case for case, record in survived.items() if not record.failed} == {(1, 0.01), (1, 0.5), (10, 0.1)}


def test_local_keeps_going_as_well(tmp_path: Path) -> None:
    file = tmp_path / "raises.py"
    file.write_text(
        "def agent(seed, train, facts):\n"
        "    if facts.temperature > 0.3:\n"
        "        raise SystemExit('enough')\n"
        "    if facts.temperature > 0.05:\n"
        "        return lambda x: [[[float('nan')] * facts.classes] * len(x)]\n"
        "    return lambda x: [[[0.0] * facts.classes] * len(x)]\n"
    )
    plan = make_plan(registry.load("suites", "testbed"), "quick", [f"{file}:agent"], 1, {"train": "10"})
    good, bad, gone = (record for some in Local().run(make_tasks(plan)) for record in some)
    assert good.reason is None and gone.reason == "SystemExit: enough"
    assert bad.reason is not None and "finite" in bad.reason and not bad.scores


def test_workers_die_with_their_parent(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    words = ("run", "testbed", "--agent", "endless.py:agent", "--executor", "processes", "--workers", 2)
    parent = subprocess.Popen(command(*words), cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        _until(lambda: len(list(tmp_path.glob("worker-*"))) == 2, 60)
        family = psutil.Process(parent.pid).children(recursive=True)
        at_work = {int(path.name.removeprefix("worker-")) for path in tmp_path.glob("worker-*")}
        assert at_work <= {process.pid for process in family}
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    _until(lambda: not any(_alive(process) for process in family), 10)


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.05)


# --- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["local", "processes"])
def test_a_cell_that_takes_too_long_fails_and_the_others_go_on(tmp_path: Path, executor: str) -> None:
    file = tmp_path / "sleepy.py"
    file.write_text(
        "import time\n"
        "def agent(seed, train, facts):\n"
        "    time.sleep(60 if len(train.y) == 10 else 0)\n"
        "    return lambda x: [[[0.0] * facts.classes] * len(x)]\n"
    )
    with open_store(str(tmp_path / "results.db")) as store:
        outcome = run_plan(cells(f"{file}:agent"), store, executor, 2, timeout=5)
        records = list(store.records())
    assert outcome.failed == sum(record.failed for record in records) == 3
    for record in records:
        assert record.failed == (case(record)[0] == 10)
        assert not record.failed or "longer than the 5 seconds" in str(record.reason)
