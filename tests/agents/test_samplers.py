"""Full-batch samplers draw from the posterior: on logistic regressions against a grid, on networks against the prior
reweighted by the likelihood. What does not work is told.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from calibrant import registry, seeds
from calibrant.agents.hmc import Hmc
from calibrant.agents.mclmc import Mclmc
from calibrant.agents.nuts import Nuts
from calibrant.stats.chains import effective_sample_size
from calibrant.types import Array, CalibrantError, Data, Facts

CHAINS, DRAWS = 4, 500
SAMPLERS = {
    "hmc": Hmc(draws=DRAWS, thin=1, warmup=150),
    "nuts": Nuts(draws=DRAWS, thin=1, warmup=150, prior="adaptive", prior_variance=3.0),
    "mclmc": Mclmc(draws=DRAWS, thin=10, warmup=2000),
}
ERRORS = 5  # standard errors allowed: with their own errors and some skewness, a false alarm in 1e5 comparisons


def moments_agree(values: Array, mean: Array, variance: Array, bias: float) -> None:
    """Of draws [all, quantities], by their effective sample sizes; `bias` is in posterior standard deviations."""
    for seen, known, unit in (
        (values, mean, np.sqrt(variance)),
        ((values - mean) ** 2, variance, variance),
    ):
        size = np.asarray(effective_sample_size(seen.reshape(CHAINS, DRAWS, -1)))
        allowed = ERRORS * seen.std(axis=0) / np.sqrt(size) + bias * unit
        assert (np.abs(seen.mean(axis=0) - known) < allowed).all()


# --- logistic regression ------------------------------------------------------------------------

X = np.array([[-1.5], [-1.0], [-0.6], [-0.2], [0.3], [0.4], [1.1], [1.7], [9.0], [9.0]], np.float32)
Y = np.array([0, 0, 1, 0, 1, 0, 1, 1, 0, 1], np.int32)  # the last two rows are padding
SIZES, TEMPERATURES = np.array([8, 3]), np.array([0.5, 1.0], np.float32)
ASKED = np.array([-2.0, -0.5, 0.5, 2.0])


def grid_moments(size: int, variance: float) -> tuple[Array, Array]:
    """Mean and variance of the logit w x + b at the inputs asked, when two classes' parameters have `variance` each."""
    half = 6 * np.sqrt(2 * variance)
    w, b = np.meshgrid(np.linspace(-half, half, 801), np.linspace(-half, half, 801), indexing="ij")
    signs = np.where(Y[:size] == 1, 1, -1)
    logp = -(w**2 + b**2) / (2 * 2 * variance)
    for x, sign in zip(X[:size, 0], signs, strict=True):
        logp -= np.logaddexp(0, -sign * (w * x + b))
    weight = np.exp(logp - logp.max())
    weight /= weight.sum()
    logits = [w * x + b for x in ASKED]
    means = np.array([(weight * logit).sum() for logit in logits])
    return means, np.array([(weight * (logit - m) ** 2).sum() for logit, m in zip(logits, means, strict=True)])


@pytest.mark.parametrize("name", SAMPLERS)
def test_bayesian_logistic_regression(name: str) -> None:
    """Two cells side by side, of different sizes and temperatures: two moments at four inputs each.

    `mclmc` is not corrected for its integrator: a bias of 0.05 standard deviations is allowed.
    """
    agent = replace(SAMPLERS[name], hidden=())

    @jax.jit
    @jax.vmap
    def fit(key: Any, size: Array, temperature: Array) -> Any:
        return agent.fit(key, Data(X, Y), Facts(inputs=1, classes=2, train_size=size, temperature=temperature))

    beliefs = fit(jax.random.split(seeds.jax_key("logistic", name), 2), SIZES, TEMPERATURES)
    for cell, (size, temperature) in enumerate(zip(SIZES, TEMPERATURES, strict=True)):
        belief = jax.tree.map(lambda leaf, cell=cell: leaf[cell], beliefs)
        (weight, bias), *_ = jax.tree.map(np.asarray, belief.params)
        logits = (weight[:, 1] - weight[:, 0]) * ASKED + (bias[:, 1] - bias[:, 0])[:, None]
        variance = 3.0 / (2 * np.sqrt(temperature)) if agent.prior == "adaptive" else 1 / temperature**2
        assert belief.atoms == CHAINS * DRAWS
        moments_agree(logits, *grid_moments(int(size), variance), bias=0.05 if name == "mclmc" else 0)
        assert belief.diagnostics["diverged_at"] == -1
        assert belief.diagnostics["divergences"] == 0
        assert belief.diagnostics["rhat"] < 1.05
        assert 200 < belief.diagnostics["ess"] <= CHAINS * DRAWS


