"""Every metric by name: its version, direction and convention, and the function that computes it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Literal

from calibrant.metrics import drawn, pointwise, regret
from calibrant.metrics.logspace import summarise
from calibrant.metrics.reading import Reading
from calibrant.types import Answers, Question, Scores, Truth, Tuples


@dataclass(frozen=True)
class Metric:
    """A score of single predictions, or, when `joint`, one score per family of tuples (`{}` is `tau10_dyadic`)."""

    name: str
    version: int
    better: Literal["lower", "higher"]
    convention: str
    compute: Callable[..., Scores | None]
    joint: bool = False

    def __call__(self, reading: Reading | regret.Course) -> dict[str, Scores]:
        if not self.joint:
            score = self.compute(reading)
            return {} if score is None else {self.name: score}
        assert isinstance(reading, Reading)
        families = enumerate(reading.question.tuples)
        scores = {self.name.format(suffix(f)): self.compute(reading, i) for i, f in families if f.tau > 1}
        return {name: score for name, score in scores.items() if score is not None}


def suffix(family: Tuples) -> str:
    return f"tau{family.tau}" + (f"_{family.name}" if family.name else "")


def _kl(reading: Reading, family: int) -> Scores | None:
    parts = reading.joint(family)
    return None if reading.truth.logp is None else summarise(parts.kl, parts.kl_left_out)


def _joint_nll(reading: Reading, family: int) -> Scores:
    parts = reading.joint(family)
    return summarise(parts.kl + parts.entropy, parts.kl_left_out + parts.entropy.mean())


def _marginal(reading: Reading, family: int) -> Scores:
    parts = reading.joint(family)
    return summarise(parts.marginal, keep=bool(reading.question.tuples[family].name))


def _dependence(reading: Reading, family: int) -> Scores:
    parts = reading.joint(family)
    return summarise(parts.kl - parts.marginal, parts.kl_left_out - parts.marginal.mean(), keep=False)


def _aggregate(reading: Reading) -> Scores | None:
    """d1 + d10 / 10; errors are added as if fully correlated, which bounds them from above."""
    ten = next((i for i, f in enumerate(reading.question.tuples) if suffix(f) == "tau10"), None)
    if ten is None or (one := pointwise.kl_tau1(reading)) is None or (joint := _kl(reading, ten)) is None:
        return None
    return Scores(
        mean=one.mean + joint.mean / 10,
        se=one.se + joint.se / 10,
        n=one.n,
        mc_bias=one.mc_bias + joint.mc_bias / 10,
        mc_se=one.mc_se + joint.mc_se / 10,
    )


OWN = (
    Metric("kl_tau1", 1, "lower", "KL from the true to the predicted label distribution, nats", pointwise.kl_tau1),
    Metric("kl_{}", 1, "lower", "KL from the true to the predicted law of tau labels, nats per tuple", _kl, True),
    Metric("aggregate", 1, "lower", "kl_tau1 + kl_tau10 / 10, what the Neural Testbed tunes for", _aggregate),
    Metric("nll", 1, "lower", "expected negative log-likelihood of one label, nats", pointwise.nll),
    Metric("joint_nll_{}", 1, "lower", "expected negative log-likelihood of tau labels, nats", _joint_nll, True),
    Metric("marginal_{}", 1, "lower", "marginal part of the joint loss: its sum over places", _marginal, True),
    Metric("dependence_{}", 1, "lower", "joint loss minus its marginal part; 0 for one world", _dependence, True),
    Metric("accuracy", 1, "higher", "expected share of correct top classes; tied classes share", pointwise.accuracy),
    Metric("brier", 1, "lower", "expected squared error summed over classes, 0 to 2", pointwise.brier),
    Metric("ece", 1, "lower", "top-label, drawn labels, 10 equal-width bins, one input per tuple", pointwise.ece),
    Metric("ece_expected", 1, "lower", "as ece, all inputs, labels summed out: no label noise", pointwise.ece_expected),
    Metric("drawn_kl_tau1", 1, "lower", "kl_tau1 as the Neural Testbed's code estimates it", drawn.drawn_kl_tau1),
    Metric("drawn_kl_{}", 1, "lower", "kl_tau10 as the Neural Testbed's code estimates it", drawn.drawn_kl, True),
    Metric("confidence", 1, "higher", "mean top-label confidence; compare it with accuracy", pointwise.confidence),
    Metric("hit_rate", 1, "higher", "share of drawn labels that the top class hits", pointwise.hit_rate),
)


PLAYED = (  # of games
    Metric("regret", 1, "lower", "highest reward probability on offer minus that of the arm, summed", regret.regret),
    Metric("average_regret", 1, "lower", "regret per step", regret.average_regret),
    Metric("simple_regret", 1, "lower", "regret per step in the last hundredth of the game", regret.simple_regret),
    Metric("regret_to_uniform", 1, "lower", "regret as a share of a uniform player's", regret.regret_to_uniform),
    Metric(
        *("simple_regret_to_uniform", 1, "lower", "simple_regret as a share of a uniform player's"),
        regret.simple_regret_to_uniform,
    ),
)


@functools.cache
def catalogue() -> tuple[Metric, ...]:
    """Our metrics, then those of installed plugins (entry points `calibrant.metrics`)."""
    return OWN + tuple(point.load() for point in entry_points(group="calibrant.metrics"))


def versions() -> dict[str, int]:
    """What a cell's id holds of the metrics: those whose definition has changed since their first, and plugins' own.

    So that a metric that is new to Calibrant makes no finished cell stale; one that you install does.
    """
    known = OWN + PLAYED
    return {m.name: m.version for m in (*catalogue(), *PLAYED) if m.version > 1 or m not in known}


def score(answers: Answers, question: Question, truth: Truth, key: object = "metric") -> dict[str, Scores]:
    """Every metric that the question and the truth allow, from one set of answers."""
    reading = Reading(answers, question, truth, key)
    return {name: value for metric in catalogue() for name, value in metric(reading).items()}


def score_game(course: regret.Course) -> dict[str, Scores]:
    """Every metric of games that this one allows."""
    return {name: value for metric in PLAYED for name, value in metric(course).items()}
