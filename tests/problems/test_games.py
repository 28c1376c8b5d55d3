"""What games are played on: arms and rewards of the bandits, the order of contexts, the pool of active learning."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calibrant import registry
from calibrant.problems.active import Active
from calibrant.problems.bandit import Bandit
from calibrant.problems.coin_bandit import CoinBandit
from calibrant.problems.contextual import Contextual
from calibrant.types import CalibrantError


def test_arms_are_standard_normal() -> None:
    """Kolmogorov-Smirnov over 2000 coordinates; false alarm once in 10,000."""
    arena = Bandit(dim=10).sample(0)
    assert arena.table.shape == (200, 10) and arena.reward.shape == (200, 1) and arena.order is None
    assert stats.kstest(arena.table.reshape(-1), "norm").pvalue > 1e-4


def test_rewards_are_chances_that_a_lower_temperature_sharpens() -> None:
    """At temperature 0.1 most arms are nearly sure to pay or not to; at 10 all are nearly even."""
    sharp, even = (
        np.concatenate([Bandit(dim=10, temp=temp).sample(seed).reward for seed in range(10)]) for temp in (0.1, 10.0)
    )
    assert min(sharp.min(), even.min()) >= 0 and max(sharp.max(), even.max()) <= 1
    assert np.abs(sharp - 0.5).mean() > 0.3 and np.abs(even - 0.5).mean() < 0.05


@pytest.mark.parametrize("changed", ["rule=ucb", "steps=10", "decay=code", "capacity=5", "batch=1", "lr=0.1"])
def test_what_is_played_depends_neither_on_the_rule_nor_on_learning(changed: str) -> None:
    one, other = (registry.resolve("problems", spec).sample(4) for spec in ("bandit", f"bandit?{changed}"))
    np.testing.assert_array_equal(one.table, other.table)
    np.testing.assert_array_equal(one.reward, other.reward)


def test_agents_are_told_of_the_default_network_whatever_draws_rewards() -> None:
    usual, other = Bandit().sample(1), Bandit(activation="tanh", hidden=(5, 5)).sample(1)
    assert usual.facts == other.facts and not np.array_equal(usual.reward, other.reward)


def test_coins_pay_with_uniform_chances() -> None:
    """Kolmogorov-Smirnov over 4000 coins; false alarm once in 10,000."""
    arena = CoinBandit(coins=4000).sample(0)
    assert stats.kstest(arena.reward[:, 0], "uniform").pvalue > 1e-4


def test_every_pass_through_the_contexts_shows_each_row_once() -> None:
    """Iris has 120 rows to train on: 300 steps are two passes and a half, in different orders."""
    problem = Contextual(steps=300)
    arena = problem.sample(0)
    assert arena.order is not None and len(arena.order) == 300 and problem.train == 120
    first, second = arena.order[:120], arena.order[120:240]
    assert sorted(first) == sorted(second) == list(range(120)) and (first != second).any()
    assert len(set(arena.order[240:].tolist())) == 60
    np.testing.assert_array_equal(arena.reward.sum(axis=1), 1)  # one class pays
    np.testing.assert_allclose(arena.table.mean(axis=0), 0, atol=1e-5)
    assert (arena.order != problem.sample(1).order).any()


def test_a_short_game_has_only_the_rows_it_offers() -> None:
    arena = Contextual(steps=30).sample(0)
    assert len(arena.table) == 30 and sorted(arena.order) == list(range(30))


def test_the_pool_does_not_depend_on_the_rule() -> None:
    one, other = Active(priority="bald", labels=10).sample(2), Active(priority="uniform", labels=200).sample(2)
    for a, b in ((one.train.x, other.train.x), (one.train.y, other.train.y), (one.question.x, other.question.x)):
        np.testing.assert_array_equal(a, b)
    assert len(one.train.x) == 200


def test_questions_come_at_rising_marks() -> None:
    assert Active(labels=100).marks == (1, 2, 5, 10, 20, 50, 100)
    assert Active(labels=30).marks == (1, 2, 5, 10, 20, 30) and Active(labels=1).marks == (1,)


def test_more_labels_than_candidates_are_refused() -> None:
    with pytest.raises(CalibrantError, match="labels=300 is more than the 200 candidates"):
        Active(labels=300)
