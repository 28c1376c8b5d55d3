"""The bag of coins: what is drawn, what theory says, and that measured scores agree with it."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import registry
from calibrant.engine.cohorts import make_tasks
from calibrant.engine.plan import make_cell
from calibrant.engine.work import run_task
from calibrant.problems.coins_theory import AGENTS, expected_kl, toss_entropy
from calibrant.types import Instance, Record

SMALL = "coins?coins=4&tuples=200&tau=6"


@functools.cache
def measured(agent: str, spec: str, seeds: int) -> list[Record]:
    cells = [make_cell(registry.canonical("problems", spec), agent, seed) for seed in range(seeds)]
    records = [record for task in make_tasks(cells) for record in run_task(task)]
    assert not any(record.failed for record in records), records[0].reason
    return records


# --- what is drawn ----------------------------------------------------------------------------------


def test_tuples_hold_tau_tosses_of_distinct_coins() -> None:
    drawn: Instance = registry.resolve("problems", "coins?coins=7&tuples=50&tau=3x20&kappa=1x2x5").sample(3)
    names = [(family.name, family.tau) for family in drawn.question.tuples]
    assert names == [(name, tau) for name in ("", "kappa1", "dyadic", "kappa5") for tau in (3, 20)]
    for family in drawn.question.tuples:
        assert (family.repeats.sum(axis=1) == family.tau).all()
        for coins, repeats in zip(family.anchors, family.repeats, strict=True):
            tossed = coins[repeats > 0]
            assert len(set(tossed)) == len(tossed)


def test_monadic_tuples_toss_one_coin() -> None:
    drawn: Instance = registry.resolve("problems", "coins?coins=7&tuples=50").sample(0)
    monadic = next(family for family in drawn.question.tuples if family.name == "kappa1")
    assert (monadic.repeats == 10).all()


def test_heads_are_uniform() -> None:
    """Kolmogorov-Smirnov at 4000 coins; fixed seed, so it either holds for good or the stream changed."""
    heads = np.sort(registry.resolve("problems", "coins?coins=4000&tuples=2").sample(0).environment.heads)
    assert np.abs(heads - (np.arange(4000) + 0.5) / 4000).max() < 1.63 / np.sqrt(4000)


# --- theory -------------------------------------------------------------------------------------------


def enumerated(agent: str, coins: int, tau: int) -> float:
    """E over coins and tosses of log P - log Q by brute force over all i.i.d. tuples and labellings."""
    from scipy.special import betaln

    total = 0.0
    for chosen in itertools.product(range(coins), repeat=tau):
        for labels in itertools.product((0, 1), repeat=tau):
            tossed = np.array(
                [
                    [sum(y == c and x == m for x, y in zip(chosen, labels, strict=True)) for c in (0, 1)]
                    for m in range(coins)
                ]
            )
            exact = betaln(1 + tossed[:, 0], 1 + tossed[:, 1]).sum()
            shared = betaln(1 + tossed[:, 0].sum(), 1 + tossed[:, 1].sum())
            said = {"posterior": exact, "independent": -tau * np.log(2), "shared": shared}[agent]
            total -= np.exp(exact) * said
    return total / coins**tau - tau / 2


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(("coins", "tau"), [(1, 4), (2, 3), (3, 4)])
def test_closed_forms_by_brute_force(agent: str, coins: int, tau: int) -> None:
    assert expected_kl(agent, coins, tau) == pytest.approx(enumerated(agent, coins, tau), abs=1e-9)


@given(st.integers(1, 2000), st.integers(1, 40))
def test_nothing_beats_the_posterior(coins: int, tau: int) -> None:
    for kappa in (1, 2):
        best = expected_kl("posterior", coins, tau, kappa)
        assert expected_kl("independent", coins, tau, kappa) >= best - 1e-9
        assert expected_kl("shared", coins, tau, kappa) >= best - 1e-9
    assert expected_kl("independent", coins, tau) >= expected_kl("posterior", coins, tau) - 1e-9


@given(st.integers(10, 5000), st.integers(2, 60))
def test_proposition_1(coins: int, tau: int) -> None:
    """The gap is below C(tau, 2) (5/3 log 2 - log 3 + ...) / M <= tau^3 / M, and nears its leading term."""
    gap = expected_kl("independent", coins, tau) - expected_kl("posterior", coins, tau)
    assert -1e-9 <= gap <= tau**3 / coins
    leading = tau * (tau - 1) / 2 / coins * (5 / 3 * np.log(2) - np.log(3))
    assert abs(gap - leading) <= tau**3 / coins**2 + 1e-9


@given(st.integers(1, 500), st.integers(1, 100))
def test_proposition_2(coins: int, tau: int) -> None:
    assert expected_kl("shared", coins, tau, 1) == pytest.approx(expected_kl("posterior", coins, tau, 1), abs=1e-9)


def test_dyads_of_one_coin_are_monads() -> None:
    for agent in AGENTS:
        assert expected_kl(agent, 1, 8, 2) == pytest.approx(expected_kl(agent, 1, 8, 1))
    assert toss_entropy(1) == pytest.approx(np.log(2))
    with pytest.raises(ValueError, match="kappa=3 has no closed form"):
        expected_kl("posterior", 5, 4, 3)


# --- measured ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(("metric", "kappa"), [("kl_tau6", None), ("kl_tau6_kappa1", 1), ("kl_tau6_dyadic", 2)])
def test_scores_agree_with_theory(agent: str, metric: str, kappa: int | None) -> None:
    """Twenty bags, clustered by bag: within five standard errors. False alarms below 1e-4 per case (t, 19 degrees)."""
    means = np.array([record.scores[metric].mean for record in measured(f"coins_{agent}", SMALL, 20)])
    error = means.std(ddof=1) / np.sqrt(len(means))
    assert means.mean() == pytest.approx(expected_kl(agent, 4, 6, kappa), abs=5 * error + 1e-3)
    assert error < 0.5


def test_monadic_scores_do_not_tell_shared_from_posterior() -> None:
    """Not only on average: in every single bag, to rounding."""
    for shared, best in zip(measured("coins_shared", SMALL, 20), measured("coins_posterior", SMALL, 20), strict=True):
        assert shared.scores["kl_tau6_kappa1"].mean == pytest.approx(best.scores["kl_tau6_kappa1"].mean, abs=1e-4)


def test_the_closed_form_agrees_with_worlds() -> None:
    """The posterior asked for worlds as any agent is: scores agree within the jackknife's bias and five errors."""
    from dataclasses import replace

    from calibrant.agents.coins_posterior import CoinsPosterior
    from calibrant.metrics import score
    from calibrant.seeds import jax_key
    from calibrant.types import Answers

    drawn: Instance = registry.resolve("problems", SMALL + "&train=9").sample(1)
    belief = CoinsPosterior().fit(jax_key(0), drawn.train, drawn.facts)
    worlds = np.asarray(belief.worlds(jax_key("worlds"), 4_000)(drawn.question.x), np.float64)
    sampled = Answers(worlds)
    closed = replace(sampled, log_joint=belief.log_joint)
    by_worlds, exactly = (score(answers, drawn.question, drawn.truth) for answers in (sampled, closed))
    for name in ("kl_tau6", "kl_tau6_dyadic", "kl_tau6_kappa1", "kl_tau1", "nll", "dependence_tau6_dyadic"):
        found = by_worlds[name]
        assert exactly[name].mean == pytest.approx(found.mean - found.mc_bias, abs=5 * found.mc_se + 1e-3), name
        assert exactly[name].mc_se == 0


def test_the_posterior_learns() -> None:
    """With 200 tosses of four coins shown it has less to be told than without any."""
    before, after = (measured("coins_posterior", spec, 1)[0] for spec in (SMALL, SMALL + "&train=200"))
    assert after.scores["kl_tau6_dyadic"].mean < 0.3 * before.scores["kl_tau6_dyadic"].mean


def test_long_tuples_are_sampled_and_agree() -> None:
    """Of a hundred tosses labellings are drawn: twenty bags, five standard errors."""
    for agent in AGENTS:
        records = measured(f"coins_{agent}", "coins?coins=20&tuples=20&tau=40&kappa=1", 20)
        means = np.array([record.scores["kl_tau40"].mean for record in records])
        assert means.mean() == pytest.approx(expected_kl(agent, 20, 40), abs=5 * means.std(ddof=1) / np.sqrt(20) + 1e-3)


@pytest.mark.parametrize("agent", ["coins_independent", "coins_shared", "coins_posterior"])
def test_other_problems_are_refused_in_one_sentence(agent: str) -> None:
    (record,) = run_task(make_tasks([make_cell("testbed?tuples=20", agent, 0)])[0])
    assert record.reason == f"CalibrantError: agent '{agent}' knows environments of law 'coins', not 'network'"
