"""Environments of one law under the name of another: the testbed's own draws, with other facts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrant import registry
from calibrant.engine.cohorts import Task
from calibrant.engine.compiled import run_compiled
from calibrant.engine.plan import make_cell
from calibrant.types import Facts

LAWS = ("activation=tanh", "hidden=5x5", "activation=selu&temp=0.5", "train=30")


@pytest.mark.parametrize("law", LAWS)
def test_the_environment_is_the_testbeds(law: str) -> None:
    """Data, question and truth are equal, and only the facts are another's."""
    ours, theirs = (registry.resolve("problems", f"{name}?{law}").sample(3) for name in ("misspecified", "testbed"))
    np.testing.assert_array_equal(ours.train.x, theirs.train.x)
    np.testing.assert_array_equal(ours.train.y, theirs.train.y)
    np.testing.assert_array_equal(ours.question.x, theirs.question.x)
    np.testing.assert_array_equal(ours.truth.logp, theirs.truth.logp)
    assert ours.facts == replace(theirs.facts, hidden=(50, 50), activation="relu", init="truncated")
    assert ours.facts == Facts(2, 2, theirs.facts.train_size, theirs.facts.temperature)
    assert ours.question.picture is None


def test_the_shape_is_that_of_what_agents_take_it_for() -> None:
    shape = registry.resolve("problems", "misspecified?activation=tanh&tuples=50").shape()
    assert shape == registry.resolve("problems", "testbed?tuples=50").shape()
    assert shape != registry.resolve("problems", "testbed?activation=tanh&tuples=50").shape()
    assert shape != registry.resolve("problems", "misspecified?activation=tanh&tuples=50&dim=3").shape()


def test_agents_keep_the_default_network() -> None:
    """On the default law the score is the testbed's own; on another it is that of a ReLU network of 50 and 50 units."""
    names = ("misspecified?tuples=20", "misspecified?hidden=5x5&activation=tanh&tuples=20", "testbed?tuples=20")
    cells = tuple(make_cell(name, "mlp?steps=30", 1) for name in names)
    ours, other, _ = run_compiled(Task(cells, 8, 10))
    assert ours.cost.parameters == other.cost.parameters == 2 * 50 + 50 + 50 * 50 + 50 + 50 * 2 + 2
    assert not other.failed and other.scores["kl_tau1"].mean != ours.scores["kl_tau1"].mean
