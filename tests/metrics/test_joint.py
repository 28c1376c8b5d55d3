"""Joint scores against enumeration of every labelling, one by one; labels drawn, labels observed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from calibrant.metrics import joint, score
from calibrant.metrics.logspace import group_worlds
from calibrant.metrics.reading import Reading
from calibrant.problems import testbed
from calibrant.problems.tuples import iid_tuples, polyadic_tuples
from calibrant.seeds import Stream
from calibrant.types import Answers, Array, Instance, Question, Truth, Tuples


def labellings(classes: int, tau: int) -> Array:
    return np.array(list(itertools.product(range(classes), repeat=tau)))


def places(family: Tuples, row: int) -> Array:
    return np.repeat(family.anchors[row], family.repeats[row])


def by_hand(logp: Array, weights: Array, truth: Array, family: Tuples) -> Array:
    """KL of every tuple [n] by summing over all classes**tau labellings in log space."""
    kl = []
    for row in range(len(family.anchors)):
        at = places(family, row)
        y = labellings(logp.shape[2], len(at))
        log_q = logsumexp(logp[:, at, y].sum(axis=2), b=weights[:, None] / weights.sum(), axis=0)
        log_p = truth[at, y].sum(axis=1)
        kl.append((np.exp(log_p) * (log_p - log_q)).sum())
    return np.array(kl)


def drawn(seed: int, worlds: int, inputs: int, classes: int, scale: float = 2.0) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    logp = log_softmax(scale * random.normal(size=(worlds, inputs, classes)), axis=2)
    truth = log_softmax(scale * random.normal(size=(inputs, classes)), axis=1)
    return logp, random.uniform(0.1, 1, worlds), truth


def ask(families: tuple[Tuples, ...], inputs: int) -> Question:
    return Question(np.zeros((inputs, 1)), families, np.arange(inputs)[:, None])


# --- labels summed out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kappa", [1, 2, 3])
@pytest.mark.parametrize("exact", [True, False])
def test_polyadic_tuples_against_all_labellings(classes: int, kappa: int, exact: bool) -> None:
    logp, weights, truth = drawn(kappa + 10 * classes, 12, 5 * kappa, classes)
    family = polyadic_tuples(Stream("test", kappa), 5, 5, kappa)
    scores = score(Answers(logp, weights, exact), ask((family,), 5 * kappa), Truth(np.zeros(5 * kappa, int), truth))
    expected = by_hand(logp, weights, truth, family)
    np.testing.assert_allclose(np.asarray(scores[f"kl_tau5_{family.name}"].items), expected, rtol=1e-5)
    assert scores[f"kl_tau5_{family.name}"].mean == pytest.approx(expected.mean(), rel=1e-10)


@pytest.mark.parametrize(("classes", "tau"), [(2, 1), (2, 2), (2, 7), (3, 4), (5, 2)])
def test_iid_tuples_against_all_labellings(classes: int, tau: int) -> None:
    logp, _, truth = drawn(tau, 6, 3 * tau, classes)
    family = iid_tuples(3, tau, tau)
    reading = Reading(Answers(logp, exact=True), ask((family,), 3 * tau), Truth(np.zeros(3 * tau, int), truth))
    np.testing.assert_allclose(reading.joint(0).kl, by_hand(logp, np.ones(6), truth, family), rtol=1e-10)


def test_leaving_groups_of_worlds_out() -> None:
    """Eleven worlds make ten groups; each is left out in turn, weights and all."""
    logp, weights, truth = drawn(3, 11, 8, 2)
    family = polyadic_tuples(Stream("left out"), 4, 6, 2)
    answers = Answers(logp, weights)
    groups = group_worlds(answers)
    reading = Reading(answers, ask((family,), 8), Truth(np.zeros(8, int), truth))
    for group in range(groups.count):
        others = np.ones(11, bool)
        others[groups.members(group)] = False
        expected = by_hand(logp[others], weights[others], truth, family).mean()
        assert reading.joint(0).kl_left_out[group] == pytest.approx(expected, rel=1e-10)


def test_working_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    logp, weights, truth = drawn(4, 20, 30, 3)
    question = ask((polyadic_tuples(Stream("memory"), 10, 4, 3), iid_tuples(10, 3, 3)), 30)

    def scores() -> dict[str, float]:
        values = score(Answers(logp, weights), question, Truth(np.zeros(30, int), truth))
        return {name: value.mean for name, value in values.items()}

    roomy = scores()
    monkeypatch.setattr(joint, "BYTES", 1.0)
    assert scores() == pytest.approx(roomy, rel=1e-12)


# --- labels drawn --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("classes", "tau", "kappa"), [(2, 10, None), (2, 10, 2), (3, 5, 3)])
def test_drawn_labels_are_unbiased(classes: int, tau: int, kappa: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One tuple asked 2000 times, 64 labellings each. False-alarm rate 1e-6 per case (4.9 standard errors)."""
    inputs = kappa or tau
    logp, weights, truth = drawn(tau + inputs, 8, inputs, classes)
    one = polyadic_tuples(Stream("drawn"), 1, tau, kappa) if kappa else iid_tuples(1, tau, tau)
    family = Tuples(one.name, tau, np.tile(one.anchors, (2000, 1)), np.tile(one.repeats, (2000, 1)))
    exact = by_hand(logp, weights, truth, one)[0]
    monkeypatch.setattr(joint, "ENUMERATE", 1)
    reading = Reading(Answers(logp, weights), ask((family,), inputs), Truth(np.zeros(inputs, int), truth))
    kl = reading.joint(0).kl
    assert kl.std() > 0  # labels were drawn indeed
    assert abs(kl.mean() - exact) < 4.9 * kl.std(ddof=1) / np.sqrt(len(kl))


