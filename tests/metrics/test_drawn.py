"""The original's estimator: unbiased where nothing underflows, and biased in the documented ways elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.metrics import score
from calibrant.types import Answers, Array, Question, Truth, Tuples

N, TAU = 1000, 10


def scores(logits: Array, truth: Array, key: int = 0, exact: bool = True) -> dict[str, float]:
    """Of worlds [worlds, unique, 2] at N tuples of TAU inputs of their own."""
    anchors = np.arange(N * TAU).reshape(N, TAU)
    question = Question(np.zeros((N * TAU, 1)), (Tuples("", TAU, anchors, np.ones_like(anchors)),), anchors)
    answers = Answers(np.log(_softmax(logits)).astype(np.float64), None, exact)
    logp = np.log(_softmax(truth))
    labels = (np.random.default_rng(key).uniform(size=N * TAU) < np.exp(logp[:, 1])).astype(int)
    return {name: one.mean for name, one in score(answers, question, Truth(labels, logp), key).items()}


def _softmax(logits: Array) -> Array:
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return np.maximum(e / e.sum(-1, keepdims=True), 1e-300)


def pair(gap: Array) -> Array:
    return np.stack([np.zeros_like(gap), gap], axis=-1)


def test_agrees_with_summing_labels_out_when_nothing_underflows() -> None:
    """Both have the same expectation for one world; the drawn one has a standard error of about 0.06 at tau=10, and
    the bound of 6 of them lets a false alarm happen less than once in 10^8."""
    rng = np.random.default_rng(1)
    truth, belief = rng.normal(size=N * TAU), rng.normal(size=(1, N * TAU))
    got = scores(pair(belief), pair(truth))
    assert got["drawn_kl_tau10"] == pytest.approx(got["kl_tau10"], abs=6 * 0.06)
    assert got["drawn_kl_tau1"] == pytest.approx(got["kl_tau1"], abs=6 * 0.02)


def test_an_underflow_takes_the_largest_finite_tuple_of_its_problem() -> None:
    """A belief that is certain of the wrong class at one input loses about as much as the worst other tuple."""
    truth = np.full(N * TAU, 0.0)
    belief = np.zeros((1, N * TAU))
    certain = belief.copy()
    certain[0, :TAU] = -500.0  # class 1 has probability e^-500 at the ten inputs of the first tuple
    plain, hidden = scores(pair(belief), pair(truth)), scores(pair(certain), pair(truth))
    assert plain["drawn_kl_tau10"] == hidden["drawn_kl_tau10"] == pytest.approx(0, abs=1e-9)
    assert hidden["kl_tau10"] > 2  # half of ten labels cost 500 nats each, over 1000 tuples


def test_a_negative_mean_is_zero() -> None:
    rng = np.random.default_rng(2)
    truth = pair(rng.normal(size=N * TAU))
    near = truth[None] + 1e-3 * rng.normal(size=(1, N * TAU, 2))
    means = [scores(near, truth, key)["drawn_kl_tau10"] for key in range(8)]
    assert min(means) == 0.0  # noise makes about half of them negative: a false alarm is one in 256
    assert all(mean >= 0 for mean in means)


def test_finite_supports_are_resampled_and_dyads_left_out() -> None:
    """A hundred worlds of which one is right: a thousand draws hold it five to fifteen times, not ten."""
    worlds = np.zeros((100, N * TAU))
    worlds[0] = 3.0
    truth = pair(np.full(N * TAU, 3.0))
    enumerated, drawn = (scores(pair(worlds), truth, 3, exact)["drawn_kl_tau10"] for exact in (False, True))
    assert enumerated != drawn
    assert abs(enumerated - drawn) < np.log(3)
    assert not any("dyadic" in name and name.startswith("drawn") for name in scores(pair(worlds), truth, 3))
