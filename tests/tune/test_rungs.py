"""Who goes on, who is stopped, and what objectives mean: on numbers that can be followed by hand."""

from __future__ import annotations

import dataclasses

import pytest

from calibrant.engine.ledger import StudyTrial
from calibrant.tune.rungs import best_of, going_on, judged
from calibrant.tune.study import Study

STUDY = Study("testbed", "mlp", "grid", ("l2=1|2",), seeds=9)


def trial(number: int, *means: float, **changes: object) -> StudyTrial:
    rungs = tuple(zip(STUDY.rungs, means, strict=False))
    made = StudyTrial("study", number, 0, f"mlp?l2={number}", "2026-01-01T00:00:00+00:00", rungs=rungs)
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def numbers(trials: list[StudyTrial]) -> list[int]:
    return [one.number for one in trials]


def test_rungs() -> None:
    assert STUDY.rungs == (1, 3, 9)
    assert dataclasses.replace(STUDY, halving=False).rungs == (9,)
    assert dataclasses.replace(STUDY, seeds=1).rungs == (1,)
    assert dataclasses.replace(STUDY, seeds=100).rungs == (1, 3, 11, 33, 100)


def test_the_best_third_goes_on_and_so_does_the_agent_as_given() -> None:
    batch = [trial(number, mean) for number, mean in enumerate([9.0, 5.0, 1.0, 3.0, 2.0, 4.0])]
    assert numbers(going_on(STUDY, [], batch, 0)) == [0, 2, 4]
    accuracy = dataclasses.replace(STUDY, metric="accuracy")
    assert numbers(going_on(accuracy, [], batch, 0)) == [0, 1]  # 0 is one of the best two here


def test_there_is_always_one_that_goes_on() -> None:
    assert numbers(going_on(STUDY, [], [trial(1, 5.0), trial(2, 4.0)], 0)) == [2]
    assert numbers(going_on(STUDY, [], [trial(1, 5.0), trial(2, 5.0)], 0)) == [1, 2]  # equals share a fate
    assert going_on(STUDY, [], [], 0) == []


def test_later_batches_are_held_against_all_that_came_before() -> None:
    past = [trial(number, mean, state="stopped") for number, mean in enumerate([1.0, 2.0, 3.0, 4.0])]
    assert numbers(going_on(STUDY, past, [trial(4, 1.5), trial(5, 2.5)], 0)) == [4]
    assert numbers(going_on(STUDY, past, [trial(4, 3.5), trial(5, 2.5)], 0)) == []


def test_a_trial_that_failed_or_has_not_got_there_stays_behind() -> None:
    batch = [trial(0, 9.0), trial(1, reason="NaN"), trial(2)]
    assert numbers(going_on(STUDY, [], batch, 0)) == [0]
    assert going_on(STUDY, [], [trial(0, reason="NaN")], 0) == []


def test_objectives_speak_of_the_same_environments() -> None:
    """The two that went on found the other environments harder by 3 and by 5: so would have, by 4, the one stopped."""
    batch = [trial(0, 2.0, 3.0, 5.0), trial(1, 1.0, 4.0, 6.0), trial(2, 7.0), trial(3, reason="testbed: NaN")]
    first, second, stopped, failed = judged(STUDY, [], batch)
    assert (first.state, first.objective) == ("complete", 5.0)
    assert (second.state, second.objective) == ("complete", 6.0)
    assert (stopped.state, stopped.objective) == ("stopped", 11.0)
    assert (failed.state, failed.objective, failed.reason) == ("failed", None, "testbed: NaN")
    assert best_of(STUDY, [second, stopped, first]) == first


def test_without_a_complete_trial_objectives_are_what_was_measured() -> None:
    (stopped,) = judged(STUDY, [], [trial(1, 7.0)])
    assert (stopped.state, stopped.objective) == ("stopped", 7.0)
    assert best_of(STUDY, [stopped]) is None


@pytest.mark.parametrize(("metric", "best"), [("aggregate", 1), ("accuracy", 2)])
def test_the_best_is_the_best_in_the_metrics_direction(metric: str, best: int) -> None:
    trials = [trial(1, 1.0, 1.0, 1.0, state="complete"), trial(2, 1.0, 1.0, 2.0, state="complete")]
    found = best_of(dataclasses.replace(STUDY, metric=metric), trials)
    assert found is not None and found.number == best