def test_drawn_labels_leave_out_the_same_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """False-alarm rate 1e-5: ten groups at 4.9 standard errors of the label noise."""
    logp, weights, truth = drawn(5, 10, 4, 2)
    family = Tuples("", 4, np.tile(np.arange(4), (4000, 1)), np.ones((4000, 4), int))
    answers, question, true = Answers(logp, weights), ask((family,), 4), Truth(np.zeros(4, int), truth)
    exact = Reading(answers, question, true).joint(0)
    monkeypatch.setattr(joint, "ENUMERATE", 1)
    sampled = Reading(answers, question, true).joint(0)
    noise = sampled.kl.std(ddof=1) / np.sqrt(len(sampled.kl))
    np.testing.assert_allclose(sampled.kl_left_out, exact.kl_left_out, atol=2 * 4.9 * noise)


def test_the_arithmetic_of_drawn_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the very labellings: the marginal part in closed form, plus the mean of log prod q - log Q over them."""
    logp, weights, truth = drawn(9, 10, 3, 3)
    family = Tuples("odd", 5, np.array([[0, 1, 2]]), np.array([[3, 0, 2]]))
    reading = Reading(Answers(logp, weights), ask((family,), 3), Truth(np.zeros(3, int), truth), key="known")
    monkeypatch.setattr(joint, "ENUMERATE", 1)
    found = reading.joint(0).kl[0]
    at = [0, 2]
    counts = joint.draw_counts(Stream("known", "labels", "odd", 5), np.exp(truth[at])[None], (3, 2))[0]
    counts = counts.reshape(joint.DRAWS, 2, 3)
    np.testing.assert_array_equal(counts.sum(axis=2), np.tile([3, 2], (joint.DRAWS, 1)))
    share = weights / weights.sum()
    logq = logsumexp(logp, b=share[:, None, None], axis=0)
    marginal = np.array([3, 0, 2]) @ (np.exp(truth) * (truth - logq)).sum(axis=1)
    log_q = logsumexp(np.einsum("wac,dac->wd", logp[:, at], counts), b=share[:, None], axis=0)
    dependence = np.einsum("ac,dac->d", logq[at], counts) - log_q
    assert found == pytest.approx(marginal + dependence.mean(), rel=1e-12)


@pytest.mark.parametrize("temp", [0.01, 0.1, 0.5])
def test_only_the_dependence_part_is_noisy(temp: float) -> None:
    """The variance over labellings, exact by enumeration, against that of the naive log P(y) - log Q(y).

    Worlds are testbed networks that agree with the truth as a trained ensemble does: shared error, own error.
    """
    instance = testbed.Testbed(temp=temp, tuples=30, kappa=()).sample(0)
    logp = imagined(instance)
    truth, family = np.asarray(instance.truth.logp), instance.question.tuples[1]
    logq = logsumexp(logp, axis=0) - np.log(len(logp))
    y = labellings(2, 10)
    naive, ours = [], []
    for at in family.anchors:
        log_p, product = truth[at, y].sum(axis=1), logq[at, y].sum(axis=1)
        log_q = logsumexp(logp[:, at, y].sum(axis=2), axis=0) - np.log(len(logp))
        p = np.exp(log_p)
        naive.append(variance(p, log_p - log_q))
        ours.append(variance(p, product - log_q))
    assert np.mean(naive) > 2 * np.mean(ours)


def imagined(instance: Instance) -> Array:
    """Logits of the truth, plus an error that all worlds share, plus one of each world's own."""
    spec = testbed.Testbed(tuples=2)
    errors = [spec.sample(seed).environment(instance.question.x) for seed in range(1, 32)]
    truth = instance.environment(instance.question.x)
    return log_softmax(np.stack([0.7 * truth + 0.2 * errors[0] + 0.2 * error for error in errors[1:]]), axis=2)


def variance(p: Array, values: Array) -> float:
    return float(p @ values**2 - (p @ values) ** 2)


def test_drawn_labels_come_from_the_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "ENUMERATE", 1)
    logp, weights, truth = drawn(6, 5, 6, 2)
    question, true = ask((iid_tuples(2, 3, 3),), 6), Truth(np.zeros(6, int), truth)
    first, same, other = (score(Answers(logp, weights), question, true, key)["kl_tau3"].mean for key in ("a", "a", "b"))
    assert first == same != other


# --- labels observed -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [1, 2, 3])
def test_observed_labels_are_repeated_with_their_anchor(kappa: int) -> None:
    logp, weights, _ = drawn(7, 9, 4 * kappa, 3)
    labels = np.random.default_rng(8).integers(3, size=4 * kappa)
    family = polyadic_tuples(Stream("observed", kappa), 4, 6, kappa)
    scores = score(Answers(logp, weights), ask((family,), 4 * kappa), Truth(labels))
    expected = []
    for row in range(4):
        at = places(family, row)
        expected.append(-logsumexp(logp[:, at, labels[at]].sum(axis=1), b=weights / weights.sum()))
    name = f"tau6_{family.name}"
    np.testing.assert_allclose(np.asarray(scores[f"joint_nll_{name}"].items), expected, rtol=1e-5)
    assert not [name for name in scores if name.startswith("kl")]
    total = scores[f"marginal_{name}"].mean + scores[f"dependence_{name}"].mean
    assert total == pytest.approx(scores[f"joint_nll_{name}"].mean, rel=1e-12)
