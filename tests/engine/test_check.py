"""Every finding is provoked by an agent that is broken in exactly that way."""

import random
import sys
import types
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from calibrant.engine.check import Finding, check_agent
from calibrant.nets.trees import static, tree
from calibrant.types import CalibrantError

SMALL = "testbed?train=10&temp=0.1&tuples=2"
ALL = [
    "builds", "fits", "shapes", "finite numbers", "inputs", "coherent worlds", "reproducible",
    "global random state", "one point", "one class", "number of worlds", "worker process",
]  # fmt: skip


def check(agent):
    return check_agent(agent, SMALL)


def broken(agent):
    """The names of findings that are not in order."""
    return [finding.name for finding in check(agent) if not finding.ok]


def message(agent, name):
    return next(finding.message for finding in check(agent) if finding.name == name)


def linear(x, seed, classes=2):
    return x @ np.random.default_rng(seed).normal(size=(x.shape[1], classes))


def agent_of(sampler):
    """An agent whose belief is this sampler, whatever the data."""
    return lambda seed, train, facts: sampler


# --- agents that keep the contract ----------------------------------------------------------------


def test_a_good_sampler_is_in_order_everywhere():
    findings = check(agent_of(linear))
    assert [finding.name for finding in findings] == ALL
    assert all(isinstance(finding, Finding) and finding.ok and finding.message for finding in findings)


def test_a_good_finite_belief_is_in_order_whatever_its_size():
    for atoms in (1, 3, 20):
        assert broken(lambda seed, train, facts, n=atoms: lambda x: np.stack([linear(x, i) for i in range(n)])) == []


def test_the_check_works_on_three_classes_and_more_inputs():
    agent = agent_of(lambda x, seed: linear(x, seed, 3))
    assert all(finding.ok for finding in check_agent(agent, "testbed?classes=3&dim=5&tuples=2", seed=4))


@pytest.mark.parametrize("spec", ["uniform", "oracle", "ensemble?size=9&steps=5"])
def test_our_own_agents_keep_the_contract(spec):
    assert [finding.message for finding in check(spec) if not finding.ok] == []


def test_the_global_random_state_of_the_caller_is_restored():
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    expected = np.random.RandomState(5).random(), random.Random(5).random()
    check(agent_of(linear))
    assert (np.random.random(), random.random()) == expected  # noqa: NPY002


# --- agents that break it -------------------------------------------------------------------------


