"""Logits far beyond what probabilities can hold: no NaN, no infinity, no warning, and the right number.

Log-probabilities are finite by contract (-inf is refused where answers enter); probabilities may well be exactly 0.
"""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from calibrant.metrics import joint, score
from calibrant.metrics.reading import Reading
from calibrant.types import Answers, Array, Question, Scores, Truth, Tuples

TAU = 6
SPREAD = Tuples("", TAU, np.arange(TAU)[None], np.ones((1, TAU), int))
DYAD = Tuples("dyadic", TAU, np.array([[0, 3]]), np.array([[4, 2]]))
QUESTION = Question(np.zeros((TAU, 1)), (SPREAD, DYAD), np.arange(TAU)[:, None])


def direct(logp: Array, truth: Array, family: Tuples) -> float:
    """KL over all labellings, each in log space from end to end."""
    at = np.repeat(family.anchors[0], family.repeats[0])
    y = np.array(list(itertools.product(range(logp.shape[2]), repeat=len(at))))
    log_q = logsumexp(logp[:, at, y].sum(axis=2), axis=0) - np.log(len(logp))
    log_p = truth[at, y].sum(axis=1)
    return float(np.exp(log_p) @ (log_p - log_q))


def judged(logp: Array, truth: Array | None, exact: bool = True) -> dict[str, Scores]:
    return score(Answers(logp, exact=exact), QUESTION, Truth(np.zeros(TAU, int), truth))


def all_finite(scores: dict[str, Scores]) -> bool:
    return all(np.isfinite([s.mean, s.se, s.mc_bias, s.mc_se]).all() for s in scores.values())


@pytest.mark.parametrize("gap", [1e3, 1e4])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("exact", [True, False])
def test_huge_logits(gap: float, classes: int, exact: bool) -> None:
    random = np.random.default_rng(classes)
    logp = log_softmax(gap * random.normal(size=(12, TAU, classes)), axis=2)
    truth = log_softmax(random.normal(size=(TAU, classes)), axis=1)
    assert np.exp(logp).min() == 0
    scores = judged(logp, truth, exact)
    assert all_finite(scores)
    assert all_finite(judged(logp, None, exact))
    assert scores["kl_tau6"].mean == pytest.approx(direct(logp, truth, SPREAD), rel=1e-10)
    assert scores["kl_tau6_dyadic"].mean == pytest.approx(direct(logp, truth, DYAD), rel=1e-10)


def halves_that_never_agree(gap: float) -> Array:
    """Two worlds: one is sure of class 0 early in the tuple and of class 1 late in it, the other the reverse.

    Over the two halves of a tuple the largest joint probabilities come from different worlds, so their product over
    worlds underflows although neither factor does.
    """
    early = np.arange(TAU) < TAU / 2
    sign = np.where(early, 1.0, -1.0)
    gaps = gap * np.stack([sign, -sign])
    return log_softmax(np.stack([gaps, np.zeros_like(gaps)], axis=2), axis=2)


@pytest.mark.parametrize("gap", [300.0, 1e3, 1e4])
@pytest.mark.parametrize("exact", [True, False])
def test_worlds_that_disagree_totally(gap: float, exact: bool) -> None:
    logp, truth = halves_that_never_agree(gap), np.log(np.full((TAU, 2), 0.5))
    scores = judged(logp, truth, exact)
    assert all_finite(scores)
    assert scores["kl_tau6"].mean == pytest.approx(direct(logp, truth, SPREAD), rel=1e-12)
    assert scores["kl_tau6_dyadic"].mean == pytest.approx(direct(logp, truth, DYAD), rel=1e-12)


def test_that_case_does_need_the_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = np.log(np.full((TAU, 2), 0.5))
    reading = Reading(Answers(halves_that_never_agree(1e3), exact=True), QUESTION, Truth(np.zeros(TAU, int), truth))
    monkeypatch.setattr(joint, "TINY", 0.0)
    assert np.isinf(reading.joint(0).kl).all()


def test_the_change_to_logarithms_is_seamless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where products still hold, both ways give the same number."""
    random = np.random.default_rng(5)
    logp = log_softmax(5 * random.normal(size=(20, TAU, 2)), axis=2)
    truth = log_softmax(random.normal(size=(TAU, 2)), axis=1)
    products = judged(logp, truth, exact=False)
    monkeypatch.setattr(joint, "TINY", np.inf)
    logarithms = judged(logp, truth, exact=False)
    for name, value in products.items():
        assert value.mean == pytest.approx(logarithms[name].mean, rel=1e-12), name
        assert value.mc_bias == pytest.approx(logarithms[name].mc_bias, rel=1e-6, abs=1e-10), name


@pytest.mark.parametrize("exact", [True, False])
def test_a_truth_that_is_certain(exact: bool) -> None:
    """True probabilities of exactly 0 and 1: outcomes that cannot happen cost nothing, however unlikely."""
    logp = halves_that_never_agree(1e4)
    truth = log_softmax(np.tile([1e4, 0.0], (TAU, 1)), axis=1)
    assert set(np.exp(truth).ravel()) == {0.0, 1.0}
    scores = judged(logp, truth, exact)
    assert all_finite(scores)
    certain = -(logsumexp(logp[:, :, 0].sum(axis=1)) - np.log(2))
    assert scores["kl_tau6"].mean == pytest.approx(certain)
    assert scores["joint_nll_tau6"].mean == pytest.approx(certain)
    assert scores["nll"].mean == pytest.approx(np.log(2))
    assert scores["accuracy"].mean == pytest.approx(0.5)


@pytest.mark.parametrize("spread", [3, 30])
@pytest.mark.parametrize("enumerate_up_to", [4096, 1])
def test_single_precision_answers(enumerate_up_to: int, spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents answer in float32; their exponentials are taken there, unless one could underflow, sums in float64."""
    monkeypatch.setattr(joint, "ENUMERATE", enumerate_up_to)
    random = np.random.default_rng(6)
    logp = log_softmax(spread * random.normal(size=(20, TAU, 2)), axis=2)
    truth = log_softmax(random.normal(size=(TAU, 2)), axis=1)
    double, single = judged(logp, truth, False), judged(logp.astype(np.float32), truth, False)
    widened = judged(logp.astype(np.float32).astype(np.float64), truth, False)
    for name in double:
        assert single[name].mean == pytest.approx(double[name].mean, rel=1e-5), name
        assert single[name].mean == pytest.approx(widened[name].mean, rel=1e-5, abs=1e-7), name


def test_answers_of_another_library_are_scored_in_double_precision_too() -> None:
    """JAX has no float64 here; an array of its own must not drag the arithmetic down to its precision."""
    logp = np.float32(log_softmax(30 * np.random.default_rng(7).normal(size=(20, TAU, 2)), axis=2))
    truth = np.log(np.full((TAU, 2), 0.5))
    ours, theirs = judged(logp, truth, False), judged(jnp.asarray(logp), truth, False)
    for name in ours:
        assert theirs[name].mean == ours[name].mean, name


def test_drawn_labels_at_huge_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "ENUMERATE", 1)
    truth = np.log(np.full((TAU, 2), 0.5))
    for gap in (1e3, 1e4):
        assert all_finite(judged(halves_that_never_agree(gap), truth, exact=False))
