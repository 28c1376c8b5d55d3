"""Averages in log space against SciPy, and what the jackknife says of the error of finitely many worlds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_expit, logsumexp

from calibrant.metrics import logspace, score
from calibrant.types import Answers, Array, Question, Scores, Truth, Tuples

TAU = 10


def test_logsumexp_against_scipy() -> None:
    random = np.random.default_rng(0)
    for scale in (1.0, 1e2, 1e5):
        values = scale * random.normal(size=(7, 5))
        np.testing.assert_allclose(logspace.logsumexp(values), logsumexp(values, axis=0), rtol=1e-14)
    assert logspace.logsumexp(np.full((3, 2), -np.inf)).tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("worlds", [2, 3, 10, 23])
def test_groups_cover_all_worlds_once(worlds: int) -> None:
    groups = logspace.group_worlds(Answers(np.zeros((worlds, 1, 2)), np.arange(1.0, worlds + 1)))
    sizes = np.diff(groups.bounds)
    assert groups.count == min(worlds, logspace.GROUPS)
    assert groups.bounds[0] == 0
    assert groups.bounds[-1] == worlds
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1
    assert groups.share.sum() == pytest.approx(1)
    parts = [groups.weights[groups.members(group)].sum() for group in range(groups.count)]
    np.testing.assert_allclose(groups.share, parts)


@pytest.mark.parametrize(("answers", "why"), [
    (Answers(np.zeros((50, 1, 2)), exact=True), "the whole support is enumerated"),
    (Answers(np.zeros((1, 1, 2))), "one world has no spread"),
])  # fmt: skip
def test_nothing_is_left_out_when_nothing_is_left_to_chance(answers: Answers, why: str) -> None:
    groups = logspace.group_worlds(answers)
    assert (groups.count, groups.jackknife) == (1, False), why


def test_group_sums_and_left_out_means_against_scipy() -> None:
    random = np.random.default_rng(1)
    values, weights = 30 * random.normal(size=(17, 4)), random.uniform(size=17)
    weights[5] = 0  # a world without weight counts for nothing
    groups = logspace.group_worlds(Answers(np.zeros((17, 1, 2)), weights))
    full, left_out = logspace.full_and_left_out(logspace.log_group_sums(values, groups), groups)
    np.testing.assert_allclose(full, logsumexp(values, b=weights[:, None] / weights.sum(), axis=0))
    for group in range(groups.count):
        keep = np.delete(np.arange(17), groups.members(group))
        share = weights[keep] / weights[keep].sum()
        np.testing.assert_allclose(left_out[group], logsumexp(values[keep], b=share[:, None], axis=0))


def test_jackknife_of_a_mean_is_the_textbook_standard_error() -> None:
    values = np.random.default_rng(2).normal(size=10)
    left_out = (values.sum() - values) / 9
    summary = logspace.summarise(np.array([values.mean()]), left_out)
    assert summary.mc_bias == pytest.approx(0, abs=1e-14)
    assert summary.mc_se == pytest.approx(values.std(ddof=1) / np.sqrt(10))
    assert summary.se == 0


# --- the Monte-Carlo error of the joint log-likelihood ---------------------------------------------------
# Worlds with independent Gaussian logit gaps: every label has probability 1/2, so the true joint likelihood of ten
# labels is 2^-10, and whatever the score says beyond 10 log 2 is its bias.


def gaussian_worlds(seed: int, scale: float, worlds: int, tuples: int) -> Scores:
    """Joint NLL of `tuples` tuples at inputs whose logit gaps are independent normals of the given scale."""
    gap = scale * np.random.default_rng(seed).standard_normal((worlds, tuples * TAU))
    logp = np.stack([log_expit(gap), log_expit(-gap)], axis=2)
    family = Tuples("", TAU, np.arange(tuples * TAU).reshape(tuples, TAU), np.ones((tuples, TAU), int))
    question = Question(np.zeros((tuples * TAU, 1)), (family,), np.zeros((1, 1), int))
    return score(Answers(logp), question, Truth(np.zeros(tuples * TAU, int)))["joint_nll_tau10"]


def biases(scale: float, worlds: int, tuples: int, rounds: int) -> tuple[float, float, float]:
    """The true bias, its standard error, and the mean of the jackknife's estimates."""
    scores = [gaussian_worlds(seed, scale, worlds, tuples) for seed in range(rounds)]
    items = np.concatenate([s.items for s in scores]).astype(np.float64) - TAU * np.log(2)
    return items.mean(), items.std() / np.sqrt(len(items)), float(np.mean([s.mc_bias for s in scores]))


def test_bias_at_logit_scale_3_is_estimated_well() -> None:
    """The reference value 0.033 at 1000 worlds, and the jackknife's own: false-alarm rate 1e-6 each.

    Five simulations of the estimate gave 0.035 with a standard deviation of 0.001; the band is 5 of them.
    """
    true, error, estimated = biases(3.0, 1000, 150, 8)
    assert abs(true - 0.033) < 4.9 * error
    assert abs(estimated - true) < 4.9 * error
    assert 0.03 < estimated < 0.04


def test_bias_at_logit_scale_10_is_estimated_in_sign_and_order() -> None:
    """The reference value is 0.28; rare worlds carry the mean, so the jackknife is only roughly right there.

    False-alarm rate 1e-6 for the true bias. Eight simulations of the estimate gave 0.313 with a standard deviation of
    0.014; the band is 5 of them.
    """
    true, error, estimated = biases(10.0, 1000, 150, 3)
    assert abs(true - 0.28) < 4.9 * error
    assert 0.24 < estimated < 0.39


def test_corrected_scores_are_covered_by_their_error() -> None:
    """200 beliefs of 300 worlds: at a true coverage of 0.95 fewer than 180 hits have chance < 2e-3; t on 9 df."""
    hits = 0
    for seed in range(200):
        s = gaussian_worlds(1000 + seed, 1.0, 300, 5)
        hits += abs(s.mean - s.mc_bias - TAU * np.log(2)) < 2.262 * s.mc_se
    assert hits >= 180


def test_enumerated_beliefs_claim_no_error() -> None:
    values: Array = np.log(np.full((4, 3, 2), 0.5))
    question = Question(
        np.zeros((3, 1)), (Tuples("", 3, np.arange(3)[None], np.ones((1, 3), int)),), np.zeros((1, 1), int)
    )
    for name, s in score(Answers(values, exact=True), question, Truth(np.zeros(3, int), values[0])).items():
        assert s.mc_bias == s.mc_se == 0, name
