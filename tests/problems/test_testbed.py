"""The testbed problem: shapes, facts, independence of draws, purity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrant import registry
from calibrant.problems import testbed
from calibrant.types import Array, Instance

SMALL = testbed.Testbed(tuples=20)


def arrays(instance: Instance) -> list[Array]:
    families = [array for family in instance.question.tuples for array in (family.anchors, family.repeats)]
    truth = [instance.truth.labels, np.asarray(instance.truth.logp)]
    return [instance.train.x, instance.train.y, instance.question.x, instance.question.marginal, *families, *truth]


@pytest.mark.parametrize("spec", [
    "testbed?tuples=7",
    "testbed?train=1&dim=5&classes=4&tuples=3&tau=1x3&kappa=1x2x4&worlds=17",
    "testbed?hidden=3&tau=2&kappa=3&tuples=5",
])  # fmt: skip
def test_shapes(spec: str) -> None:
    problem = registry.resolve("problems", spec)
    instance = problem.sample(0)
    facts, question, truth = instance.facts, instance.question, instance.truth
    assert instance.train.x.shape == (problem.train, problem.dim) == (facts.train_size, facts.inputs)
    assert instance.train.x.dtype == question.x.dtype == np.float32
    assert instance.train.y.dtype == np.int32
    assert 0 <= instance.train.y.min() <= instance.train.y.max() < problem.classes == facts.classes
    assert (facts.temperature, facts.hidden, facts.activation) == (problem.temp, problem.hidden, problem.activation)
    assert facts.environment is None  # only control agents that declare it are told
    unique = problem.tuples * (max(problem.tau) + sum(problem.kappa))
    assert question.x.shape == (unique, problem.dim)
    assert truth.labels.shape == (unique,)
    assert truth.logp.shape == (unique, problem.classes)
    assert question.worlds == problem.worlds
    asked = [(family.tau, family.name) for family in question.tuples]
    assert len(set(asked)) == len(asked) == len(problem.tau) + sum(tau > 1 for tau in problem.tau) * len(problem.kappa)
    for family in question.tuples:
        assert len(family.anchors) == problem.tuples
        assert family.anchors.max() < unique
        assert (family.repeats.sum(axis=1) == family.tau).all()
    np.testing.assert_allclose(truth.logp, instance.environment.logp(question.x))


def test_families_do_not_share_inputs_between_kappas() -> None:
    families = testbed.Testbed(tuples=5, tau=(1, 10), kappa=(2, 3)).sample(0).question.tuples
    used = {family.name: set(family.anchors.ravel().tolist()) for family in families}
    assert used["dyadic"].isdisjoint(used["kappa3"])
    assert used["dyadic"].isdisjoint(used[""])


def test_sampling_is_pure() -> None:
    state = str(np.random.get_state())  # noqa: NPY002 - that nothing touches it is the point
    first = arrays(SMALL.sample(3))
    for array in first:
        array += 1  # whoever gets an instance may write on it
    for one, other in zip(arrays(SMALL.sample(3)), arrays(SMALL.sample(3)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert all((one != other).any() for one, other in zip(first, arrays(SMALL.sample(3)), strict=True))
    assert str(np.random.get_state()) == state  # noqa: NPY002


@pytest.mark.parametrize("change", ["temp=0.5", "train=11", "activation=tanh", "init=normal", "hidden=50", "classes=3"])
def test_other_problems_draw_other_numbers(change: str) -> None:
    ours, theirs = SMALL.sample(0), registry.resolve("problems", f"testbed?tuples=20&{change}").sample(0)
    assert not np.isin(theirs.train.x, ours.train.x).any()
    assert not np.isin(theirs.question.x, ours.question.x).any()
    assert not np.isin(theirs.environment.weights[0], ours.environment.weights[0]).any()


def test_seeds_are_independent() -> None:
    """Correlation of 440 inputs between any two of twelve seeds below 5.5 standard errors: false alarm 3e-6."""
    drawn = np.stack([SMALL.sample(seed).question.x.ravel() for seed in range(12)])
    correlation = np.corrcoef(drawn) - np.eye(12)
    assert np.abs(correlation).max() < 5.5 / np.sqrt(drawn.shape[1])


def test_streams_of_one_instance_are_independent() -> None:
    """Labels must not know of inputs, nor the test of the training set. Correlations at 4.9 standard errors."""
    instance = testbed.Testbed(train=1000, tuples=100).sample(0)
    x = instance.question.x[:1000].ravel()
    train = instance.train.x.ravel()
    assert abs(np.corrcoef(x, train)[0, 1]) < 4.9 / np.sqrt(len(x))
    surprise = instance.train.y - np.exp(instance.environment.logp(instance.train.x))[:, 1]
    for column in instance.train.x.T:
        assert abs((surprise * column).mean()) < 4.9 * (surprise * column).std() / np.sqrt(1000)


def test_labels_follow_the_true_probabilities() -> None:
    """Over 40 instances, by how much labels exceed their probabilities, in standard errors: below 4.9."""
    excess = spread = 0.0
    for seed in range(40):
        truth = SMALL.sample(seed).truth
        p = np.exp(np.asarray(truth.logp))[:, 1]
        excess += (truth.labels - p).sum()
        spread += (p * (1 - p)).sum()
    assert abs(excess) < 4.9 * np.sqrt(spread)


def test_what_is_asked_does_not_change_what_is_learnt() -> None:
    """More tuples, other orders or worlds: the same environment, training set and first questions."""
    few = SMALL.sample(5)
    for other in (replace(SMALL, tuples=50), replace(SMALL, worlds=3), replace(SMALL, kappa=(2, 3))):
        many = other.sample(5)
        np.testing.assert_array_equal(few.train.x, many.train.x)
        np.testing.assert_array_equal(few.train.y, many.train.y)
        np.testing.assert_array_equal(few.environment.weights[0], many.environment.weights[0])
        np.testing.assert_array_equal(few.question.x[:200], many.question.x[:200])


def test_shape_tells_which_problems_share_a_program() -> None:
    assert SMALL.shape() == replace(SMALL, temp=0.5, train=300).shape()
    for other in (
        replace(SMALL, dim=3),
        replace(SMALL, tuples=21),
        replace(SMALL, classes=3),
        replace(SMALL, tau=(1,)),
    ):
        assert SMALL.shape() != other.shape()


def test_picture_of_the_plane() -> None:
    grid = np.asarray(SMALL.sample(0).question.picture)
    assert grid.shape == (32 * 32, 2)
    assert (grid[0].tolist(), grid[-1].tolist()) == ([-2.5, 2.5], [2.5, -2.5])
    assert replace(SMALL, dim=3).sample(0).question.picture is None
