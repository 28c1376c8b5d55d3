"""A study's summary: trials best first, gaps paired on shared environments, and nothing that JSON cannot hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibrant.engine import plan
from calibrant.engine.store import SqlStore, open_store
from calibrant.tune.search import Budget, search
from calibrant.tune.show import Summary, render, summaries, summarise
from calibrant.tune.study import Study, make_study
from calibrant.tune.tuned import describe
from calibrant.types import CalibrantError

AGENT = """
from dataclasses import dataclass
import numpy as np

@dataclass(frozen=True)
class Tilted:
    tilt: float = 2.0
    version = 1

    def fit(self, seed, train, facts):
        if self.tilt == 13:
            raise ValueError("thirteen")
        share = np.mean(train.y) * 2 - 1
        return lambda x: [[[0.0, self.tilt * share]] * len(x)]
"""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("agent") / "tilted.py"
    file.write_text(AGENT)
    return f"{file}:Tilted"


@pytest.fixture(scope="module")
def study(agent: str) -> Study:
    space = "tilt=0|0.5|1|2|4|8|13"
    return make_study("testbed", agent, space=space, where={"train": "10", "temp": "0.1|0.5"}, seeds=3)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, study: Study) -> Iterator[SqlStore]:
    with open_store(str(tmp_path_factory.mktemp("store") / "results.db")) as opened:
        search(study, opened, executor="local")
        yield opened


@pytest.fixture(scope="module")
def summary(study: Study, store: SqlStore) -> Summary:
    return summarise(study, store)


def test_best_first(summary: Summary) -> None:
    states = [line.trial.state for line in summary.lines]
    assert states == sorted(states, key=["complete", "stopped", "open", "failed"].index)
    for state in ("complete", "stopped"):
        values = [line.trial.objective for line in summary.lines if line.trial.state == state]
        assert len(values) > 1 and values == sorted(values, key=float)  # type: ignore[arg-type]
    assert summary.best is summary.lines[0] and summary.best.gap == 0
    assert summary.given.trial.number == 0 and summary.given.trial.spec == summary.study.agent
    assert summary.cost == pytest.approx(sum(line.trial.cost for line in summary.lines))


def test_gaps_are_paired(summary: Summary, study: Study, store: SqlStore) -> None:
    """Two settings with n environments each: mean of differences, and the error from the spread inside settings."""
    scores = {record.cell.id: record.scores for record in store.records()}
    assert summary.best is not None
    for line in summary.lines:
        if not line.trial.rungs:
            assert math.isnan(line.gap)
            continue
        seeds = line.trial.rungs[-1][0]
        pairs = zip(study.cells(line.trial.spec, seeds), study.cells(summary.best.trial.spec, seeds), strict=True)
        gaps = [scores[own.id]["aggregate"].mean - scores[best.id]["aggregate"].mean for own, best in pairs]
        assert line.gap == pytest.approx(np.mean(gaps), abs=1e-12)
        if seeds == 3:
            by_setting = np.reshape(gaps, (3, 2))
            expected = np.sqrt(by_setting.var(axis=0, ddof=1).sum() / 3) / 2
            assert line.gap_se == pytest.approx(expected, abs=1e-12)


def test_the_text_says_it_all(summary: Summary) -> None:
    text = render(summary)
    head, judged, columns, *rows = text.splitlines()
    assert head.startswith(f"study {summary.study.name}: 7 trials (") and "1 failed" in head
    assert judged.startswith("aggregate, lower is better; quick, temp=0.1|0.5, train=10: 2 settings x 3 tuning seeds")
    assert columns.split() == ["trial", "state", "seeds", "aggregate", "gap", "+-", "se", "CPU", "s", "spec"]
    assert rows[0].rstrip().endswith(summary.lines[0].trial.spec)
    assert "ValueError: thirteen)" in rows[6]
    assert rows[-2] == "importance: tilt 1.00"
    assert rows[-1].startswith("expected best of k trials: 1: ") and ", 6: " in rows[-1]


def test_json_holds_finite_numbers_only(summary: Summary) -> None:
    read = json.loads(json.dumps(summary.as_dict(), allow_nan=False))
    assert read["study"] == summary.study.name and read["best"] == summary.lines[0].trial.spec
    assert [one["trials"] for one in read["expected_best"]] == list(range(1, 7))
    assert read["trials"][-1]["gap"] is None and read["trials"][-1]["state"] == "failed"
    assert read["settings"]["first_seed"] == 1_000_000 and read["settings"]["rungs"] == [1, 3]


def test_an_unfinished_study_can_be_looked_at(agent: str, study: Study, store: SqlStore) -> None:
    open_one = replace(study, seed=5)
    search(open_one, store, Budget(cpu_minutes=1e-9), executor="local")
    found = summarise(open_one, store)
    assert found.best is None and found.importance == {} and found.expected_best == ()
    assert {line.trial.state for line in found.lines} == {"open"}
    assert "7 open" in render(found)
    with pytest.raises(CalibrantError, match=r"no trial of study .* has been measured on every tuning environment yet"):
        describe(found)


def test_studies_are_found_by_their_settings(study: Study, store: SqlStore) -> None:
    assert study.name in [one.study.name for one in summaries(store)]
    assert study in [one.study for one in summaries(store, suite="testbed", agent=study.agent, sampler="grid")]
    assert summaries(store, sampler="tpe") == summaries(store, agent="mlp") == []


def test_studies_of_an_older_definition_are_left_out(
    study: Study, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "defined", lambda kind, spec: "changed")
    monkeypatch.setattr("calibrant.tune.study.defined", lambda kind, spec: "changed")
    assert summaries(store, agent=study.agent) == []


def test_studies_of_agents_that_are_gone_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "gone.py"
    file.write_text(AGENT)
    gone = make_study("testbed", f"{file}:Tilted", space="tilt=0|1", where={"train": "10", "temp": "0.1"}, seeds=1)
    with open_store(str(tmp_path / "results.db")) as store:
        search(gone, store, executor="local")
        assert len(summaries(store)) == 1
        file.unlink()
        assert summaries(store) == []
