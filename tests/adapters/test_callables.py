"""Whatever a user writes in NumPy becomes an agent, and its worlds are asked honestly."""

import dataclasses

import numpy as np
import pytest

from calibrant import registry
from calibrant.adapters import as_agent
from calibrant.adapters.answers import check_logits, check_weights
from calibrant.adapters.callables import BlackBoxAgent
from calibrant.protocols import Agent, Belief, Worlds
from calibrant.types import CalibrantError, Data, Facts

FACTS = Facts(inputs=2, classes=3, train_size=4, temperature=0.1, environment="the truth")
PADDED = Data(np.arange(12, dtype=np.float32).reshape(6, 2), np.array([0, 1, 2, 0, 9, 9], np.int32))
X = np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2)


def linear(x, seed):
    return x @ np.random.default_rng(seed).normal(size=(2, 3))


def sampled(seed, train, facts):
    return linear


def three_worlds(x):
    return np.stack([x @ np.full((2, 3), scale) for scale in (0.0, 1.0, 2.0)])


class FullBelief:
    """Two atoms, the second three times as likely."""

    atoms = 2

    def worlds(self, seed, n):
        assert n == self.atoms
        return Weighted()


class Weighted:
    weights = (1, 3)

    def __call__(self, x):
        return three_worlds(x)[:2]


def fit(obj, key=5):
    return as_agent(obj).fit(key, PADDED, FACTS)


def answers(returned, n=4):
    """What n worlds say when an agent returns this as its belief."""
    return fit(lambda seed, train, facts: returned).worlds(1, n)(X)


# --- what counts as an agent --------------------------------------------------------------------


class WithFit:
    def fit(self, seed, train, facts):
        return linear


def makes_an_agent(depth=1):
    return WithFit()


@pytest.mark.parametrize("obj", [WithFit, WithFit(), sampled, makes_an_agent, lambda seed, train, facts: linear])
def test_every_shape_of_agent_gives_the_same_belief(obj):
    agent = as_agent(obj)
    assert isinstance(agent, Agent) and agent.native is False
    belief = agent.fit(5, PADDED, FACTS)
    assert isinstance(belief, Belief) and isinstance(belief.worlds(1, 3), Worlds)
    np.testing.assert_array_equal(belief.worlds(1, 3)(X), fit(sampled).worlds(1, 3)(X))


def test_an_agent_of_ours_is_not_wrapped_twice():
    agent = as_agent(sampled)
    assert as_agent(agent) is agent


def test_native_agents_pass_through_unchanged():
    uniform = registry.resolve("agents", "uniform")
    assert as_agent(uniform) is uniform
    assert as_agent(type(uniform)) == uniform


def test_only_our_own_controls_are_told_the_truth():
    assert as_agent(registry.resolve("agents", "oracle")).privileged

    @dataclasses.dataclass(frozen=True)
    class Cheat:
        privileged = True

        def fit(self, seed, train, facts):
            assert facts.environment is None
            return linear

    agent = as_agent(Cheat())
    assert isinstance(agent, BlackBoxAgent) and not hasattr(agent, "privileged")
    agent.fit(0, PADDED, FACTS)


class NeedsArguments:
    def __init__(self, alpha):
        self.alpha = alpha


@pytest.mark.parametrize(
    ("obj", "sentence"),
    [
        (7, "type int is not an agent"),
        (lambda seed, train: None, "cannot be called as <lambda>\\(seed, train, facts\\)"),
        (NeedsArguments, "NeedsArguments cannot be made without arguments"),
        (lambda: lambda: 0, "makes a function without parameters"),
    ],
)
def test_what_is_no_agent_is_named_in_one_sentence(obj, sentence):
    with pytest.raises(CalibrantError, match=sentence):
        as_agent(obj)


# --- what it is given ----------------------------------------------------------------------------


