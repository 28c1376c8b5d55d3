"""Trials are kept whole or not at all, and a judged one stays as it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from calibrant.engine.ledger import StudyTrial
from calibrant.engine.store import SqlStore, keep_study, keep_trial, open_store
from calibrant.types import CalibrantError

ABOUT = {"suite": "testbed", "space": ["l2=1|2"], "where": {}}


def trial(number: int = 0, **changes: object) -> StudyTrial:
    made = StudyTrial("a study", number, 0, f"mlp?l2={number}", "2026-01-01T00:00:00+00:00")
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(str(tmp_path / "results.db")) as opened:
        yield opened


def test_what_goes_in_comes_out(store: SqlStore) -> None:
    rungs = ((1, 0.1), (3, 1 / 3))
    trials = [
        trial(10, state="complete", objective=1 / 3, rungs=rungs, cost=1.5),
        trial(2, state="failed", reason="ValueError: thirteen"),
        trial(1),
    ]
    store.keep_trials(ABOUT, trials)
    store.keep_trials(ABOUT, [replace(trial(7), study="another")])
    assert store.trials("a study") == trials[::-1]  # by number
    assert store.studies() == {"a study": ABOUT, "another": ABOUT}
    assert store.trials("nothing") == []


def test_open_trials_are_replaced_and_judged_ones_are_not(store: SqlStore) -> None:
    store.keep_trials(ABOUT, [trial()])
    store.keep_trials(ABOUT, [trial(cost=1.0)])
    assert store.trials("a study") == [trial(cost=1.0)]
    done = trial(cost=2.0, state="complete", objective=1.0)
    for later in (done, trial(), trial(cost=9.0, state="stopped", objective=3.0)):
        store.keep_trials(ABOUT, [later])
        assert store.trials("a study") == [done]


def test_a_batch_is_kept_whole_or_not_at_all(store: SqlStore) -> None:
    for wrong in (trial(1, cost=math.nan), trial(1, objective=math.inf), trial(1, rungs=((1, math.nan),))):
        with pytest.raises(CalibrantError, match="trial 1 of study a study should have finite numbers only"):
            store.keep_trials(ABOUT, [trial(0), wrong])
    assert store.trials("a study") == [] and store.studies() == {}
    store.keep_trials(ABOUT, [])
    assert store.studies() == {}


def test_statements_are_valid_for_postgresql() -> None:
    from sqlalchemy.dialects import postgresql

    text = str(keep_trial("postgresql").compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]
    assert "ON CONFLICT (study, number) DO UPDATE" in text and "WHERE calibrant_trials.state = " in text
    text = str(keep_study("postgresql").compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]
    assert "ON CONFLICT DO NOTHING" in text
