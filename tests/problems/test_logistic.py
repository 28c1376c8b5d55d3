"""Logistic regression: what is drawn, how long tuples are streamed, and what theory says of the three agents."""

from __future__ import annotations

import functools
import tracemalloc

import numpy as np
import pytest
from scipy.special import expit, log_expit

from calibrant import registry
from calibrant.engine.cohorts import make_tasks
from calibrant.engine.plan import make_cell
from calibrant.engine.work import run_task
from calibrant.metrics.long import Asked, long_scores
from calibrant.train.evidence import graded_normal
from calibrant.types import Answers, Array, CalibrantError, Instance, Long, Record, Scores

LOG2 = float(np.log(2))


@functools.cache
def measured(agent: str, spec: str, seed: int = 0) -> Record:
    cell = make_cell(registry.canonical("problems", spec), registry.canonical("agents", agent), seed)
    (record,) = run_task(make_tasks([cell])[0])
    return record


def scores(agent: str, spec: str, seed: int = 0) -> dict[str, Scores]:
    record = measured(agent, spec, seed)
    assert not record.failed, record.reason
    return dict(record.scores)


# --- what is drawn ----------------------------------------------------------------------------------


def test_logits_are_divided_by_the_temperature() -> None:
    drawn: Instance = registry.resolve("problems", "logistic?dim=3&temp=0.5&tuples=5").sample(0)
    x = drawn.question.x
    logit = x @ drawn.environment.phi / 0.5
    np.testing.assert_allclose(drawn.truth.logp[:, 1], log_expit(logit), rtol=1e-6)
    np.testing.assert_allclose(np.exp(drawn.truth.logp).sum(axis=1), 1)


def test_first_inputs_do_not_depend_on_the_longest_order() -> None:
    short, long = (
        registry.resolve("problems", f"logistic?dim=3&tau={tau}").sample(1) for tau in ("10x1500", "10x2500")
    )
    for mine, other in zip(short.question.long.draw(2), long.question.long.draw(2), strict=True):
        np.testing.assert_array_equal(mine, other[:1500])
    assert (short.question.long.draw(1)[0] != short.question.long.draw(2)[0]).all()


def test_orders_must_rise() -> None:
    with pytest.raises(CalibrantError, match="tau=10x3 should rise"):
        registry.resolve("problems", "logistic?tau=10x3")


# --- long tuples --------------------------------------------------------------------------------------


def toy(worlds: Array, n: int = 3, tau: tuple[int, ...] = (2, 700, 1300)) -> tuple[Long, Asked]:
    """Inputs of one number; a world's logit is its own slope times the input."""

    def draw(i: int) -> tuple[Array, Array, Array]:
        rng = np.random.default_rng(i)
        x = rng.normal(size=(tau[-1], 1)).astype(np.float32).astype(np.float64)
        logp = np.stack([log_expit(-x[:, 0]), log_expit(x[:, 0])], axis=1)
        return x, logp, (rng.random(tau[-1]) < expit(x[:, 0])).astype(int)

    def answer(x: Array) -> Answers:
        logit = worlds[:, None] * np.asarray(x, np.float64)[:, 0]
        return Answers(np.stack([log_expit(-logit), log_expit(logit)], axis=2))

    return Long(tau, n, draw), Asked(answer)


def test_streaming_is_the_plain_formula() -> None:
    worlds = np.random.default_rng(0).normal(1, 0.1, 50)
    long, asked = toy(worlds)
    found = long_scores(long, asked, "key")
    for tau in long.tau:
        kl, drawn = [], []
        for i in range(long.n):
            x, truth, y = (part[:tau] for part in long.draw(i))
            logp = asked.answer(x).logp
            each = np.take_along_axis(logp, y[None, :, None], axis=2)[..., 0].sum(axis=1)
            log_q = np.logaddexp.reduce(each) - np.log(len(worlds))
            q = np.log(np.exp(logp).mean(axis=0))
            rows = np.arange(tau)
            drawn.append(truth[rows, y].sum() - log_q)
            kl.append((np.exp(truth) * (truth - q)).sum() + q[rows, y].sum() - log_q)
        assert found[f"kl_tau{tau}"].mean == pytest.approx(np.mean(kl))
        assert found[f"drawn_kl_tau{tau}"].mean == pytest.approx(max(np.mean(drawn), 0))
        assert found[f"kl_tau{tau}"].mc_se > 0


def test_the_truth_has_no_divergence() -> None:
    long, asked = toy(np.ones(1))
    found = long_scores(long, asked, "key")
    assert all(
        found[f"{part}_tau{tau}"].mean == pytest.approx(0, abs=1e-9) for part in ("kl", "marginal") for tau in long.tau
    )


def test_a_beliefs_own_estimate_is_used_with_its_error() -> None:
    long, asked = toy(np.ones(4))
    found = long_scores(long, Asked(asked.answer, lambda seed, x, y: (-0.7 * len(y), 0.2)), "key")
    expected = np.mean([np.take_along_axis(t, y[:, None], 1)[:700].sum() for _, t, y in map(long.draw, range(3))]) + 490
    assert found["kl_tau700"].mean == pytest.approx(expected)
    assert (found["kl_tau700"].mc_se, found["kl_tau700"].mc_bias) == pytest.approx((0.2, 0.02))


