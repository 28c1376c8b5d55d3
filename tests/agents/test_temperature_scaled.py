"""Temperature scaling: the search, the split, nested specs, and both kinds of wrapped agents."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from calibrant import registry
from calibrant.adapters import as_agent
from calibrant.agents.temperature_scaled import TemperatureScaled, best_temperature, shuffled_rows
from calibrant.engine.cohorts import make_tasks
from calibrant.engine.plan import make_cell
from calibrant.types import Array, CalibrantError, Data, Facts

NAME = "calibrant.agents.temperature_scaled:TemperatureScaled"
KEY = jax.random.key(0)
FACTS = Facts(inputs=2, classes=2, train_size=40, temperature=0.5, hidden=(8,))
X = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
Y = (X[:, 0] + 0.7 * np.random.default_rng(1).normal(size=100) > 0).astype(np.int32)
DATA = Data(X, Y)  # of which forty rows count


# --- the search ---------------------------------------------------------------------------------


def loss(
    temperature: float, logits: Array, labels: Array, judged: Array, spread: float, weights: Array | None
) -> float:
    logp = log_softmax(logits.astype(np.float64) / temperature, axis=-1)[:, np.arange(len(labels)), labels]
    shares = np.full(len(logits), 1 / len(logits)) if weights is None else weights
    likely = logsumexp(logp, axis=0, b=shares[:, None])[judged].sum()
    return float((np.log(temperature) / spread) ** 2 / 2 - likely)


@pytest.mark.parametrize(("worlds", "classes", "scale", "spread"), [(1, 2, 5, 1e3), (7, 3, 0.3, 1e3), (4, 2, 8, 0.5)])
def test_the_temperature_is_that_of_a_fine_grid(worlds: int, classes: int, scale: float, spread: float) -> None:
    random = np.random.default_rng(worlds)
    logits = scale * random.normal(size=(worlds, 60, classes))
    labels = np.argmax(logits.mean(0) / scale + random.gumbel(size=(60, classes)), axis=1)
    judged = random.uniform(size=60) < 0.7
    weights = None if worlds == 1 else random.dirichlet(np.ones(worlds))
    found = float(best_temperature(jnp.asarray(logits, jnp.float32), jnp.asarray(labels), judged, spread, weights))
    grid = np.exp(np.linspace(np.log(0.05), np.log(20), 4001))
    losses = [loss(one, logits, labels, judged, spread, weights) for one in grid]
    assert found == pytest.approx(grid[int(np.argmin(losses))], rel=5e-3)


def test_an_overconfident_belief_is_cooled_by_what_it_overdoes() -> None:
    """Labels drawn from softmax(logits / 4), 4000 of them: the estimate's standard error is 0.03 of the logarithm.

    Five of them: a false alarm below 1e-6.
    """
    random = np.random.default_rng(5)
    logits = 4 * random.normal(size=(1, 4000, 3)) * 2
    labels = np.argmax(logits[0] / 4 + random.gumbel(size=(4000, 3)), axis=1)
    found = best_temperature(jnp.asarray(logits), jnp.asarray(labels), jnp.ones(4000, bool), 1e3)
    assert abs(np.log(float(found) / 4)) < 0.15


def test_rows_are_shuffled_and_padding_stays_last() -> None:
    order = np.asarray(shuffled_rows(KEY, 40, 100))
    assert sorted(order[:40]) == list(range(40))
    assert list(order[40:]) == list(range(40, 100))
    assert list(order[:40]) != sorted(order[:40])


# --- a native agent inside ----------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames="rows")
def fit(agent: TemperatureScaled, size: int, labels: Array = Y, rows: int = 100) -> Any:
    return agent.fit(KEY, Data(jnp.asarray(X[:rows]), labels[:rows]), replace(FACTS, train_size=size))


def test_logits_are_those_of_the_wrapped_agent_divided() -> None:
    agent = TemperatureScaled("ensemble?size=3%26steps=50%26lr=0.05%26l2=0.01")
    belief = fit(agent, 40)
    alone = jax.jit(lambda key: agent.wrapped.fit(key, DATA, FACTS))(jax.random.split(KEY, 4)[3])
    temperature = float(belief.temperature)
    assert belief.atoms == 3
    assert temperature > 1.1  # small networks trained hard on forty noisy rows are sure of themselves
    np.testing.assert_allclose(belief.worlds(KEY, 3)(X) * temperature, alone.worlds(KEY, 3)(X), rtol=1e-3, atol=1e-3)
    assert belief.diagnostics["softmax_temperature"] == belief.temperature


def test_held_out_rows_teach_only_the_temperature() -> None:
    agent = TemperatureScaled("mlp?steps=50", refit=False, held_out=0.25)
    order = np.asarray(shuffled_rows(jax.random.split(KEY, 4)[0], 40, 100))
    swapped = Y.copy()
    swapped[order[30:40]] = 1 - Y[order[30:40]]
    first, second = fit(agent, 40), fit(agent, 40, swapped)
    for one, other in zip(jax.tree.leaves(first.belief), jax.tree.leaves(second.belief), strict=True):
        np.testing.assert_array_equal(one, other)
    assert second.temperature > first.temperature  # wrong labels call for doubt
    swapped[order[40:]] = 1 - Y[order[40:]]
    assert fit(agent, 40, swapped).temperature == second.temperature  # padding is not read


def test_few_rows_are_all_learnt_from() -> None:
    agent = TemperatureScaled("mlp?steps=50", refit=False, at_least=10)
    belief = fit(agent, 9)
    assert belief.temperature == 1
    order = np.asarray(shuffled_rows(jax.random.split(KEY, 4)[0], 9, 100))
    fitting = jax.random.split(KEY, 4)[1]
    alone = jax.jit(lambda: agent.wrapped.fit(fitting, Data(X[order], Y[order]), replace(FACTS, train_size=9)))()
    np.testing.assert_allclose(belief.worlds(KEY, 1)(X), alone.worlds(KEY, 1)(X), rtol=1e-4, atol=1e-4)
    assert fit(agent, 10).temperature != 1


def test_sampled_beliefs_stay_sampled() -> None:
    belief = fit(TemperatureScaled("bbb?steps=20"), 40)
    assert belief.atoms is None
    one, other = belief.worlds(KEY, 2)(X)
    assert np.abs(one - other).max() > 1e-4


# --- a black box inside -------------------------------------------------------------------------


SURE = """
from dataclasses import dataclass
import numpy as np