def test_users_get_plain_unpadded_private_copies():
    seen = {}

    def agent(seed, train, facts):
        seen.update(seed=seed, train=train, facts=facts)
        train.x[:] = np.nan
        train.y[:] = -1
        return linear

    before = PADDED.x.copy(), PADDED.y.copy()
    facts = dataclasses.replace(FACTS, train_size=np.int32(4), temperature=np.float32(0.5))
    as_agent(agent).fit(2**80 + 3, PADDED, facts)
    np.testing.assert_array_equal(PADDED.x, before[0])
    np.testing.assert_array_equal(PADDED.y, before[1])
    assert seen["seed"] == 3 and type(seen["seed"]) is int
    assert seen["train"].x.shape == (4, 2) and seen["train"].x.dtype == np.float32
    assert seen["train"].y.shape == (4,) and seen["train"].y.dtype == np.int64
    assert type(seen["facts"].train_size) is int and type(seen["facts"].temperature) is float
    assert seen["facts"].environment is None


def test_jax_arrays_arrive_as_numpy():
    import jax.numpy as jnp

    def agent(seed, train, facts):
        assert type(train.x) is np.ndarray and type(train.y) is np.ndarray
        return linear

    belief = as_agent(agent).fit(0, Data(jnp.asarray(PADDED.x), jnp.asarray(PADDED.y)), FACTS)
    assert belief.worlds(0, 2)(jnp.asarray(X)).shape == (2, 5, 3)


# --- what it believes ----------------------------------------------------------------------------


def test_a_sampler_is_one_world_for_each_seed():
    belief = fit(sampled)
    worlds = belief.worlds(8, 50)
    together = worlds(X)
    assert belief.atoms is None and together.shape == (50, 5, 3) and together.dtype == np.float32
    np.testing.assert_allclose(worlds(X[::-1])[:, ::-1], together, rtol=1e-6)
    assert len(np.unique(together[:, 0, 0])) == 50
    assert not np.allclose(belief.worlds(9, 50)(X), together)


def test_seeds_of_worlds_never_repeat_and_fit_every_generator():
    seen = []

    def sampler(x, seed):
        seen.append(seed)
        return np.zeros((len(x), 3))

    fit(lambda seed, train, facts: sampler).worlds(3, 20000)(X[:1])
    assert len(set(seen)) == 20000 and min(seen) >= 0 and max(seen) < 2**32


def test_a_coin_is_not_scored_as_a_constant():
    """A NumPy sampler that flips between logits of +3 and -3 per world: both functions have to be among the worlds.

    Of 200 fair flips, fewer than 60 or more than 140 show one side with probability below 1e-8.
    """

    def coin(seed, train, facts):
        def sampler(x, seed):
            side = np.random.default_rng(seed).choice([-3.0, 3.0])
            return np.tile([side, 0.0, 0.0], (len(x), 1))

        return sampler

    sides = fit(coin).worlds(0, 200)(X)[:, :, 0]
    assert (sides == sides[:, :1]).all()
    assert 60 <= (sides[:, 0] == 3).sum() <= 140


def test_a_coin_with_its_own_generator_is_called_once_for_every_world():
    calls = []

    def coin(seed, train, facts):
        rng = np.random.default_rng(seed)

        def sampler(x, seed):
            calls.append(seed)
            return np.full((len(x), 3), rng.choice([-3.0, 3.0]))

        return sampler

    sides = fit(coin).worlds(0, 200)(X)[:, 0, 0]
    assert len(calls) == 200 and set(sides) == {-3.0, 3.0}


def test_a_finite_set_is_enumerated_whatever_number_is_asked():
    belief = fit(lambda seed, train, facts: three_worlds)
    assert belief.atoms == 3
    for n in (1, 3, 1000):
        np.testing.assert_allclose(belief.worlds(0, n)(X), three_worlds(X), rtol=1e-6)


def test_a_full_belief_keeps_its_atoms_and_weights():
    belief = fit(lambda seed, train, facts: FullBelief())
    worlds = belief.worlds(0, 1000)
    assert belief.atoms == 2 and worlds(X).shape == (2, 5, 3)
    np.testing.assert_allclose(worlds.weights, [0.25, 0.75])


