"""The library in two calls: whatever a user calls an agent can be evaluated, and what a store holds can be read."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import calibrant
from calibrant import api, metrics
from calibrant.agents.ensemble import Ensemble
from calibrant.agents.mlp import Mlp
from calibrant.agents.uniform import Uniform
from calibrant.engine import plan
from calibrant.engine.store import open_store
from calibrant.report.board import Board
from calibrant.suites import bandit
from calibrant.tune import TUNING_SEEDS
from calibrant.tune.search import search
from calibrant.tune.study import make_study
from calibrant.types import DEFAULT_STORE, CalibrantError, Record, Scores

CONSTANT = """
class Constant:
    def fit(self, seed, train, facts):
        return lambda x: [[[0.0] * facts.classes] * len(x)]

    class Inner:
        pass

def function(seed, train, facts): ...
"""
ONE = {"train": 10, "temp": 0.1}  # one setting of the suite


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything in an empty folder, where `calibrant.db` is the default store."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fresh() -> Iterator[None]:
    """Definitions are remembered for the life of a process; forget them around a test that changes one."""
    forget()
    yield
    forget()


def forget() -> None:
    plan.defined.cache_clear()
    plan.metrics_defined.cache_clear()


class Watch:
    """Progress that is written down; interrupts after some records when told to."""

    def __init__(self, interrupt_after: int | None = None) -> None:
        self.began: tuple[int, int] | None = None
        self.seen: list[str] = []
        self.stopped = False
        self._limit = interrupt_after

    def start(self, total: int, already: int) -> None:
        self.began = total, already

    def advance(self, record: Record) -> None:
        self.seen.append(record.cell.id)
        if len(self.seen) == self._limit:
            raise KeyboardInterrupt

    def stop(self) -> None:
        self.stopped = True


def evaluate(agent: object, watch: Watch | None = None) -> Board:
    return calibrant.evaluate(agent, "testbed", seeds=1, where=ONE, executor="local", progress=watch)


# --- evaluate -------------------------------------------------------------------------------------


def test_a_spec() -> None:
    board = evaluate("oracle")
    assert (board.suite, board.agents) == ("testbed", ("oracle",))
    assert {row.n for row in board.rows} == {1}
    assert next(row.mean for row in board.rows if row.metric == "kl_tau1") == pytest.approx(0, abs=1e-9)
    assert Path("calibrant.db").is_file()


def test_a_list_and_what_the_store_already_has() -> None:
    first, second = Watch(), Watch()
    assert set(evaluate(["oracle", "uniform"], first).agents) == {"oracle", "uniform"}
    assert first.began == (2, 0) and len(first.seen) == 2 and first.stopped
    board = evaluate("uniform", second)
    assert set(board.agents) == {"oracle", "uniform"}  # the board of all that the store has
    assert second.began == (1, 1) and second.seen == [] and second.stopped


def test_an_object_and_a_class_of_ours() -> None:
    assert evaluate(Uniform()).agents == ("uniform",)
    again = Watch()
    evaluate(Uniform, again)
    assert again.began == (1, 1)  # the same agent by another name
    assert api.agent_spec(Mlp(l2=3.0, steps=20)) == "mlp?l2=3&steps=20"
    assert api.agent_spec(Ensemble(hidden=(50, 20))) == "ensemble?hidden=50x20"
    assert api.agent_spec(Ensemble) == api.agent_spec(Ensemble()) == "ensemble"


def test_an_importable_class_and_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "calibrant_test_constant.py").write_text(CONSTANT)
    monkeypatch.syspath_prepend(folder)
    module = importlib.import_module("calibrant_test_constant")
    (name,) = evaluate(module.Constant).agents
    assert name.startswith("calibrant_test_constant:Constant@")
    board = evaluate("calibrant_test_constant.py:Constant")
    assert len(board.agents) == 2 and len({row.mean for row in board.rows if row.metric == "kl_tau10"}) == 1
    for nameless in (module.Constant(), module.function, module.Constant.Inner, lambda seed, train, facts: None):
        with pytest.raises(CalibrantError, match=r"FILE\.py:NAME"):
            evaluate(nameless)


def test_wrong_names_are_one_sentence() -> None:
    with pytest.raises(CalibrantError, match="unknown suite 'testbd', did you mean 'testbed'"):
        calibrant.evaluate("oracle", "testbd")
    with pytest.raises(CalibrantError, match="unknown agent 'orcle', did you mean 'oracle'"):
        evaluate("orcle")
    with pytest.raises(CalibrantError, match="it should be auto, local or processes"):
        calibrant.evaluate("oracle", "testbed", executor="cloud")
    with pytest.raises(CalibrantError, match=r"no store at nowhere\.db"):
        calibrant.load("nowhere.db")
    assert not Path("nowhere.db").exists()


def test_an_interrupt_reaches_the_caller_and_loses_nothing() -> None:
    first, second = Watch(interrupt_after=1), Watch()
    with pytest.raises(KeyboardInterrupt):
        evaluate(["oracle", "uniform"], first)
    assert first.stopped
    assert set(evaluate(["oracle", "uniform"], second).agents) == {"oracle", "uniform"}
    assert second.began == (2, 1) and len(second.seen) == 1


# --- load -----------------------------------------------------------------------------------------


def test_a_store_is_read_as_a_board_and_a_report(folder: Path) -> None:
    made = evaluate(["oracle", "uniform"])
    results = calibrant.load("calibrant.db")
    assert results.suites() == ["testbed"]
    assert results.board("testbed").to_json() == made.to_json()
    sliced = results.board("testbed", by=["temp"], metrics=["nll"], agents=["uniform"], baseline="uniform")
    assert [(row.agent, row.metric, row.slice) for row in sliced.rows] == [("uniform", "nll", {"temp": 0.1})]
    assert results.report(folder / "report.html") == folder / "report.html"
    assert (folder / "report.html").stat().st_size > 100_000
    with pytest.raises(CalibrantError, match="has no records of suite 'testbed'"):
        results.board("testbed", agents=["mlp"])


@pytest.mark.usefixtures("fresh")
def test_records_of_an_older_metric_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate(["oracle", "uniform"])
    changed = metrics.versions() | {"ece": 17}
    monkeypatch.setattr(metrics, "versions", lambda: changed)
    forget()
    with pytest.raises(CalibrantError, match="has no records of suite 'testbed'"):
        calibrant.load().board("testbed")
    watch = Watch()
    assert evaluate("uniform", watch).agents == ("uniform",)  # run again, as another cell, and not the oracle
    assert watch.began == (1, 0)


@pytest.mark.usefixtures("fresh")
def test_of_two_definitions_of_an_agent_only_todays_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate("uniform")
    monkeypatch.setattr(Uniform, "version", 17, raising=False)
    forget()
    assert {row.n for row in calibrant.load().board("testbed").rows} == {1}  # the only one there is
    watch = Watch()
    assert {row.n for row in evaluate("uniform", watch).rows} == {1}  # and not the average of both
    assert watch.began == (1, 0)
    (kept,) = calibrant.load().records("testbed")
    assert kept.cell.id == watch.seen[0]


def test_an_agent_whose_file_is_gone_stays_on_the_board(folder: Path) -> None:
    (folder / "mine.py").write_text(CONSTANT)
    evaluate("mine.py:Constant")
    (folder / "mine.py").unlink()
    (name,) = calibrant.load().board("testbed").agents
    assert name.startswith("mine.py:Constant@")


def test_tuning_environments_are_never_reported() -> None:
    """Not on a board, not in a report, and a store that holds nothing else has nothing of the suite."""
    study = make_study(
        "testbed", "mlp?steps=20&hidden=8", space="l2=1|2", where={"train": "10", "temp": "0.1"}, seeds=1
    )
    with open_store(DEFAULT_STORE) as store:
        search(study, store, executor="local")
        assert {record.cell.seed for record in store.records()} == {TUNING_SEEDS}
    results = calibrant.load()
    assert results.records("testbed") == [] and results.suites() == []
    with pytest.raises(CalibrantError, match="has no records of suite 'testbed'"):
        results.board("testbed")
    assert {row.n for row in evaluate("mlp?steps=20&hidden=8").rows} == {1}
    assert {record.cell.seed for record in results.records("testbed", pictures=True)} == {0}
    assert results.suites() == ["testbed"]


# --- the package ----------------------------------------------------------------------------------


def test_naming_the_package_imports_nothing_numerical() -> None:
    code = "import sys, calibrant; print({'jax', 'numpy', 'sqlalchemy', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        calibrant.nothing  # noqa: B018


def test_presets_that_stand_alone_are_not_averaged_with_others() -> None:
    """A quick game of 2000 steps and one of 50,000 have nothing to do in one mean."""
    quick, paper = (set(bandit.SUITE.preset(name).problems) for name in ("quick", "paper"))
    with open_store(DEFAULT_STORE) as store:
        results = api.Results(store)
        for problem in quick:
            store.append(game(problem))
        assert {record.cell.problem for record in results.records("bandit")} == quick
        assert results.board("bandit").others == ()
        store.append(game("bandit"))
        assert [record.cell.problem for record in results.records("bandit")] == ["bandit"]
        assert results.board("bandit").others == ("quick",)
        assert {record.cell.problem for record in results.records("bandit", preset="quick")} == quick
        assert {record.cell.problem for record in results.records("bandit", where={"steps": 2000})} == quick
        assert results.records("bandit", preset="paper", where={"steps": 2000}) == []
        assert paper & quick == set()
        with pytest.raises(CalibrantError, match="has no preset 'papr', did you mean 'paper'"):
            results.board("bandit", preset="papr")


def game(problem: str) -> Record:
    """A finished game of nobody, as today's definitions would have it."""
    cell = plan.make_cell(problem, "uniform", 0)
    defined = plan.definition(problem, "uniform")
    return Record(cell, scores={"regret": Scores(1.0)}, provenance={"defined": defined})