def test_what_cannot_be_built_is_the_only_finding(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("import no_such_module\n")
    for spec in (f"{file}:Agent", "no_such_agent", f"{tmp_path}/absent.py:Agent"):
        assert [(finding.name, finding.ok) for finding in check(spec)] == [("builds", False)]
    assert "no_such_module" in message(f"{file}:Agent", "builds")
    assert "not an agent" in message(3, "builds")


def test_a_fit_that_raises_or_returns_no_belief():
    def raises(seed, train, facts):
        raise ValueError("singular matrix")

    assert broken(raises) == ["fits"] and "ValueError: singular matrix" in message(raises, "fits")
    assert "expected an object with worlds" in message(agent_of(None), "fits")


def test_a_native_agent_that_returns_no_belief():
    class Native:
        native = True

        def fit(self, key, train, facts):
            return 3

    assert broken(Native()) == ["fits"] and "expected atoms and worlds" in message(Native(), "fits")


@tree
@dataclass(frozen=True)
class NativeBelief:
    """Nine atoms, so they say; `rank` axes are answered, and as many worlds as asked."""

    scale: Any
    rank: int = static(3)
    n: int = static(0)
    native: ClassVar[bool] = True
    atoms: ClassVar[int] = 9
    weights: ClassVar[None] = None

    def fit(self, key, train, facts):
        return replace(self, scale=train.x.sum() * 0 + 1.0)

    def worlds(self, key, n):
        return replace(self, n=n)

    def __call__(self, x):
        worlds = jnp.arange(self.n, dtype=x.dtype)[:, None, None] * x * self.scale
        return worlds if self.rank == 3 else worlds[:, :, 0]


def test_a_native_agent_with_wrong_shapes():
    agent = NativeBelief(1.0, rank=2)
    assert broken(agent) == ["shapes"] and "has shape [7, 24]; expected [7, 24, 2]" in message(agent, "shapes")


def test_a_native_finite_belief_that_gives_more_than_its_atoms():
    agent = NativeBelief(1.0)
    assert broken(agent) == ["number of worlds"]
    assert "asked for 10 worlds" in message(agent, "number of worlds")


def test_a_native_agent_whose_belief_cannot_be_compiled():
    class Opaque:
        native = True

        def fit(self, key, train, facts):
            return self

    assert broken(Opaque()) == ["fits"] and "not a valid JAX type" in message(Opaque(), "fits")


def test_wrong_shapes():
    three = agent_of(lambda x, seed: linear(x, seed, 3))
    assert broken(three) == ["shapes"] and "world 0 has shape" in message(three, "shapes")
    fails = agent_of(lambda x, seed: x @ np.ones((9, 2)))
    assert broken(fails) == ["shapes"] and "ValueError" in message(fails, "shapes")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(value):
    agent = agent_of(lambda x, seed: np.where(x > 0, value, 0.0))
    assert broken(agent) == ["finite numbers"] and "log(0)" in message(agent, "finite numbers")


def test_inputs_changed_while_fitting():
    def agent(seed, train, facts):
        train.x[:] -= train.x.mean(axis=0)
        return linear

    assert broken(agent) == ["inputs"] and "changed train.x in place" in message(agent, "inputs")


def test_inputs_changed_while_answering():
    def sampler(x, seed):
        x *= 2
        return linear(x, seed)

    assert broken(agent_of(sampler)) == ["inputs"] and "x.copy()" in message(agent_of(sampler), "inputs")


def test_a_world_that_ignores_its_seed_is_incoherent():
    def agent(seed, train, facts):
        rng = np.random.default_rng(seed)
        return lambda x, seed: linear(x, rng)

    assert broken(agent) == ["coherent worlds", "reproducible"]
    assert "when asked again" in message(agent, "coherent worlds")


def test_a_mask_for_each_input_is_incoherent():
    agent = agent_of(lambda x, seed: linear(x, 0) * (np.random.default_rng(seed).random((len(x), 1)) > 0.5))
    assert broken(agent) == ["coherent worlds"] and "in another order" in message(agent, "coherent worlds")


def test_a_world_that_depends_on_the_batch_is_incoherent():
    agent = agent_of(lambda x, seed: linear(x - x.mean(axis=0), seed))
    assert broken(agent) == ["coherent worlds"] and "fewer inputs" in message(agent, "coherent worlds")


def test_a_fit_with_fresh_entropy_is_not_reproducible():
    def agent(seed, train, facts):
        weights = np.random.default_rng().normal(size=(2, 2))
        return lambda x, seed: x @ weights

    assert broken(agent) == ["reproducible"] and "fitting twice" in message(agent, "reproducible")


def test_worlds_with_fresh_entropy_are_not_reproducible():
    class Fresh:
        def worlds(self, seed, n):
            weights = np.random.default_rng().normal(size=(n, 2, 2))
            return lambda x: x @ weights

    assert broken(agent_of(Fresh())) == ["reproducible"]
    assert "different worlds of the same belief" in message(agent_of(Fresh()), "reproducible")


def test_reading_the_global_random_state():
    def agent(seed, train, facts):
        weights = np.random.normal(size=(2, 2))  # noqa: NPY002
        return lambda x, seed: x @ weights

    assert broken(agent) == ["global random state"] and "depend on" in message(agent, "global random state")


def test_reading_pythons_global_random_state():
    def agent(seed, train, facts):
        weight = random.random()
        return lambda x, seed: x * weight

    assert broken(agent) == ["global random state"]


def test_seeding_the_global_random_state():
    def agent(seed, train, facts):
        np.random.seed(seed)  # noqa: NPY002
        weights = np.random.normal(size=(2, 2))  # noqa: NPY002
        return lambda x, seed: x @ weights

    assert broken(agent) == ["global random state"] and "it moves" in message(agent, "global random state")


def test_one_training_point():
    def agent(seed, train, facts):
        if facts.train_size == 1:
            raise ValueError("need two points")
        return linear

    assert broken(agent) == ["one point"] and "need two points" in message(agent, "one point")


def test_one_class():
    def agent(seed, train, facts):
        if len(train.y) > 1 and len(set(train.y)) == 1:
            raise ValueError("need two classes")
        return linear

    assert broken(agent) == ["one class"] and "need two classes" in message(agent, "one class")


def test_a_fixed_number_of_worlds_without_saying_so():
    class Seven:
        def worlds(self, seed, n):
            return lambda x: np.stack([linear(x, world) for world in range(7)])

    assert broken(agent_of(Seven())) == ["number of worlds"]
    assert "asked for 1 worlds" in message(agent_of(Seven()), "number of worlds")


def test_an_agent_that_only_this_process_knows(monkeypatch):
    module = types.ModuleType("known_only_here")
    module.agent = agent_of(linear)
    monkeypatch.setitem(sys.modules, "known_only_here", module)
    findings = {finding.name: finding for finding in check("known_only_here:agent")}
    assert [name for name, finding in findings.items() if not finding.ok] == ["worker process"]
    assert "cannot be imported" in findings["worker process"].message


def test_an_unknown_problem_is_the_users_mistake():
    with pytest.raises(CalibrantError, match="unknown problem"):
        check_agent(agent_of(linear), "testbead")