def test_a_full_belief_without_atoms_is_sampled():
    class Sampled:
        def worlds(self, seed, n):
            return lambda x: np.stack([linear(x, seed + world) for world in range(n)])

    belief = fit(lambda seed, train, facts: Sampled())
    assert belief.atoms is None and belief.worlds(0, 6)(X).shape == (6, 5, 3)


def test_a_sampler_with_a_default_seed_is_still_a_sampler():
    assert fit(lambda seed, train, facts: lambda x, seed=0: linear(x, seed)).atoms is None
    assert fit(lambda seed, train, facts: lambda x, scale=1.0: scale * three_worlds(x)).atoms == 3


# --- what is refused -----------------------------------------------------------------------------


def refuses_grad(*args, **kwargs):
    raise RuntimeError("call detach() first")


class Unconvertible:
    __array__ = refuses_grad


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (None, "fit returned an object of type NoneType"),
        (lambda *args: 0, "could be anything; name its parameters"),
        (lambda x, seed: np.zeros((len(x), 2)), r"answer of world 0 has shape \[5, 2\]; expected \[5, 3\]"),
        (lambda x, seed: np.zeros(len(x)), r"has shape \[5\]; expected \[5, 3\]"),
        (lambda x, seed: np.full((len(x), 3), np.nan), r"world 0, of shape \[5, 3\], holds NaN"),
        (lambda x, seed: np.full((len(x), 3), -np.inf), "expected finite logits"),
        (lambda x, seed: np.full((len(x), 3), 1e300), "beyond single precision"),
        (lambda x, seed: np.full((len(x), 3), "a"), "holds <U1; expected real numbers"),
        (lambda x, seed: np.zeros((len(x), 3), complex), "holds complex128"),
        (lambda x, seed: Unconvertible(), "should be a NumPy array, not an object of type Unconvertible: call detach"),
        (lambda x: np.zeros((len(x), 3)), r"one input with shape \[1, 3\]; expected \[worlds, 1, 3\]"),
        (lambda x: np.zeros((len(x), len(x), 3)), r"has shape \[5, 5, 3\]; expected \[1, 5, classes\]"),
        (lambda x, seed: x.__imul__(2) @ np.ones((2, 3)), "changed its inputs x in place"),
    ],
)
def test_wrong_answers_are_one_sentence(returned, sentence):
    with pytest.raises(CalibrantError, match=sentence) as caught:
        answers(returned)
    assert "\n" not in str(caught.value)


def test_the_world_that_goes_wrong_is_named():
    count = iter(range(100))

    def sampler(x, seed):
        return np.full((len(x), 3), np.nan if next(count) == 2 else 0.0)

    with pytest.raises(CalibrantError, match="the answer of world 2"):
        answers(sampler)


@pytest.mark.parametrize("atoms", [0, -1, 2.0, True, "three"])
def test_atoms_are_a_number_of_worlds(atoms):
    belief = FullBelief()
    belief.atoms = atoms
    with pytest.raises(CalibrantError, match="expected a number of worlds"):
        answers(belief)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0], ["a", "b"]])
def test_weights_are_probabilities(weights):
    with pytest.raises(CalibrantError, match="weights"):
        check_weights(weights, 2)


def test_integers_are_logits_too():
    assert check_logits(np.ones((1, 2), int), (1, 2), "it").dtype == np.float32


def test_a_file_names_an_agent_with_parameters(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\nimport numpy as np\n\n"
        "@dataclass(frozen=True)\nclass Agent:\n    alpha: float = 1.0\n\n"
        "    def fit(self, seed, train, facts):\n"
        "        return lambda x, seed: np.full((len(x), facts.classes), self.alpha)\n"
    )
    agent = as_agent(registry.resolve("agents", f"{file}:Agent?alpha=3"))
    assert (agent.fit(0, PADDED, FACTS).worlds(0, 2)(X) == 3).all()
