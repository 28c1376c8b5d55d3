"""Laws that any belief's scores obey, on beliefs that Hypothesis makes up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import log_softmax

from calibrant.metrics import catalogue, score
from calibrant.metrics.catalogue import _kl
from calibrant.metrics.reading import Reading
from calibrant.types import Answers, Array, Question, Scores, Truth, Tuples

INPUTS = 6
FAMILIES = (
    Tuples("", 3, np.arange(6).reshape(2, 3), np.ones((2, 3), int)),
    Tuples("dyadic", 4, np.arange(6).reshape(3, 2), np.array([[4, 0], [1, 3], [2, 2]])),
)
QUESTION = Question(np.zeros((INPUTS, 1)), FAMILIES, np.arange(INPUTS).reshape(3, 2))
FAMILY_NAMES = ("tau3", "tau4_dyadic")
ROUNDING = 1e-9
JUMPING = {"accuracy", "hit_rate", "ece", "ece_expected"}


@dataclass(frozen=True)
class Case:
    answers: Answers
    truth: Truth

    def scores(self, question: Question = QUESTION) -> dict[str, Scores]:
        """Without the original's estimator, which draws labels and worlds and so keeps none of these laws."""
        scores = score(self.answers, question, self.truth)
        return {name: one for name, one in scores.items() if not name.startswith("drawn_")}

    @property
    def at_a_jump(self) -> bool:
        """Some prediction is within rounding of a tie or of the edge of a calibration bin."""
        q = np.sort(np.average(np.exp(self.answers.logp), axis=0, weights=self.answers.weights), axis=1)
        to_edge = np.abs(10 * q[:, -1] - np.minimum(np.round(10 * q[:, -1]), 9))  # 1.0 is no edge
        return bool((q[:, -1] - q[:, -2]).min() < ROUNDING or to_edge.min() < ROUNDING)


@st.composite
def cases(draw: st.DrawFn, weighted: bool = True, known: bool = True) -> Case:
    """Small beliefs with logits up to 30, some of them equal; labels, and the true law when `known`."""
    classes, worlds = draw(st.integers(2, 3)), draw(st.integers(1, 4))
    logit = st.floats(-30, 30, width=32)
    logits = draw(hnp.arrays(np.float64, (worlds, INPUTS, classes), elements=logit))
    true = draw(hnp.arrays(np.float64, (INPUTS, classes), elements=logit)) if known else None
    labels = draw(hnp.arrays(np.int64, INPUTS, elements=st.integers(0, classes - 1)))
    weights = draw(hnp.arrays(np.float64, worlds, elements=st.floats(0.01, 1))) if weighted else None
    truth = Truth(labels, None if true is None else log_softmax(true, axis=1))
    return Case(Answers(log_softmax(logits, axis=2), weights, exact=True), truth)


ANY = st.booleans().flatmap(lambda known: cases(known=known))
law = settings(max_examples=40, deadline=None)


def same(one: Case, two: Case, question: Question = QUESTION) -> None:
    """Equal scores, but for those that jump when rounding breaks a tie or crosses the edge of a bin."""
    ours, others = one.scores(), two.scores(question)
    assert ours.keys() == others.keys()
    for name in ours.keys() - (JUMPING if one.at_a_jump else set()):
        assert ours[name].mean == pytest.approx(others[name].mean, rel=ROUNDING, abs=ROUNDING), name
        assert ours[name].se == pytest.approx(others[name].se, rel=1e-6, abs=1e-6), name


def with_worlds(case: Case, index: Array) -> Case:
    weights = None if case.answers.weights is None else case.answers.weights[index]
    return replace(case, answers=replace(case.answers, logp=case.answers.logp[index], weights=weights))


# --- what may be reordered -----------------------------------------------------------------------------