# --- a network ----------------------------------------------------------------------------------

FACTS = Facts(inputs=2, classes=3, train_size=6, temperature=0.5, hidden=(4, 3))
RNG = np.random.default_rng(3)
TRAIN = Data(RNG.normal(size=(10, 2)).astype(np.float32), RNG.integers(3, size=10).astype(np.int32))
POINTS = RNG.normal(size=(5, 2)).astype(np.float32)


@jax.jit
def probabilities(belief: Any) -> Array:
    return jax.nn.softmax(belief.worlds(seeds.jax_key(0), CHAINS * DRAWS)(jnp.asarray(POINTS)))


@functools.cache
def reweighted(prior: str, variance: float) -> tuple[Array, Array]:
    """Posterior mean of the probabilities at the points [5, 3], and its error, by 200000 draws of the prior."""
    posterior = Hmc(prior=prior, prior_variance=variance).posterior(TRAIN, FACTS)  # type: ignore[arg-type]

    def look(z: Array) -> tuple[Array, Array]:
        return jax.nn.softmax(posterior.network(posterior.params(z), POINTS)), posterior(z) + 0.5 * (z**2).sum()

    draws = np.random.default_rng(4).normal(size=(200_000, posterior.network.parameters)).astype(np.float32)
    seen, logp = jax.tree.map(np.asarray, jax.jit(jax.vmap(look))(draws))
    weight = np.exp(logp - logp.max(), dtype=np.float64)
    weight /= weight.sum()
    mean = np.einsum("n,npc->pc", weight, seen)
    return mean, np.sqrt(np.einsum("n,npc->pc", weight**2, (seen - mean) ** 2))


@pytest.mark.parametrize("name", ["hmc", "mclmc"])
def test_a_network(name: str) -> None:
    """Fifteen probabilities; `mclmc` may be off by a hundredth of one."""
    agent = SAMPLERS[name]
    belief = jax.jit(lambda key: agent.fit(key, TRAIN, FACTS))(seeds.jax_key("network", name))
    found = np.asarray(probabilities(belief))
    mean, error = reweighted(agent.prior, agent.prior_variance)
    size = np.asarray(effective_sample_size(found.reshape(CHAINS, DRAWS, *mean.shape)))
    allowed = ERRORS * np.sqrt(error**2 + found.var(axis=0) / size) + (0.01 if name == "mclmc" else 0)
    assert (allowed < 0.1).all()  # else the comparison would say nothing
    assert (np.abs(found.mean(axis=0) - mean) < allowed).all()
    assert belief.diagnostics["rhat"] < 1.1
    if name == "hmc":
        assert 0.6 < belief.diagnostics["acceptance"] <= 1


# --- what does not work is told -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["hmc", "mclmc"])
def test_steps_that_are_given(name: str) -> None:
    """Far too long, and the chains diverge from the first kept transition on; far too short, and they never meet."""
    agent = replace(SAMPLERS[name], draws=20, thin=3, warmup=7)  # nine transitions before the first that counts

    @jax.jit
    def fit(step: Array) -> Any:
        return replace(agent, step_size=step).fit(seeds.jax_key("steps"), TRAIN, FACTS)

    for step, diverged_at, divergences in ((1e4, 9, 1), (1e-6, -1, 0)):
        belief = fit(step)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(belief))
        told = {word: float(value) for word, value in belief.diagnostics.items()}
        assert told["step_size"] == pytest.approx(step)
        assert (told["diverged_at"], told["divergences"]) == (diverged_at, divergences)
        assert told["rhat"] > 5
        assert told["ess"] < 20


@pytest.mark.parametrize(
    ("sampler", "parameter"),
    [
        ("hmc:Hmc", "acceptance=1"),
        ("hmc:Hmc", "leapfrog=0"),
        ("hmc:Hmc", "step_size=-1"),
        ("nuts:Nuts", "prior=laplace"),
        ("nuts:Nuts", "draws=3"),
        ("mclmc:Mclmc", "energy_variance=0"),
    ],
)
def test_impossible_parameters_are_refused(sampler: str, parameter: str) -> None:
    with pytest.raises(CalibrantError, match=parameter):
        registry.resolve("agents", f"calibrant.agents.{sampler}?{parameter}")


def test_specs_print_back() -> None:
    spec = "hmc:Hmc?prior=adaptive&prior_variance=0.1&step_size=0.02&hidden=8x8&leapfrog=16"
    agent = registry.resolve("agents", f"calibrant.agents.{spec}")
    assert registry.changed(agent) == dict(part.split("=") for part in spec.partition("?")[2].split("&"))
    assert agent.networks == 4
