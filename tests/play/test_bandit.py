"""Bandits against what is known exactly: Beta-Bernoulli Thompson sampling, the oracle, a uniform player."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln

from calibrant.agents.coins_posterior import CoinsPosterior
from calibrant.agents.mlp import Mlp
from calibrant.agents.oracle import Informed
from calibrant.agents.uniform import Uniform
from calibrant.metrics import score_game
from calibrant.metrics.regret import Course
from calibrant.play.bandit import Game, play
from calibrant.play.learning import Schooling, begin, feedback
from calibrant.play.replay import Replay
from calibrant.rules.acting import ActingRule, Greedy, Thompson
from calibrant.train.likelihoods import cross_entropy
from calibrant.types import Array, Facts

COINS = Facts(2, 2, 0, 1.0, law="coins")


def regrets(agent: Any, facts: Facts, game: Game, steps: int, lanes: int, rule: ActingRule | None = None) -> Array:
    """Of many plays of the same game with other random numbers, [lanes, steps]."""
    learner, schooling = agent.online(facts), Schooling(capacity=64, batch=8)

    def one(key: Any, luck: Any) -> Array:
        mine = Game(game.table, game.reward, luck, game.order, game.arms)
        position = begin(learner, schooling, game.table, key)
        return play(learner, schooling, rule or Thompson(), mine, key, position, jnp.int32(0), steps)[1]

    keys = jax.random.split(jax.random.key(7), 2 * lanes)
    return np.asarray(jax.jit(jax.vmap(one))(keys[:lanes], keys[lanes:]))


def exact_thompson(p: tuple[float, float], steps: int) -> Array:
    """Expected regret of every step for two coins, by going through all counts of heads and tails."""

    @functools.cache
    def prefers_first(a: int, b: int, c: int, d: int) -> float:
        """P(X > Y) for X ~ Beta(a, b), Y ~ Beta(c, d), whole numbers."""
        return float(
            sum(np.exp(betaln(c + i, b + d) - np.log(b + i) - betaln(1 + i, b) - betaln(c, d)) for i in range(a))
        )

    curve, states = [], {(0, 0, 0, 0): 1.0}
    for _ in range(steps):
        later: dict[tuple[int, int, int, int], float] = {}
        expected = 0.0
        for (h1, t1, h2, t2), weight in states.items():
            first = 1 - prefers_first(1 + h2, 1 + t2, 1 + h1, 1 + t1)
            for arm, chance in ((0, first), (1, 1 - first)):
                expected += weight * chance * (max(p) - p[arm])
                for heads in (0, 1):
                    pays = p[arm] if heads else 1 - p[arm]
                    counts = [h1, t1, h2, t2]
                    counts[2 * arm + (1 - heads)] += 1
                    key = (counts[0], counts[1], counts[2], counts[3])
                    later[key] = later.get(key, 0.0) + weight * chance * pays
        curve.append(expected)
        states = later
    return np.array(curve)


def test_the_exact_curve_is_itself_right() -> None:
    """P(Beta(2, 1) > Beta(1, 1)) = 2/3: after heads of the first coin it is preferred two times in three."""
    curve = exact_thompson((1.0, 0.0), 2)
    assert curve[0] == pytest.approx(0.5)
    assert curve[1] == pytest.approx(0.5 * (1 / 3) + 0.5 * (1 / 3))


def test_thompson_sampling_of_coins_has_the_exact_regret() -> None:
    """20,000 games of 25 steps against the exact curve: 25 z-scores, false alarm once in 10,000 over all of them."""
    game = Game(jnp.eye(2), jnp.array([[0.7], [0.4]]), jax.random.key(0))
    played = regrets(CoinsPosterior(), COINS, game, 25, 20_000)
    expected = exact_thompson((0.7, 0.4), 25)
    error = np.maximum(played.std(axis=0), 1e-3) / np.sqrt(len(played))
    assert np.abs((played.mean(axis=0) - expected) / error).max() < 4.7


def test_the_oracle_has_no_regret() -> None:
    chance = np.random.default_rng(0).uniform(0.05, 0.95, size=(40, 1))
    logits = jnp.asarray(np.log(np.concatenate([1 - chance, chance], axis=1)), jnp.float32)
    game = Game(jnp.zeros((40, 3)), jnp.asarray(chance, jnp.float32), jax.random.key(0))
    assert regrets(Informed(logits), Facts(3, 2, 0, 1.0), game, 50, 4).max() < 1e-6


def test_a_uniform_player_loses_what_the_closed_form_says() -> None:
    """400 games of 50 steps, the total against its expectation; false alarm once in 10,000."""
    chance = np.random.default_rng(1).uniform(size=(20, 1))
    game = Game(jnp.zeros((20, 3)), jnp.asarray(chance, jnp.float32), jax.random.key(0))
    totals = regrets(Uniform(), Facts(3, 2, 0, 1.0), game, 50, 400).sum(axis=1)
    z = (totals.mean() - Course(np.zeros(50), chance).uniform.sum()) / (totals.std(ddof=1) / np.sqrt(400))
    assert abs(z) < 3.9


def test_contexts_are_offered_in_their_order() -> None:
    """One-hot contexts whose class is known to the oracle: it always plays it; a uniform player loses (K - 1) / K."""
    labels, order = np.array([0, 2, 1, 2]), jnp.array([3, 0, 1, 2, 3, 0], jnp.int32)
    reward = np.eye(3)[labels]
    game = Game(jnp.eye(4), jnp.asarray(reward, jnp.float32), jax.random.key(0), order, (0, 1, 2))
    facts = Facts(4, 3, 0, 0.01)
    assert regrets(Informed(jnp.asarray(np.log(reward + 1e-9), jnp.float32)), facts, game, 6, 3).max() == 0
    assert Course(np.zeros(6), reward, np.asarray(order)).uniform == pytest.approx(np.full(6, 2 / 3))


def test_a_network_learns_to_play_an_easy_game() -> None:
    """One arm of eight pays, always; after 300 steps of Thompson sampling a network plays nothing else."""
    game = Game(jnp.eye(8), jnp.eye(8)[:, 3:4], jax.random.key(0))
    played = regrets(Mlp(l2=0.01), Facts(8, 2, 0, 0.1), game, 300, 4, Greedy(1))
    assert played[:, :20].mean() > 0.2
    assert played[:, -50:].mean() < 0.05


def test_feedback_of_two_classes_is_cross_entropy() -> None:
    rng = np.random.default_rng(0)
    logits, labels = jnp.asarray(rng.normal(size=(16, 2)) * 20, jnp.float32), rng.integers(2, size=16)
    seen = Replay(jnp.zeros(16, jnp.int32), jnp.ones(16, jnp.int32), jnp.asarray(labels, jnp.float32))
    np.testing.assert_allclose(feedback(logits, seen), cross_entropy(logits, jnp.asarray(labels)), rtol=1e-5, atol=1e-6)


def test_feedback_of_a_miss_is_the_probability_of_all_other_classes() -> None:
    logits = jnp.array([[2.0, -1.0, 0.5]])
    p = np.exp(np.asarray(logits[0])) / np.exp(np.asarray(logits[0])).sum()
    missed = Replay(jnp.zeros(1, jnp.int32), jnp.array([2]), jnp.zeros(1))
    assert float(feedback(logits, missed)[0]) == pytest.approx(-np.log(1 - p[2]), rel=1e-5)
    grad = jax.grad(lambda z: feedback(z, missed).sum())(jnp.array([[200.0, -200.0, 0.0]]))
    assert np.isfinite(grad).all()


def test_scores_of_a_game() -> None:
    steps = np.linspace(1, 0, 1000)
    scores = score_game(Course(steps, np.array([[1.0], [0.0]])))
    assert scores["regret"].mean == pytest.approx(steps.sum())
    assert scores["average_regret"].mean == pytest.approx(scores["average_regret"].items.mean())
    assert scores["simple_regret"].mean == pytest.approx(steps[-10:].mean())
    assert scores["regret_to_uniform"].mean == pytest.approx(steps.sum() / 500)
    assert scores["simple_regret_to_uniform"].mean == pytest.approx(steps[-10:].mean() / 0.5)


def test_late_regret_is_a_share_of_what_a_uniform_player_loses_then() -> None:
    """Two rows: one with an arm that pays, one without; the last stretch offers them by turns."""
    course = Course(np.full(200, 0.25), np.array([[1.0, 0.0], [0.5, 0.5]]), np.arange(200) % 2)
    assert score_game(course)["simple_regret_to_uniform"].mean == pytest.approx(0.25 / 0.25)
    late = Course(np.full(200, 0.25), course.reward, np.concatenate([np.ones(198, int), np.zeros(2, int)]))
    assert score_game(late)["simple_regret_to_uniform"].mean == pytest.approx(0.25 / 0.5)


def test_where_nobody_can_lose_there_is_no_share() -> None:
    assert score_game(Course(np.zeros(5), np.full((3, 1), 0.5))).keys() == {"regret", "average_regret", "simple_regret"}