@law
@given(ANY, st.permutations(range(3)), st.permutations(range(2)))
def test_order_of_items(case: Case, three: list[int], two: list[int]) -> None:
    families = tuple(
        replace(family, anchors=family.anchors[order], repeats=family.repeats[order])
        for family, order in zip(FAMILIES, (two, three), strict=True)
    )
    same(case, case, replace(QUESTION, tuples=families, marginal=QUESTION.marginal[three]))


@law
@given(ANY, st.permutations(range(INPUTS)))
def test_order_of_inputs(case: Case, order: list[int]) -> None:
    """The rows of `x` are only names: asking the same inputs under other names changes nothing."""
    index = np.array(order)
    place = np.argsort(index)
    families = tuple(replace(family, anchors=place[family.anchors]) for family in FAMILIES)
    renamed = Case(
        replace(case.answers, logp=case.answers.logp[:, index]),
        Truth(case.truth.labels[index], None if case.truth.logp is None else case.truth.logp[index]),
    )
    same(case, renamed, replace(QUESTION, tuples=families, marginal=place[QUESTION.marginal]))


@law
@given(ANY, st.data())
def test_order_of_anchors_within_a_tuple(case: Case, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(3)))
    families = (
        replace(FAMILIES[0], anchors=FAMILIES[0].anchors[:, order], repeats=FAMILIES[0].repeats[:, order]),
        replace(FAMILIES[1], anchors=FAMILIES[1].anchors[:, ::-1], repeats=FAMILIES[1].repeats[:, ::-1]),
    )
    same(case, case, replace(QUESTION, tuples=families))


@law
@given(ANY, st.data())
def test_order_of_worlds(case: Case, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(case.answers.logp))))
    same(case, with_worlds(case, np.array(order)))


@law
@given(ANY)
def test_order_of_classes(case: Case) -> None:
    turned = Case(
        replace(case.answers, logp=case.answers.logp[..., ::-1]),
        Truth(
            case.answers.logp.shape[2] - 1 - case.truth.labels,
            None if case.truth.logp is None else case.truth.logp[:, ::-1],
        ),
    )
    same(case, turned)


# --- what worlds and weights mean ------------------------------------------------------------------------


@law
@given(ANY, st.integers(2, 3))
def test_repeating_every_world_changes_nothing(case: Case, times: int) -> None:
    index = np.tile(np.arange(len(case.answers.logp)), times)
    same(case, with_worlds(case, index))


@law
@given(cases(weighted=False), st.data())
def test_a_weight_is_a_number_of_copies(case: Case, data: st.DataObject) -> None:
    worlds = len(case.answers.logp)
    copies = data.draw(hnp.arrays(np.int64, worlds, elements=st.integers(1, 3)))
    weighted = replace(case, answers=replace(case.answers, weights=copies.astype(float)))
    same(weighted, with_worlds(case, np.repeat(np.arange(worlds), copies)))


@law
@given(ANY, st.floats(1e-6, 1e6))
def test_only_ratios_of_weights_matter(case: Case, factor: float) -> None:
    assert case.answers.weights is not None
    same(case, replace(case, answers=replace(case.answers, weights=factor * case.answers.weights)))


@law
@given(ANY)
def test_a_world_without_weight_is_no_world(case: Case) -> None:
    assert case.answers.weights is not None
    extra = replace(
        case.answers,
        logp=np.concatenate([case.answers.logp, case.answers.logp[:1, ::-1]]),
        weights=np.append(case.answers.weights, 0.0),
    )
    same(case, replace(case, answers=extra))


# --- how scores hang together ----------------------------------------------------------------------------