class Worlds:
    weights = np.array([0.75, 0.25])
    def __init__(self, sharpness):
        self.sharpness = sharpness
    def __call__(self, x):
        first = self.sharpness * np.stack([-x[:, 0], x[:, 0]], axis=1)
        return np.stack([first, 0.5 * first])

@dataclass(frozen=True)
class Sure:
    sharpness: float = 50.0
    def fit(self, seed, train, facts):
        assert isinstance(train.x, np.ndarray) and len(train.x) == facts.train_size
        return Worlds(self.sharpness)
"""


def test_a_black_box_is_wrapped(tmp_path: Path) -> None:
    """Two weighted worlds that are far too sure of what they say, when every fourth label is wrong."""
    noisy = Data(X, np.where(np.arange(100) % 4 == 0, 1 - Y, Y))
    path = tmp_path / "sure.py"
    path.write_text(SURE)
    spec = f"{NAME}?spread=100&held_out=0.5&agent={path}:Sure%3Fsharpness=30"
    agent: Any = as_agent(registry.resolve("agents", spec))
    assert not agent.native
    belief = agent.fit(3, noisy, FACTS)
    worlds = belief.worlds(4, 10)
    logits = worlds(X)
    assert belief.atoms == 2
    np.testing.assert_allclose(worlds.weights, [0.75, 0.25])
    temperature = 30 * X[0, 0] / logits[0, 0, 1]
    assert 3 < temperature < 20.1
    np.testing.assert_allclose(logits[0, :, 1], 30 * X[:, 0] / temperature, rtol=1e-4)
    np.testing.assert_allclose(logits[1], logits[0] / 2, rtol=1e-4)
    np.testing.assert_array_equal(agent.fit(3, noisy, FACTS).worlds(4, 10)(X), logits)


# --- specs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("", ""),
        ("?agent=mlp", ""),
        ("?agent=mlp%3Fl2=1.0", ""),
        ("?agent=mlp?l2=3", "?agent=mlp%3Fl2=3"),
        ("?agent=ensemble%2B%3Fsize=30%26l2=3.0&refit=false", "?agent=ensemble+%3Fl2=3%26size=30&refit=false"),
        (f"?agent={NAME}%3Fagent=mlp%253Fl2=3", None),
    ],
)
def test_a_spec_inside_a_spec_has_one_spelling(given: str, canonical: str | None) -> None:
    written = registry.canonical("agents", NAME + given)
    assert registry.canonical("agents", written) == written
    assert registry.resolve("agents", written) == registry.resolve("agents", NAME + given)
    if canonical is not None:
        assert written.partition("@")[2].partition("?")[2] == canonical.removeprefix("?")


def test_the_innermost_agent_of_a_nest_is_reached() -> None:
    nest = registry.resolve("agents", f"{NAME}?agent={NAME}%3Fagent=mlp%253Fl2=3")
    assert nest.wrapped.wrapped.l2 == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("?agent=ensembel", "unknown agent 'ensembel', did you mean 'ensemble'"),
        ("?agent=mlp%3Fl2=-1", "l2=-1 in 'mlp\\?l2=-1': it should be greater than or equal to 0"),
        ("?agent=oracle", "'oracle' is told the truth"),
        ("?held_out=1", "it should be less than 1"),
        ("?spread=0", "it should be greater than 0"),
    ],
)
def test_what_cannot_be_wrapped_is_refused_when_it_is_named(given: str, message: str) -> None:
    with pytest.raises(CalibrantError, match=message):
        registry.resolve("agents", NAME + given)


def test_cells_that_differ_by_numbers_share_a_program() -> None:
    cells = [make_cell("testbed", registry.canonical("agents", f"{NAME}?agent=mlp%3Fl2={l2}"), 0) for l2 in (1, 3)]
    cells.append(make_cell("testbed", registry.canonical("agents", f"{NAME}?agent=mlp%3Fsteps=10"), 0))
    assert [len(task.cells) for task in make_tasks(cells)] == [2, 1]


def test_the_wrapped_agents_defaults_are_part_of_a_cells_identity() -> None:
    version = TemperatureScaled("mlp").version
    assert version["wrapped"]["steps"] == "1000"
    assert version["wrapped"]["name"] == "mlp"
