"""The catalogue: what is scored, under which names, by which convention."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import weakref

import numpy as np
import pytest

from calibrant.metrics import catalogue, score, versions
from calibrant.metrics.catalogue import Metric
from calibrant.problems import testbed
from calibrant.types import Answers, Question, Truth, Tuples

SINGLE = {"kl_tau1", "nll", "accuracy", "brier", "ece", "ece_expected", "confidence", "hit_rate", "aggregate"}
SINGLE |= {"drawn_kl_tau1"}
JOINT = {"kl", "joint_nll", "marginal", "dependence"}


def test_every_metric_says_what_it_is() -> None:
    names = [metric.name for metric in catalogue()]
    assert len(set(names)) == len(names)
    for metric in catalogue():
        assert metric.version >= 1
        assert metric.better in ("lower", "higher")
        assert len(metric.convention.split()) >= 3
        assert metric.joint == ("{}" in metric.name)


def test_a_new_metric_makes_no_cell_stale_and_a_changed_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    before = versions()
    module = importlib.import_module("calibrant.metrics.catalogue")
    first = Metric("novelty", 1, "lower", "a metric that is new", lambda reading: None)
    monkeypatch.setattr(module, "OWN", (*module.OWN, first))
    monkeypatch.setattr(module, "catalogue", lambda: module.OWN)
    assert versions() == before
    second = dataclasses.replace(first, version=2)
    monkeypatch.setattr(module, "OWN", (*module.OWN, second))
    assert versions() == before | {"novelty": 2}
    installed = dataclasses.replace(first, name="installed")
    monkeypatch.setattr(module, "catalogue", lambda: (*module.OWN, installed))
    assert versions() == before | {"novelty": 2, "installed": 1}


def test_names_for_the_default_testbed_question() -> None:
    instance = testbed.Testbed(tuples=4).sample(0)
    assert [(f.name, f.tau) for f in instance.question.tuples] == [("", 1), ("", 10), ("dyadic", 10)]
    scores = score(Answers(np.asarray(instance.truth.logp)[None], exact=True), instance.question, instance.truth)
    joint = {f"{part}_{name}" for part in JOINT for name in ("tau10", "tau10_dyadic")}
    assert scores.keys() == SINGLE | joint | {"drawn_kl_tau10"}


def test_names_follow_the_question() -> None:
    families = (
        Tuples("", 2, np.zeros((1, 2), int), np.ones((1, 2), int)),
        Tuples("kappa3", 5, np.zeros((1, 3), int), np.array([[1, 2, 2]])),
    )
    flat = np.log(np.full((1, 1, 2), 0.5))
    question = Question(np.zeros((1, 1)), families, np.zeros((1, 1), int))
    known = score(Answers(flat), question, Truth(np.zeros(1, int), flat[0]))
    joint = {f"{part}_{f}" for part in JOINT for f in ("tau2", "tau5_kappa3")}
    assert known.keys() == SINGLE - {"aggregate"} | joint | {"drawn_kl_tau2"}
    observed = score(Answers(flat), question, Truth(np.zeros(1, int)))
    assert known.keys() - observed.keys() == {"kl_tau1", "kl_tau2", "kl_tau5_kappa3", "drawn_kl_tau1", "drawn_kl_tau2"}


def test_aggregate_is_what_the_testbed_tunes_for() -> None:
    instance = testbed.Testbed(tuples=20).sample(1)
    truth = np.asarray(instance.truth.logp)
    noisy = truth + np.random.default_rng(0).normal(size=(12, *truth.shape))
    noisy -= np.logaddexp(noisy[..., :1], noisy[..., 1:])
    scores = score(Answers(noisy), instance.question, instance.truth)
    one, ten, both = scores["kl_tau1"], scores["kl_tau10"], scores["aggregate"]
    for part in ("mean", "se", "mc_bias", "mc_se"):
        assert getattr(both, part) == pytest.approx(getattr(one, part) + getattr(ten, part) / 10), part


def test_items_are_kept_where_the_rest_follows_from_them() -> None:
    instance = testbed.Testbed(tuples=6).sample(2)
    logp = np.stack([np.asarray(instance.truth.logp)] * 2)
    for name, value in score(Answers(logp), instance.question, instance.truth).items():
        if value.items is not None:
            assert value.items.dtype == np.float32, name
            assert value.items.shape == (value.n,), name
            assert value.items.mean() == pytest.approx(value.mean, rel=1e-4, abs=1e-6), name


def test_answers_are_let_go_once_they_are_scored() -> None:
    instance = testbed.Testbed(tuples=20).sample(0)
    logp = np.log(np.full((5, len(instance.question.x), 2), 0.5))
    alive = weakref.ref(logp)
    score(Answers(logp), instance.question, instance.truth)
    del logp
    gc.collect()
    assert alive() is None
