"""The Bayes floor: a nearly exact posterior under the law that environments are really drawn from.

Tempered sequential Monte Carlo (Del Moral, Doucet and Jasra, "Sequential Monte Carlo Samplers", JRSS B 2006) carries
particles from the prior through  p_b(u) ~ N(u; 0, I) likelihood(u)^b,  b = 0 .. 1.  The next b is the largest at which
every island keeps an effective share `keep` of its particles (bisection); particles are then resampled within their
island and moved. Islands share nothing but b and the step, so what they disagree about is Monte-Carlo error.

Coordinates. Every weight is a smooth function of its own standard normal number u, so the prior is exactly N(0, I).

Moves. Hamiltonian Monte Carlo, split after Shahbaba et al., "Split Hamiltonian Monte Carlo" (2014): the prior's motion
is solved exactly, as a rotation of (u, momentum), and only the likelihood kicks. Its error, and with it the acceptance,
depends on the data and not on the thousands of weights. The step follows the acceptance from sweep to sweep. How far
512 particles of the posterior forget their predictions in one CPU second (correlation with those before):

    training points, temperature    10, 0.01   30, 0.01   30, 0.1   30, 0.5   100, 0.1
    trajectories of ten kicks           0.13       0.08      0.00      0.04       0.12
    trajectories of thirty              0.08       0.11      0.05      0.07       0.30
    elliptical slice sampling           0.19       0.39      0.01      0.04       0.57
    Crank-Nicolson, best step           0.10       0.19      0.00      0.02       0.26

The loop is written here and not taken from blackjax: a sweep has to run in groups of particles that fit the cache (all
side by side take half as long again), by the split integrator, and only over the blocks of rows that hold data.

Diagnostics, in function space, from predicted probabilities at fixed inputs: `rhat`, the worst Gelman-Rubin ratio over
islands; `ess`, how many independent draws would make island means differ as much as they do; `ancestors`, the share of
prior draws with a descendant; `acceptance` in the last sweep; `stages`; and `converged`, 1 or 0.

There are a few more particles than the thousand worlds that are asked for, because the posterior is continuous: worlds
are then a sample of it, and the bias that their number causes (half a nat at one training point and temperature 0.01,
next to nothing from ten points on) is estimated with the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, Gt, Lt
from jax.flatten_util import ravel_pytree

from calibrant.agents.prior import Tempered
from calibrant.nets.mlp import Mlp, Params, generative_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import Diagnostics, FiniteBelief
from calibrant.train.likelihoods import cross_entropy
from calibrant.train.loop import GROUP, in_groups
from calibrant.types import Array, CalibrantError, Data, Facts, Key

LEAPS = 10  # kicks of a trajectory
WIDEST = np.pi / 2 / LEAPS  # a quarter turn forgets where it started; more would come back
WANTED = 0.7  # acceptance that the step aims at
BLOCK = 32  # rows of training data evaluated at a time, or a tenth of the padded rows
BISECTIONS = 30
PROBES = 64  # inputs at which islands are compared
NEGLIGIBLE = 1e-4  # variance of a probability below which a disagreement is of no account

RHAT, ESS_SHARE, ACCEPTANCE = 1.1, 0.1, 0.3  # what `converged` asks for

Evaluate = Callable[[Any], "Point"]
Draw = Callable[[Key], Any]


class Point(NamedTuple):
    """A particle: where it is, and the log-likelihood there with its gradient."""

    u: Any
    loglik: Array
    slope: Any


class Swarm(NamedTuple):
    """All islands' particles on their way from the prior to the posterior; leaves of `points` are [particles, ...]."""

    points: Point
    ancestors: Array  # [particles] which draw of the prior each one descends from
    beta: Array
    step: Array
    acceptance: Array
    stage: Array
    forced: Array  # whether the last stage had to leap further than `keep` allows


