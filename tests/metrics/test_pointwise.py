"""Scores of single predictions against scikit-learn and plain loops, with the conventions at ties and bin edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from calibrant.metrics import score
from calibrant.metrics.pointwise import binned_gap
from calibrant.types import Answers, Array, Question, Scores, Truth

CLASSES = (2, 3)


def judged(logp: Array, labels: Array, truth: Array | None = None, k: int = 1) -> dict[str, Scores]:
    items = logp.shape[1]
    question = Question(np.zeros((items, 1)), (), np.arange(items).reshape(-1, k))
    return score(Answers(logp, exact=True), question, Truth(labels, truth))


def drawn(classes: int, items: int = 60) -> tuple[Array, Array, Array, Array]:
    """Worlds, their mean prediction, true log-probabilities and labels."""
    random = np.random.default_rng(classes)
    logp = log_softmax(2 * random.normal(size=(4, items, classes)), axis=2)
    truth = log_softmax(random.normal(size=(items, classes)), axis=1)
    return logp, np.exp(logp).mean(axis=0), truth, random.integers(classes, size=items)


# --- against scikit-learn ------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", CLASSES)
def test_observed_labels(classes: int) -> None:
    logp, q, _, labels = drawn(classes)
    scores = judged(logp, labels)
    every = list(range(classes))
    assert scores["nll"].mean == pytest.approx(log_loss(labels, q, labels=every))
    assert scores["accuracy"].mean == pytest.approx(accuracy_score(labels, q.argmax(axis=1)))
    # ours sums over classes; for two classes scikit-learn halves that unless told otherwise
    sum_over_classes = brier_score_loss(labels, q if classes > 2 else q[:, 1], labels=every, scale_by_half=False)
    assert scores["brier"].mean == pytest.approx(sum_over_classes)
    assert "kl_tau1" not in scores


@pytest.mark.parametrize("classes", CLASSES)
def test_labels_summed_out(classes: int) -> None:
    """Every item stands once per class, weighted by the true probability of that class."""
    logp, q, truth, labels = drawn(classes)
    scores = judged(logp, labels, truth)
    every = np.tile(np.arange(classes), len(labels))
    p, spread = np.exp(truth).ravel(), np.repeat(q, classes, axis=0)
    expected = log_loss(every, spread, sample_weight=p)
    entropy = -(np.exp(truth) * truth).sum(axis=1).mean()
    assert scores["nll"].mean == pytest.approx(expected)
    assert scores["kl_tau1"].mean == pytest.approx(expected - entropy)
    assert scores["accuracy"].mean == pytest.approx(accuracy_score(every, spread.argmax(axis=1), sample_weight=p))
    column = spread if classes > 2 else spread[:, 1]
    brier = brier_score_loss(every, column, sample_weight=p, labels=list(range(classes)), scale_by_half=False)
    assert scores["brier"].mean == pytest.approx(brier)


def test_marginal_prediction_is_the_mean_probability_over_worlds() -> None:
    logp, _, truth, labels = drawn(3)
    mean = logsumexp(logp, axis=0) - np.log(len(logp))
    spread, averaged = judged(logp, labels, truth), judged(mean[None], labels, truth)
    for name in spread.keys() - {"drawn_kl_tau1"}:  # which draws worlds
        assert spread[name].mean == pytest.approx(averaged[name].mean, rel=1e-12), name


def test_an_item_averages_its_inputs() -> None:
    logp, _, truth, labels = drawn(2)
    single, five = (judged(logp, labels, truth, k) for k in (1, 5))
    for name in ("nll", "kl_tau1", "accuracy", "brier", "ece_expected"):
        assert five[name].mean == pytest.approx(single[name].mean), name
    items, of_inputs = np.asarray(five["nll"].items), np.asarray(single["nll"].items)
    np.testing.assert_allclose(items, of_inputs.reshape(-1, 5).mean(axis=1), rtol=1e-6)
    assert five["nll"].n == 12
    assert five["nll"].se == pytest.approx(items.std(ddof=1) / np.sqrt(12), rel=1e-5)


def test_drawn_labels_are_read_at_the_first_input_of_an_item() -> None:
    logp, q, truth, labels = drawn(2)
    scores, first = judged(logp, labels, truth, 5), np.arange(0, 60, 5)
    assert scores["hit_rate"].mean == pytest.approx(accuracy_score(labels[first], q[first].argmax(axis=1)))
    assert scores["confidence"].mean == pytest.approx(q[first].max(axis=1).mean())
    assert scores["ece"].mean == pytest.approx(looped_gap(q[first].max(axis=1), labels[first] == q[first].argmax(1)))


# --- calibration ---------------------------------------------------------------------------------------


def looped_gap(top: Array, hit: Array) -> float:
    """Expected calibration error as it is defined: bins [i/10, (i+1)/10), the last one closed."""
    total = 0.0
    for i in range(10):
        inside = [j for j, c in enumerate(top) if i / 10 <= c < (i + 1) / 10 or (i == 9 and c == 1.0)]
        if inside:
            accuracy = sum(float(hit[j]) for j in inside) / len(inside)
            confidence = sum(float(top[j]) for j in inside) / len(inside)
            total += len(inside) / len(top) * abs(accuracy - confidence)
    return total


@pytest.mark.parametrize("classes", [2, 3, 12])
def test_ece_against_a_plain_loop(classes: int) -> None:
    logp, q, truth, labels = drawn(classes, 500)
    scores = judged(logp, labels, truth)
    top, chosen = q.max(axis=1), q.argmax(axis=1)
    assert scores["ece"].mean == pytest.approx(looped_gap(top, chosen == labels))
    assert scores["ece_expected"].mean == pytest.approx(looped_gap(top, np.exp(truth)[np.arange(500), chosen]))
    assert scores["ece"].n == 500


def test_bins_at_their_edges() -> None:
    edges = np.arange(1, 11) / 10
    for hit in (np.zeros(10), np.ones(10), np.arange(10) % 2):
        assert binned_gap(edges, hit) == pytest.approx(looped_gap(edges, hit))
    # 0.5 belongs to the bin above it: with 0.55 it is one bin, whose gaps cancel; with 0.45 it would be two
    assert binned_gap(np.array([0.5, 0.55]), np.array([0.0, 1.0])) == pytest.approx(abs(1 - 1.05) / 2)
    assert binned_gap(np.array([0.5, 0.45]), np.array([0.0, 1.0])) == pytest.approx((0.5 + 0.55) / 2)


def test_certainty_falls_into_the_last_bin() -> None:
    sure = log_softmax(np.array([[[1e3, 0.0]] * 4]), axis=2)
    assert np.exp(sure).max() == 1.0
    assert judged(sure, np.array([0, 0, 0, 1]))["ece"].mean == pytest.approx(0.25)
    # one bin with 0.95, so that their gaps cancel
    assert binned_gap(np.array([1.0, 0.95]), np.array([0.0, 1.0])) == pytest.approx(abs(1 - 1.95) / 2)


@pytest.mark.parametrize("classes", [2, 4])
def test_tied_classes_share(classes: int) -> None:
    """An undecided belief is right one time in `classes`, whatever the labels, not as often as class 0 occurs."""
    flat = np.full((1, 20, classes), -np.log(classes))
    for labels in (np.zeros(20, int), np.full(20, classes - 1)):
        scores = judged(flat, labels)
        assert scores["accuracy"].mean == pytest.approx(1 / classes)
        assert scores["hit_rate"].mean == pytest.approx(1 / classes)
        assert scores["ece"].mean == pytest.approx(0, abs=1e-12)
    tied = np.log(np.array([[[0.4, 0.4, 0.2]] * 2]))
    assert judged(tied, np.array([0, 2]))["accuracy"].mean == pytest.approx(0.25)
