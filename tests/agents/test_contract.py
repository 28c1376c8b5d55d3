"""Every agent of the registry keeps the contract: shapes, atoms, coherent worlds, reproducible, finite."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import pytest
from scipy.special import log_softmax

from calibrant import registry, seeds
from calibrant.adapters import as_agent
from calibrant.metrics import score
from calibrant.protocols import Agent, Belief, Worlds
from calibrant.train.loop import GROUP
from calibrant.types import Answers, Array, CalibrantError, Instance

SMALL = {
    "logistic": "logistic?steps=20",
    "mlp": "mlp?steps=20&hidden=8",
    "ensemble": "ensemble?size=3&steps=20&hidden=8",
    "ensemble+": "ensemble+?size=3&steps=20&hidden=8&bootstrap=bernoulli",
    "dropout": "dropout?steps=20&hidden=8&rate=0.5",
    "bbb": "bbb?steps=20&hidden=8&prior=mixture",
    "hypermodel": "hypermodel?steps=20&hidden=8",
    "epinet": "epinet?steps=20&hidden=8",
    "sgmcmc": "sgmcmc?burn_in=20&samples=4&thin=10&hidden=8&preconditioner=rmsprop",
    "hmc": "hmc?chains=1&draws=4&warmup=20&leapfrog=4&hidden=8",
    "nuts": "nuts?chains=1&draws=4&warmup=20&doublings=3&hidden=8",
    "mclmc": "mclmc?chains=1&draws=4&thin=5&warmup=50&hidden=8",
    "bayes": "bayes?islands=2&particles=2&sweeps=1&final=3",
    "laplace": "laplace?steps=20&hidden=8&over=full",
    "swag": "swag?steps=20&hidden=8&snapshots=4&rank=2&collect=2",
    "ntk_ensemble+": "ntk_ensemble+?size=3&steps=20&hidden=8",
    "flow": "flow?steps=20&hidden=8&rank=2",
    "temperature_scaled": "temperature_scaled?agent=ensemble%3Fsize=3%26steps=20%26hidden=8",
    "deep_kernel": "deep_kernel?steps=20&hidden=8",
}
ATOMS = {
    **{"uniform": 1, "oracle": 1, "prior": None, "logistic": 1, "mlp": 1, "ensemble": 3, "ensemble+": 3},
    **{"dropout": None, "bbb": None, "hypermodel": None, "epinet": None, "deep_kernel": None, "sgmcmc": 4},
    **{"laplace": None, "swag": None, "ntk_ensemble+": 3, "flow": None, "temperature_scaled": 3},
    **{"knn": 1, "random_forest": 1, "hmc": 4, "nuts": 4, "mclmc": 4, "bayes": 4},
}
ELSEWHERE = {"marginal", "coins_independent", "coins_shared", "coins_posterior"}  # know one law: test_one_law.py
AGENTS = sorted(registry.table("agents").keys() - ELSEWHERE)
WORLDS = 5


@functools.cache
def instance() -> Instance:
    drawn: Instance = registry.resolve("problems", "testbed?train=5&tuples=20&classes=3&hidden=8x8").sample(0)
    return replace(drawn, facts=replace(drawn.facts, environment=drawn.environment))


@dataclass(frozen=True)
class Fitted:
    """An agent's program, compiled once for all tests of this file."""

    agent: Any
    fit: Any
    belief: Any


@functools.cache
def fitted(name: str) -> Fitted:
    agent: Any = as_agent(registry.resolve("agents", SMALL.get(name, name)))
    train, facts = instance().train, instance().facts

    def fit(key: Any) -> Any:
        return agent.fit(key, train, facts)

    def fit_black_box(key: Any) -> Any:
        return agent.fit(int(jax.random.key_data(key)[-1]), train, facts)

    program = jax.jit(fit) if getattr(agent, "native", False) else fit_black_box
    return Fitted(agent, program, program(seeds.jax_key(name, 0)))


def imagine(belief: Any, seed: int = 0) -> Any:
    return _worlds(belief, seeds.jax_key("worlds", seed)) if _is_tree(belief) else belief.worlds(seed, WORLDS)


def ask(worlds: Any, x: Array | None = None) -> Array:
    """Logits [worlds, inputs, classes] at the question's inputs, or at others."""
    inputs = instance().question.x if x is None else x
    return np.asarray(_call(worlds, inputs) if _is_tree(worlds) else worlds(inputs))