@law
@given(ANY)
def test_parts_add_up(case: Case) -> None:
    scores = case.scores()
    for family, name in zip(FAMILIES, FAMILY_NAMES, strict=True):
        joint, whole = scores[f"joint_nll_{name}"].mean, scores[f"marginal_{name}"].mean
        whole += scores[f"dependence_{name}"].mean
        if case.truth.logp is None:
            assert joint == pytest.approx(whole, rel=ROUNDING, abs=ROUNDING)
        else:
            entropy = -(np.exp(case.truth.logp) * case.truth.logp).sum(axis=1)
            of_tuples = (entropy[family.anchors] * family.repeats).sum(axis=1).mean()
            assert scores[f"kl_{name}"].mean == pytest.approx(whole, rel=ROUNDING, abs=ROUNDING)
            assert joint == pytest.approx(scores[f"kl_{name}"].mean + of_tuples, rel=ROUNDING, abs=ROUNDING)


@law
@given(cases())
def test_tuples_of_one_input_are_single_predictions(case: Case) -> None:
    single = Tuples("", 1, np.arange(INPUTS)[:, None], np.ones((INPUTS, 1), int))
    question = replace(QUESTION, tuples=(single,), marginal=np.arange(INPUTS)[:, None])
    reading = Reading(case.answers, question, case.truth)
    joint = _kl(reading, 0)
    assert joint is not None
    alone = case.scores(question)["kl_tau1"]
    np.testing.assert_allclose(np.asarray(joint.items), np.asarray(alone.items), rtol=1e-5, atol=ROUNDING)
    assert joint.mean == pytest.approx(alone.mean, rel=ROUNDING, abs=ROUNDING)


@law
@given(cases(weighted=False))
def test_sampled_beliefs_have_the_mean_of_enumerated_ones(case: Case) -> None:
    """Whether worlds are all there are changes the stated error, never the score."""
    sampled = replace(case, answers=replace(case.answers, exact=False))
    same(case, sampled)


# --- the truth wins --------------------------------------------------------------------------------------

LOSSES = ("kl_tau1", "nll", "brier", *(f"{part}_{name}" for part in ("kl", "joint_nll") for name in FAMILY_NAMES))


def oracle(case: Case) -> Case:
    assert case.truth.logp is not None
    return replace(case, answers=Answers(case.truth.logp[None], exact=True))


@law
@given(cases(), st.integers(1, 3))
def test_the_true_law_has_no_divergence_from_itself(case: Case, copies: int) -> None:
    scores = with_worlds(oracle(case), np.zeros(copies, int)).scores()
    for name, value in scores.items():
        if name.startswith(("kl", "dependence", "marginal")):
            assert value.mean == pytest.approx(0, abs=1e-12), name
    assert scores["ece_expected"].mean == pytest.approx(0, abs=1e-6)


@law
@given(cases())
def test_no_belief_beats_the_truth(case: Case) -> None:
    ours, best = case.scores(), oracle(case).scores()
    for name in LOSSES:
        assert ours[name].mean >= best[name].mean - 1e-12, name
        assert not name.startswith("kl") or np.asarray(ours[name].items).min() >= -1e-12, name
    assert ours["accuracy"].mean <= best["accuracy"].mean + 1e-12


@law
@given(cases(weighted=False))
def test_a_belief_that_differs_loses_strictly(case: Case) -> None:
    """Propriety is strict. The tuples ask every input, so a difference anywhere costs something everywhere."""
    assert case.truth.logp is not None
    assume(np.abs(np.exp(case.answers.logp).mean(axis=0) - np.exp(case.truth.logp)).max() > 1e-3)
    ours, best = case.scores(), oracle(case).scores()
    for name in LOSSES:
        if not name.endswith("dyadic"):  # one dyad leaves an anchor unasked
            assert ours[name].mean > best[name].mean + 1e-8, name


def test_no_metric_is_left_out_of_these_laws() -> None:
    case = Case(Answers(np.log(np.full((2, INPUTS, 2), 0.5)), None, True), Truth(np.zeros(INPUTS, int)))
    known = replace(case, truth=Truth(case.truth.labels, case.answers.logp[0]))
    single = {metric.name for metric in catalogue() if not metric.joint} - {"aggregate", "drawn_kl_tau1"}
    assert single <= known.scores().keys()
    assert single - case.scores().keys() == {"kl_tau1"}