@tree
@dataclass(frozen=True)
class Bayes:
    """Floor: nearly exact posterior under the true generative prior, by tempered SMC (Del Moral et al., 2006)."""

    islands: Annotated[int, Ge(2)] = static(4)
    particles: Annotated[int, Ge(2)] = static(256)  # of each island
    sweeps: Annotated[int, Ge(1)] = 3  # trajectories of every particle at each stage
    final: Annotated[int, Ge(1)] = 15  # trajectories at the last stage
    stages: Annotated[int, Ge(1)] = 40  # at most: the last one goes to the posterior in any case
    keep: Annotated[float, Gt(0), Lt(1)] = 0.5

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> FiniteBelief:
        if facts.law != "network":
            raise CalibrantError(f"agent 'bayes' knows environments that are networks, not {facts.law}")
        network, count = generative_network(facts), self.islands * self.particles
        evaluate, draw = likelihood_of(network, train, facts), noise_of(network)
        birth, life = jax.random.split(key)
        origin = jax.vmap(draw)(jax.random.split(birth, count))
        start = Swarm(
            in_groups(evaluate, origin, count),
            jnp.arange(count),
            *map(jnp.asarray, (0.0, WIDEST, 0.0, 0, False)),
        )

        def stage(swarm: Swarm) -> Swarm:
            choosing, moving = jax.random.split(jax.random.fold_in(life, swarm.stage))
            return self._move(moving, self._choose(choosing, swarm), evaluate, draw)

        swarm = jax.lax.while_loop(lambda swarm: swarm.beta < 1, stage, start)
        layers = jax.vmap(lambda u: weights_of(network, u))(swarm.points.u)
        params = (layers, jnp.full(count, facts.temperature))
        return FiniteBelief(params, Tempered(network), self._diagnose(params, Tempered(network), swarm, facts))

    @property
    def networks(self) -> int:
        return GROUP  # particles run in groups of this size: cells gain nothing from running side by side

    def _choose(self, key: Key, swarm: Swarm) -> Swarm:
        """The next temperature, and particles resampled (systematically, island by island) for it."""
        loglik = swarm.points.loglik.reshape(self.islands, self.particles)

        def weights(beta: Array) -> Array:
            return jax.nn.softmax((beta - swarm.beta) * loglik, axis=1)

        def allowed(beta: Array) -> Array:
            return (1 / (weights(beta) ** 2).sum(1)).min() >= self.keep * self.particles

        def bisect(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = (low + high) / 2
            good = allowed(middle)
            return jnp.where(good, middle, low), jnp.where(good, high, middle)

        one, last = jnp.ones(()), swarm.stage == self.stages - 1
        arrived = allowed(one)
        beta = jax.lax.fori_loop(0, BISECTIONS, bisect, (swarm.beta, one))[0]
        beta = jnp.where(arrived | last, one, beta)
        shelves = jnp.cumsum(weights(beta), axis=1)
        marks = (jnp.arange(self.particles) + jax.random.uniform(key, (self.islands, 1))) / self.particles
        chosen = jax.vmap(jnp.searchsorted)(shelves, marks * shelves[:, -1:])
        chosen = jnp.minimum(chosen, self.particles - 1) + self.particles * jnp.arange(self.islands)[:, None]
        points, ancestors = jax.tree.map(lambda leaf: leaf[chosen.ravel()], (swarm.points, swarm.ancestors))
        return swarm._replace(
            points=points, ancestors=ancestors, beta=beta, stage=swarm.stage + 1, forced=last & ~arrived
        )

    def _move(self, key: Key, swarm: Swarm, evaluate: Evaluate, draw: Draw) -> Swarm:
        count = len(swarm.ancestors)

        def sweep(index: Array, swarm: Swarm) -> Swarm:
            keys = jax.random.split(jax.random.fold_in(key, index), count)

            def one(member: tuple[Point, Key]) -> tuple[Point, Array]:
                return trajectory(*member, swarm.beta, swarm.step, evaluate, draw)

            points, chances = in_groups(one, (swarm.points, keys), count)
            acceptance = chances.mean()
            step = jnp.minimum(swarm.step * jnp.exp(acceptance - WANTED), WIDEST)
            return swarm._replace(points=points, step=step, acceptance=acceptance)

        moved: Swarm = jax.lax.fori_loop(0, jnp.where(swarm.beta < 1, self.sweeps, self.final), sweep, swarm)
        return moved

    def _diagnose(self, params: Any, network: Tempered, swarm: Swarm, facts: Facts) -> Diagnostics:
        inputs = jax.random.normal(jax.random.key(0), (PROBES, facts.inputs))
        count = len(swarm.ancestors)
        seen = in_groups(lambda member: jax.nn.softmax(network(member, inputs)), params, count)
        rhat, ess = agreement(seen.reshape(self.islands, self.particles, -1))
        good = (rhat < RHAT) & (ess >= ESS_SHARE * count) & (swarm.acceptance >= ACCEPTANCE) & ~swarm.forced
        alive = jnp.zeros(count).at[swarm.ancestors].set(1.0)
        numbers = {"ancestors": alive.mean(), "acceptance": swarm.acceptance, "stages": swarm.stage}
        return {"rhat": rhat, "ess": ess, "converged": good.astype(jnp.float32)} | numbers


# --- the target: standard normal numbers, what they stand for, and their likelihood -------------------


def noise_of(network: Mlp) -> Draw:
    """Draws (first bias, weights of each layer) as standard normal numbers: the prior, or a momentum."""
    shapes = list(zip(network.sizes[1:], network.sizes[:-1], strict=True))
    flat, unravel = ravel_pytree((np.zeros(network.sizes[1], np.float32), [np.zeros(s, np.float32) for s in shapes]))
    return lambda key: unravel(jax.random.normal(key, flat.shape))


def weights_of(network: Mlp, u: Any) -> Params:
    """The network that standard normal numbers stand for."""
    bias, numbers = u
    law = LAWS[network.init_law]
    biases = [bias / np.sqrt(network.sizes[0]), *(jnp.zeros(len(number)) for number in numbers[1:])]
    return tuple((law(number, *number.shape), shift) for number, shift in zip(numbers, biases, strict=True))


def likelihood_of(network: Mlp, train: Data, facts: Facts) -> Evaluate:
    """Log-likelihood and gradient over the blocks of rows that hold data: padding costs nothing."""
    x, y = jnp.asarray(train.x), jnp.asarray(train.y)
    block = min(len(x), max(BLOCK, len(x) // 10))
    blocks = (facts.train_size + block - 1) // block

    def loglik(layers: Params, index: Array) -> Array:
        rows = index * block + jnp.arange(block)
        at = jnp.minimum(rows, facts.train_size - 1)
        losses = cross_entropy(network(layers, x[at]) / facts.temperature, y[at])
        return -jnp.where(rows < facts.train_size, losses, 0.0).sum()

    def evaluate(u: Any) -> Point:
        layers, pull = jax.vjp(lambda u: weights_of(network, u), u)

        def add(index: Array, total: tuple[Array, Params]) -> tuple[Array, Params]:
            value, slope = jax.value_and_grad(loglik)(layers, index)
            return total[0] + value, jax.tree.map(jnp.add, total[1], slope)

        nothing = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, layers))
        value, slope = jax.lax.fori_loop(0, blocks, add, nothing)
        return Point(u, value, pull(slope)[0])

    return evaluate


def cut_normal(u: Array) -> Array:
    """The quantile map from a standard normal to one cut at +-2, within 1e-6 (a rational fit in u^2, |u| <= 5).

    The exact composition of a distribution function and an inverse would take two thirds of the time of the network.
    """
    u = jnp.clip(u, -5, 5)
    return u * jnp.polyval(_ABOVE, u * u) / jnp.polyval(_BELOW, u * u)


_ABOVE = np.array([1.56082126e-6, 2.20886481e-4, -4.14736e-4, 0.0260373635, -0.0635443277, 0.954504581], np.float32)
_BELOW = np.array([1.56024617e-5, 2.66588378e-4, 1.54364241e-4, 0.0289452571, -0.0517168084, 1.0], np.float32)

LAWS: dict[str, Callable[[Array, int, int], Array]] = {
    "truncated": lambda u, out, size: cut_normal(u) / np.sqrt(size),
    "normal": lambda u, out, size: u / np.sqrt(size),
    "xavier": lambda u, out, size: jax.lax.erf(u / np.sqrt(2)) * np.sqrt(6 / (size + out)),
}


# --- moves and diagnostics ----------------------------------------------------------------------------


def trajectory(point: Point, key: Key, beta: Array, step: Array, evaluate: Evaluate, draw: Draw) -> tuple[Point, Array]:
    """One Hamiltonian trajectory at likelihood^beta: where it ends, and the chance with which that is accepted."""
    pushing, deciding = jax.random.split(key)
    jitter, luck = jax.random.uniform(deciding, (2,))
    angle = step * (0.8 + 0.4 * jitter)  # no resonance with any period of the target
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    momentum = draw(pushing)

    def kick(momentum: Any, slope: Any) -> Any:
        return jax.tree.map(lambda p, g: p + angle / 2 * beta * g, momentum, slope)

    def leap(state: tuple[Point, Any], _: None) -> tuple[tuple[Point, Any], None]:
        point, momentum = state
        momentum = kick(momentum, point.slope)
        u = jax.tree.map(lambda u, p: cos * u + sin * p, point.u, momentum)
        momentum = jax.tree.map(lambda u, p: cos * p - sin * u, point.u, momentum)
        there = evaluate(u)
        return (there, kick(momentum, there.slope)), None

    def energy(point: Point, momentum: Any) -> Array:
        return sum((leaf**2).sum() for leaf in jax.tree.leaves((point.u, momentum))) / 2 - beta * point.loglik

    (end, final), _ = jax.lax.scan(leap, (point, momentum), None, length=LEAPS)
    chance = jnp.exp(jnp.minimum(energy(point, momentum) - energy(end, final), 0.0))
    chance = jnp.where(jnp.isfinite(chance), chance, 0.0)
    return jax.tree.map(lambda new, old: jnp.where(luck < chance, new, old), end, point), chance


def agreement(seen: Array) -> tuple[Array, Array]:
    """Worst R-hat and pooled effective sample size of numbers [islands, particles, quantities]."""
    islands, particles, _ = seen.shape
    within = seen.var(axis=1, ddof=1).mean(0)
    between = seen.mean(1).var(axis=0, ddof=1)
    rhat = jnp.sqrt((particles - 1) / particles + between / (within + NEGLIGIBLE)).max()
    ess = islands * (within.sum() + NEGLIGIBLE) / (between.sum() + NEGLIGIBLE / particles)
    return rhat, jnp.minimum(ess, islands * particles)