def _is_tree(value: Any) -> bool:
    """Beliefs and worlds of native agents are JAX trees; black-box ones are plain objects, leaves of themselves."""
    return not jax.tree_util.all_leaves([value])


_worlds = jax.jit(lambda belief, key: belief.worlds(key, WORLDS))  # beliefs and worlds are trees: compiled once
_call = jax.jit(lambda worlds, x: worlds(x))


def test_no_agent_is_forgotten() -> None:
    assert set(AGENTS) == ATOMS.keys()


@pytest.mark.parametrize("name", AGENTS)
def test_protocols(name: str) -> None:
    found = fitted(name)
    assert found.belief.atoms == ATOMS[name]
    if getattr(found.agent, "native", False):
        assert 1 <= found.agent.networks <= GROUP
    assert isinstance(found.agent, Agent)
    assert isinstance(found.belief, Belief)
    assert isinstance(imagine(found.belief), Worlds)


@pytest.mark.parametrize("name", AGENTS)
def test_answers(name: str) -> None:
    belief = fitted(name).belief
    worlds = imagine(belief)
    logits = ask(worlds)
    assert logits.shape == (ATOMS[name] or WORLDS, len(instance().question.x), 3)
    assert np.isfinite(logits).all()
    assert worlds.weights is None
    answers = Answers(log_softmax(logits, axis=2), exact=belief.atoms is not None)
    scores = score(answers, instance().question, instance().truth)
    assert all(np.isfinite(value.mean) for value in scores.values())


@pytest.mark.parametrize("name", AGENTS)
def test_a_world_is_one_function(name: str) -> None:
    """The same answer at an input, whichever other inputs are asked with it, and when."""
    worlds, x = imagine(fitted(name).belief), instance().question.x
    whole = ask(worlds)
    np.testing.assert_allclose(ask(worlds, x[::-1])[:, ::-1], whole, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ask(worlds, x[3:8]), whole[:, 3:8], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", AGENTS)
def test_the_key_decides(name: str) -> None:
    found = fitted(name)
    first = ask(imagine(found.belief))
    np.testing.assert_array_equal(ask(imagine(found.fit(seeds.jax_key(name, 0)))), first)
    if name in SMALL:
        assert (ask(imagine(found.fit(seeds.jax_key(name, 1)))) != first).any()


@pytest.mark.parametrize("name", [name for name in AGENTS if ATOMS[name] != 1])
def test_worlds_differ(name: str) -> None:
    logits = ask(imagine(fitted(name).belief))
    for one in range(len(logits)):
        for other in range(one):
            assert np.abs(logits[one] - logits[other]).max() > 1e-3


def test_the_oracle_has_no_divergence() -> None:
    logits = ask(imagine(fitted("oracle").belief))
    scores = score(Answers(log_softmax(logits, axis=2), exact=True), instance().question, instance().truth)
    for metric in ("kl_tau1", "kl_tau10", "kl_tau10_dyadic"):
        assert scores[metric].mean == pytest.approx(0, abs=1e-5)


def test_the_oracle_must_be_told() -> None:
    facts = replace(instance().facts, environment=None)
    with pytest.raises(CalibrantError, match="needs a problem whose true environment is known"):
        registry.resolve("agents", "oracle").fit(0, instance().train, facts)


def test_uniform_is_flat() -> None:
    assert not ask(imagine(fitted("uniform").belief)).any()


def test_the_prior_never_looks_at_the_data() -> None:
    agent, facts, train = fitted("prior").agent, instance().facts, instance().train
    blind = agent.fit(seeds.jax_key(0), replace(train, y=1 - train.y), facts)
    first, second = (ask(imagine(fitted("prior").belief, seed)) for seed in (0, 1))
    np.testing.assert_array_equal(ask(imagine(blind)), first)
    assert (first != second).any()


def test_the_prior_knows_the_temperature() -> None:
    agent, facts = fitted("prior").agent, instance().facts
    warm = agent.fit(seeds.jax_key(0), instance().train, replace(facts, temperature=1.0))
    cold = ask(imagine(fitted("prior").belief))
    np.testing.assert_allclose(ask(imagine(warm)) / facts.temperature, cold, rtol=1e-4)
