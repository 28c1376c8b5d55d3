"""Beliefs whose joint predictions are known in closed form: coins, Beta-Bernoulli, products."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln, log_softmax
from scipy.stats import beta, binom

from calibrant.metrics import score
from calibrant.types import Answers, Array, Question, Scores, Truth, Tuples

LOG2 = np.log(2)
SURE = 1e3  # a logit gap whose smaller probability is exactly 0 in double precision
HEADS = log_softmax([SURE, 0.0])
TAILS = HEADS[::-1]
FAIR = np.log([0.5, 0.5])


def asked(tau: int, form: str) -> Tuples:
    """One coin thrown tau times: as one input asked tau times, or as tau inputs that happen to be the same coin."""
    if form == "repeated":
        return Tuples("", tau, np.array([[0]]), np.array([[tau]]))
    return Tuples("", tau, np.arange(tau)[None], np.ones((1, tau), int))


def judge(worlds: list[Array], truth: Array | None, family: Tuples, weights: Array | None = None) -> dict[str, Scores]:
    """Scores of a belief about one coin, whatever the input."""
    inputs = int(family.anchors.max()) + 1
    logp = np.repeat(np.stack(worlds)[:, None], inputs, axis=1)
    question = Question(np.zeros((inputs, 1)), (family,), np.zeros((1, 1), int))
    true = None if truth is None else np.tile(truth, (inputs, 1))
    return score(Answers(logp, weights, exact=True), question, Truth(np.zeros(inputs, int), true))


# --- the two coins of the Neural Testbed's figure 1: equal marginals, different joints ------------------


@pytest.mark.parametrize("form", ["repeated", "spread"])
@pytest.mark.parametrize("truth", [HEADS, TAILS])
@pytest.mark.parametrize("tau", [2, 10])
def test_two_coins(tau: int, truth: Array, form: str) -> None:
    known_fair = judge([FAIR], truth, asked(tau, form))
    two_worlds = judge([HEADS, TAILS], truth, asked(tau, form))
    for belief in (known_fair, two_worlds):  # one throw cannot tell them apart
        assert belief["kl_tau1"].mean == pytest.approx(LOG2)
        assert belief["nll"].mean == pytest.approx(LOG2)
        assert belief["brier"].mean == pytest.approx(0.5)
        assert belief["accuracy"].mean == pytest.approx(0.5)
        assert belief[f"marginal_tau{tau}"].mean == pytest.approx(tau * LOG2)
    for name in (f"kl_tau{tau}", f"joint_nll_tau{tau}"):  # the truth is certain: both are the same number
        assert known_fair[name].mean == pytest.approx(tau * LOG2)
        assert two_worlds[name].mean == pytest.approx(LOG2)
    assert known_fair[f"dependence_tau{tau}"].mean == 0
    assert two_worlds[f"dependence_tau{tau}"].mean == pytest.approx((1 - tau) * LOG2)


@pytest.mark.parametrize("form", ["repeated", "spread"])
def test_believing_in_a_bent_coin_is_punished_when_the_coin_is_fair(form: str) -> None:
    """Mixed throws are impossible in both worlds: 2^10 - 2 labellings, the most likely of them by far."""
    scores = judge([HEADS, TAILS], FAIR, asked(10, form))
    heads = np.arange(11)
    log_q = np.logaddexp(heads * HEADS[0] + (10 - heads) * HEADS[1], heads * TAILS[0] + (10 - heads) * TAILS[1]) - LOG2
    expected = -10 * LOG2 - binom.pmf(heads, 10, 0.5) @ log_q
    assert scores["kl_tau10"].mean == pytest.approx(expected)
    assert scores["kl_tau1"].mean == pytest.approx(0, abs=1e-12)


# --- a Beta belief about a coin, held as a weighted grid of worlds ---------------------------------------

GRID = (np.arange(4000) + 0.5) / 4000
GRID_WORLDS = list(np.log(np.stack([1 - GRID, GRID], axis=1)))


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.0, 5.0), (30.0, 10.0)])
def test_beta_bernoulli_likelihood_of_every_count(a: float, b: float) -> None:
    """Tuple k holds k ones in ten: its joint likelihood is B(a + k, b + 10 - k) / B(a, b)."""
    ones = np.arange(11)
    labels = (np.arange(10) < ones[:, None]).astype(int).ravel()
    family = Tuples("", 10, np.arange(110).reshape(11, 10), np.ones((11, 10), int))
    logp = np.repeat(np.stack(GRID_WORLDS)[:, None], 110, axis=1)
    answers = Answers(logp, beta.pdf(GRID, a, b), exact=True)
    scores = score(answers, Question(np.zeros((110, 1)), (family,), np.arange(110)[:, None]), Truth(labels))
    expected = betaln(a, b) - betaln(a + ones, b + 10 - ones)
    np.testing.assert_allclose(np.asarray(scores["joint_nll_tau10"].items), expected, rtol=1e-5)
    assert scores["joint_nll_tau10"].mean == pytest.approx(expected.mean(), rel=1e-6)
    assert "kl_tau10" not in scores  # there is no KL where the truth is not known


@pytest.mark.parametrize("form", ["repeated", "spread"])
@pytest.mark.parametrize("p", [0.3, 0.5, 0.99])
def test_beta_bernoulli_kl(p: float, form: str) -> None:
    a, b, ones = 2.0, 3.0, np.arange(11)
    worlds, weights = (GRID_WORLDS, beta.pdf(GRID, a, b)) if form == "repeated" else coarse_grid(a, b)
    scores = judge(worlds, np.log([1 - p, p]), asked(10, form), weights)
    log_p = ones * np.log(p) + (10 - ones) * np.log1p(-p)
    log_q = betaln(a + ones, b + 10 - ones) - betaln(a, b)
    tolerance = 1e-6 if form == "repeated" else 1e-3
    assert scores["kl_tau10"].mean == pytest.approx(binom.pmf(ones, 10, p) @ (log_p - log_q), rel=tolerance)
    assert scores["kl_tau10"].mc_bias == scores["kl_tau10"].mc_se == 0  # an enumerated support has no such error


def coarse_grid(a: float, b: float) -> tuple[list[Array], Array]:
    points = (np.arange(200) + 0.5) / 200
    return list(np.log(np.stack([1 - points, points], axis=1))), beta.pdf(points, a, b)


# --- products ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [1, 2, 7])
def test_one_world_however_often_repeated_is_a_product_of_its_marginals(copies: int) -> None:
    random = np.random.default_rng(0)
    logits, truth = random.normal(size=(2, 12, 3))
    family = Tuples("kappa3", 4, np.arange(12).reshape(4, 3), np.array([[4, 0, 0], [2, 1, 1], [0, 3, 1], [2, 2, 0]]))
    question = Question(np.zeros((12, 1)), (family,), np.arange(12)[:, None])
    worlds = np.stack([log_softmax(logits, axis=1)] * copies)
    scores = score(Answers(worlds, exact=True), question, Truth(np.zeros(12, int), log_softmax(truth, axis=1)))
    single = score(Answers(worlds[:1], exact=True), question, Truth(np.zeros(12, int), log_softmax(truth, axis=1)))
    assert scores["dependence_tau4_kappa3"].mean == pytest.approx(0, abs=1e-12)
    for name in scores:
        assert scores[name].mean == pytest.approx(single[name].mean, abs=1e-12), name