def test_ten_thousand_labels_in_bounded_memory() -> None:
    """A thousand worlds at 10,000 inputs would be 160 MB of answers; streamed, a tenth of it."""
    long, asked = toy(np.random.default_rng(0).normal(size=1000), n=2, tau=(10_000,))
    tracemalloc.start()
    long_scores(long, asked, "key")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 80e6


# --- the three agents ----------------------------------------------------------------------------------

TINY = "logistic?dim=3&tuples=200&tau=10x300&long=4"


def test_uniform_is_exact() -> None:
    """Its KL is tau log 2 minus the entropy of the labels, whatever was drawn."""
    drawn: Instance = registry.resolve("problems", TINY).sample(0)
    entropy = [-(np.exp(logp[:300]) * logp[:300]).sum() for _, logp, _ in map(drawn.question.long.draw, range(4))]
    found = scores("uniform", TINY)["kl_tau300"]
    assert found.mean == pytest.approx(300 * LOG2 - np.mean(entropy), abs=1e-3)
    assert found.mc_se == 0


def test_marginal_is_its_quadrature() -> None:
    drawn: Instance = registry.resolve("problems", TINY).sample(0)
    nodes, weights = graded_normal(64)
    expected = []
    for x, logp, y in map(drawn.question.long.draw, range(4)):
        logit = nodes[:, None] * np.linalg.norm(x[:10], axis=1) / 0.01
        log_q = np.logaddexp.reduce(log_expit(np.where(y[:10] == 1, logit, -logit)).sum(axis=1) + np.log(weights))
        expected.append(-(10 * LOG2) + (10 * LOG2 + (np.exp(logp[:10]) * logp[:10]).sum()) - log_q)
    assert scores("marginal", TINY)["kl_tau10"].mean == pytest.approx(np.mean(expected), abs=2e-3)


def test_one_dimension_at_high_signal() -> None:
    """The sign of phi is all there is: log 2 for the prior whatever is asked, tau log 2 for uniform, nearly."""
    found = scores("prior", "logistic?dim=1&tuples=200&tau=10&long=20&temp=0.0001")
    assert found["kl_tau10"].mean == pytest.approx(LOG2, abs=0.15)
    assert found["kl_tau10_kappa1"].mean == pytest.approx(LOG2, abs=0.1)
    assert found["kl_tau10_dyadic"].mean == pytest.approx(LOG2, abs=0.1)


def test_many_dimensions_at_high_signal() -> None:
    """Labels of few inputs are fair coins: tau log 2 i.i.d., log 2 monadic, 2 log 2 dyadic where both anchors occur."""
    found = scores("prior", "logistic?dim=1000&tuples=200&tau=10&long=4")
    assert found["kl_tau10"].mean == pytest.approx(10 * LOG2, abs=0.3)
    assert found["kl_tau10_kappa1"].mean == pytest.approx(LOG2, abs=0.1)
    assert found["kl_tau10_dyadic"].mean == pytest.approx((2 - 2**-9) * LOG2, abs=0.15)


def test_figure_2() -> None:
    """I.i.d. tells uniform least, monadic cannot tell marginal from prior, dyadic tells both, at D=1000 as at D=3."""
    for spec in (TINY, "logistic?dim=1000&tuples=200&tau=10&long=4"):
        uniform, marginal, prior = (scores(agent, spec) for agent in ("uniform", "marginal", "prior"))
        assert marginal["kl_tau10_kappa1"].mean == pytest.approx(prior["kl_tau10_kappa1"].mean, abs=0.15)
        for other in (uniform, marginal):
            assert other["kl_tau10_dyadic"].mean > 2 * prior["kl_tau10_dyadic"].mean
    assert uniform["kl_tau10"].mean < 1.1 * prior["kl_tau10"].mean


def test_the_prior_beats_naive_worlds() -> None:
    """Where a thousand draws of the prior find no likely one, its own estimator still stands."""
    found = scores("prior", "logistic?dim=10&tuples=2&tau=100&long=2")
    assert found["kl_tau100"].mean < 100 * LOG2 < found["drawn_kl_tau100"].mean
    assert found["kl_tau100"].mc_se < 0.5


# --- any agent -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent", ["mlp?steps=300&hidden=8", "logistic?steps=300", "ensemble?size=3&steps=20&hidden=8", "knn"]
)
def test_trained_agents_run(agent: str) -> None:
    found = scores(agent, "logistic?dim=2&train=50&tuples=50&tau=10x100&long=2")
    assert {"kl_tau10", "kl_tau100", "kl_tau10_dyadic", "kl_tau10_kappa1", "accuracy"} <= found.keys()
    if agent.startswith("mlp"):
        assert found["accuracy"].mean > 0.8


def test_the_oracle_has_no_divergence() -> None:
    found = scores("oracle", TINY)
    assert found["kl_tau300"].mean == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("agent", "spec", "reason"),
    [
        ("mlp", TINY, "agent 'mlp' learns from data and '{}' has none: say train=1 or more"),
        ("knn", TINY, "agent 'knn' learns from data and '{}' has none: say train=1 or more"),
        ("marginal", "testbed?tuples=20", "agent 'marginal' knows environments of law 'logistic', not 'network'"),
        (
            "bayes",
            "logistic?train=5&tuples=20&tau=10",
            "agent 'bayes' knows environments that are networks, not logistic",
        ),
    ],
)
def test_refusals_are_one_sentence(agent: str, spec: str, reason: str) -> None:
    problem = registry.canonical("problems", spec)
    assert measured(agent, spec).reason == f"CalibrantError: {reason.format(problem)}"
