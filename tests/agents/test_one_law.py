"""Agents that know one law of environments keep the contract there: shapes, atoms, coherent worlds, reproducible."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from calibrant import registry, seeds
from calibrant.engine.check import check_agent
from calibrant.protocols import Agent, Belief, ClosedBelief, EstimatingBelief, Worlds
from calibrant.types import CalibrantError, Instance

COINS, LOGISTIC = "coins?coins=6&train=12&tuples=5", "logistic?dim=4&train=12&tuples=5&tau=10"
ATOMS = {
    ("coins_independent", COINS): 1,
    ("coins_shared", COINS): 128,
    ("coins_posterior", COINS): None,
    ("prior", COINS): None,
    ("marginal", LOGISTIC): 960,
    ("prior", LOGISTIC): None,
}
CASES = sorted(ATOMS)


def fitted(name: str, spec: str) -> tuple[Any, Any, Instance]:
    drawn: Instance = registry.resolve("problems", spec).sample(0)
    agent = registry.resolve("agents", name)
    return agent, agent.fit(seeds.jax_key(name), drawn.train, drawn.facts), drawn


@pytest.mark.parametrize(("name", "spec"), CASES)
def test_contract(name: str, spec: str) -> None:
    agent, belief, drawn = fitted(name, spec)
    assert isinstance(agent, Agent)
    assert isinstance(belief, Belief)
    assert belief.atoms == ATOMS[name, spec]
    for n in (3, 1000):
        worlds = belief.worlds(seeds.jax_key("worlds"), n)
        assert isinstance(worlds, Worlds)
        logits = np.asarray(worlds(drawn.question.x))
        expected = n if belief.atoms is None else min(n, belief.atoms)
        assert logits.shape == (expected, len(drawn.question.x), 2)
        assert np.isfinite(logits).all()
        np.testing.assert_allclose(np.asarray(worlds(drawn.question.x[::-1]))[:, ::-1], logits, rtol=1e-5, atol=1e-5)
    if worlds.weights is not None:
        assert float(np.sum(worlds.weights)) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("name", "spec"), CASES)
def test_check_finds_nothing(name: str, spec: str) -> None:
    wrong = [finding for finding in check_agent(registry.resolve("agents", name), spec) if not finding.ok]
    assert not wrong


def test_who_knows_more_than_worlds() -> None:
    for (name, spec), closed in {
        ("coins_posterior", COINS): True,
        ("prior", COINS): True,
        ("prior", LOGISTIC): False,
    }.items():
        _, belief, _ = fitted(name, spec)
        assert isinstance(belief, ClosedBelief) == closed
        assert isinstance(belief, EstimatingBelief) != closed


def test_the_posterior_counts_tosses_and_not_padding() -> None:
    agent, _, drawn = fitted("coins_posterior", COINS)
    padded = jax.tree.map(lambda a: a, drawn.train)
    x = np.pad(padded.x, ((0, 5), (0, 0)))
    x[-1, 0] = 1  # a row that must not be read
    belief = agent.fit(0, type(padded)(x, np.pad(padded.y, (0, 5))), drawn.facts)
    coin, heads = drawn.train.x.argmax(axis=1), drawn.train.y == 1
    np.testing.assert_allclose(belief.heads, 1 + np.bincount(coin[heads], minlength=6))
    np.testing.assert_allclose(belief.tails, 1 + np.bincount(coin[~heads], minlength=6))


def test_joint_probabilities_sum_to_one() -> None:
    """Over the heads of three tosses of coin 2 and one of coin 4, coin 2 standing at two places of the tuple."""
    _, belief, drawn = fitted("coins_posterior", COINS)
    x = drawn.question.x[[2, 4, 2]]
    heads = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1, 2], indexing="ij"), axis=-1).reshape(-1, 3)
    counts = np.stack([np.array([1, 1, 2]) - heads, heads], axis=2)
    ways = np.where(heads[:, 2] == 1, 2, 1)
    assert (ways * np.exp(belief.log_joint(x, counts))).sum() == pytest.approx(1)


def test_marginal_is_right_about_single_inputs() -> None:
    """E sigma(lambda |x| / temp) is one half, and its spread is that of phi x: both by the nodes."""
    _, belief, drawn = fitted("marginal", LOGISTIC)
    worlds = belief.worlds(seeds.jax_key(0), 1000)
    logits = np.asarray(worlds(drawn.question.x), np.float64)[:, :, 1]
    weights = np.asarray(worlds.weights, np.float64)
    length = np.linalg.norm(drawn.question.x, axis=1) / 0.01
    np.testing.assert_allclose(weights @ logits, 0, atol=1e-3 * length.max())
    np.testing.assert_allclose(np.sqrt(weights @ logits**2), length, rtol=1e-4)


@pytest.mark.parametrize("name", ["marginal", "coins_independent", "coins_shared", "coins_posterior"])
def test_other_laws_are_refused(name: str) -> None:
    drawn: Instance = registry.resolve("problems", "testbed?tuples=5").sample(0)
    with pytest.raises(CalibrantError, match=f"agent '{name}' knows environments of law"):
        registry.resolve("agents", name).fit(seeds.jax_key(0), drawn.train, drawn.facts)
