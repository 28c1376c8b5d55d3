"""Markov chains over the parameters of a network: what full-batch samplers share.

The target is the posterior  prod over training rows of softmax(f(x; theta))[y]  times a Gaussian prior, independent
over parameters, of one of two laws:

- `fan_in`: N(0, v / fan_in) on weights and biases, and the last layer divided by the temperature. With v = 1 this is
  the law of the Neural Testbed's environments but for their truncation (v about 0.77) and their later biases (zero).
- `adaptive`: N(0, v / (2 inputs sqrt(temperature))) on every parameter, to which the weight decay of the original
  testbed's stochastic-gradient samplers amounts, with v = 0.1.

Chains do not walk in theta but in  z = theta / (prior standard deviation),  whose prior is N(0, I): the scales of
layers and temperatures drop out, so that no mass matrix has to be learned, and what the data leave free moves with
period 2 pi. The chains of a cell share one step size, found in the warm-up by dual averaging (Hoffman and Gelman, "The
No-U-Turn Sampler", JMLR 2014). They start from draws of the prior, which are further apart than the posterior's.

Networks have symmetries, so chains are compared by their functions: R-hat and the effective sample size are those of
the worst class probability at some probe inputs, half of them training inputs, half standard normal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, Gt
from blackjax.adaptation.step_size import dual_averaging_adaptation

from calibrant.nets.mlp import Mlp, Params, reference_network
from calibrant.nets.trees import static, tree
from calibrant.stats.chains import effective_sample_size, split_rhat
from calibrant.train.beliefs import Diagnostics, FiniteBelief, NetworkWorlds
from calibrant.train.likelihoods import cross_entropy
from calibrant.types import Array, Data, Facts, Key

QUARTER = np.pi / 2  # of the prior's period: after it, what the data leave free has been drawn afresh
FIRST_STEP = 0.01
DIVERGENT = 0.1  # the share of divergent transitions after the warm-up above which a chain has failed
PROBES = 32
RESOLUTION = 1e-3  # of probabilities: smaller differences between networks do not count

State: TypeAlias = Any  # of one chain, with a `position` [parameters]; leaves lead with [chains] where it is of all


@tree
@dataclass(frozen=True)
class Posterior:
    """The log-density of whitened parameters, and the way back to the network's own."""

    scales: Any  # [layers] prior standard deviation of weights and biases
    x: Any  # [rows, inputs]
    y: Any  # [rows]
    size: Any  # how many of the rows count
    network: Mlp = static()

    def __call__(self, z: Array) -> Array:
        losses = cross_entropy(self.network(self.params(z), self.x), self.y)
        return -jnp.where(jnp.arange(len(self.x)) < self.size, losses, 0.0).sum() - 0.5 * (z**2).sum()

    def params(self, z: Array) -> Params:
        """Layer by layer, weights before biases."""
        layers, start = [], 0
        for scale, inputs, outputs in zip(self.scales, self.network.sizes[:-1], self.network.sizes[1:], strict=True):
            middle = start + inputs * outputs
            end = middle + outputs
            layers.append((scale * z[start:middle].reshape(outputs, inputs), scale * z[middle:end]))
            start = end
        return tuple(layers)


class Move(NamedTuple):
    """One transition of one chain."""

    state: State
    quality: Array  # in [0, 1], falls as the step grows: the warm-up seeks the step at which it meets a target
    divergent: Array  # whether it lost the trajectory it was meant to follow
    notes: dict[str, Array]  # numbers whose means are told as diagnostics


class Trace(NamedTuple):
    """What chains left behind after their warm-up."""

    positions: Array  # [chains, draws, parameters]
    step_size: Array
    divergent: Array  # [transitions, chains]
    notes: dict[str, Array]  # [transitions, chains] each


@dataclass(frozen=True)
class Chains:
    """The fields that samplers have in common, and sampling by them."""

    prior: Literal["fan_in", "adaptive"] = static("fan_in")
    prior_variance: Annotated[float, Gt(0)] = 1.0
    chains: Annotated[int, Ge(1)] = static(4)
    draws: Annotated[int, Ge(4)] = static(100)  # kept of each chain
    thin: Annotated[int, Ge(1)] = static(1)  # transitions from one kept state to the next
    warmup: Annotated[int, Ge(1)] = static(200)  # transitions before; rounded up to a multiple of `thin`
    step_size: Annotated[float, Gt(0)] | None = None  # None: found in the warm-up
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)  # None: the network that the facts name

    full_batch: ClassVar[bool] = True

    def posterior(self, train: Data, facts: Facts) -> Posterior:
        network = reference_network(facts, self.hidden)
        scales = prior_scales(network, self.prior, self.prior_variance, facts)
        return Posterior(scales, jnp.asarray(train.x), jnp.asarray(train.y), facts.train_size, network)

    def sample(
        self,
        key: Key,
        posterior: Posterior,
        init: Callable[[Array, Posterior, Key], State],
        move: Callable[[Posterior, Key, State, Array], Move],  # by a step of some size
        target: Array,  # of the moves' quality
        largest: float = QUARTER,  # step size that the warm-up may choose
    ) -> FiniteBelief:
        """Start chains from the prior, run them, and believe in all networks they leave behind."""
        birth, start, running = jax.random.split(key, 3)
        positions = jax.random.normal(birth, (self.chains, posterior.network.parameters))
        states = jax.vmap(init, (0, None, 0))(positions, posterior, jax.random.split(start, self.chains))
        return self._believe(posterior, self._run(running, posterior, states, move, target, largest))

    @property
    def networks(self) -> int:
        return self.chains

    @property
    def _warm_stretches(self) -> int:
        return -(-self.warmup // self.thin)

    def _run(self, key: Key, posterior: Posterior, states: State, move: Any, target: Array, largest: float) -> Trace:
        """Stretches of `thin` transitions, the first ones to warm up: a loop of their own would be compiled again."""
        init, update, final = dual_averaging_adaptation(target)
        warm = self._warm_stretches
        side_by_side = jax.vmap(move, (None, 0, 0, None))

        def transition(carry: tuple[State, Any], step: Array) -> tuple[tuple[State, Any], tuple[Array, Any]]:
            states, search = carry
            warming = step < warm * self.thin
            sought = jnp.where(warming, jnp.exp(search.log_step_size), final(search))
            size = sought if self.step_size is None else self.step_size
            keys = jax.random.split(jax.random.fold_in(key, step), self.chains)
            moved = side_by_side(posterior, keys, states, size)
            found = update(search, jnp.nan_to_num(moved.quality).mean())
            found = found._replace(log_step_size=jnp.minimum(found.log_step_size, jnp.log(largest)))
            search = jax.tree.map(lambda new, old: jnp.where(warming, new, old), found, search)
            return (moved.state, search), (moved.divergent, moved.notes)

        def stretch(carry: tuple[State, Any], steps: Array) -> tuple[tuple[State, Any], tuple[Array, Any]]:
            carry, seen = jax.lax.scan(transition, carry, steps)
            return carry, (carry[0].position, seen)

        search = jax.tree.map(jnp.float32, init(FIRST_STEP))
        steps = jnp.arange((warm + self.draws) * self.thin).reshape(-1, self.thin)
        (_, search), (positions, seen) = jax.lax.scan(stretch, (states, search), steps)
        divergent, notes = jax.tree.map(lambda leaf: leaf[warm:].reshape(-1, self.chains), seen)
        size = final(search) if self.step_size is None else self.step_size
        return Trace(positions[warm:].swapaxes(0, 1), size, divergent, notes)

    def _believe(self, posterior: Posterior, trace: Trace) -> FiniteBelief:
        params = jax.vmap(posterior.params)(trace.positions.reshape(self.chains * self.draws, -1))
        probes = probe_inputs(posterior.x, posterior.size)
        probabilities = jax.nn.softmax(NetworkWorlds(params, posterior.network)(probes), axis=-1)
        diagnostics = {
            **mixing(probabilities.reshape(self.chains, self.draws, -1)),
            **{name: values.mean() for name, values in trace.notes.items()},
            "step_size": jnp.asarray(trace.step_size),
            "divergences": trace.divergent.mean(),
            "diverged_at": diverged_at(trace.divergent, self._warm_stretches * self.thin),
        }
        return FiniteBelief(params, posterior.network, diagnostics)


def prior_scales(network: Mlp, law: str, variance: Array, facts: Facts) -> Array:
    """The prior's standard deviation in every layer, [layers]."""
    fan_in = jnp.array(network.sizes[:-1], jnp.float32)
    if law == "adaptive":
        return jnp.sqrt(variance / (2 * facts.inputs * jnp.sqrt(facts.temperature))) * jnp.ones_like(fan_in)
    return jnp.sqrt(variance / fan_in).at[-1].divide(facts.temperature)


def probe_inputs(x: Array, size: Array) -> Array:
    """[PROBES, inputs]: the first training inputs, in turn where there are few, and as many standard normal ones."""
    seen = x[jnp.arange(PROBES // 2) % size]
    return jnp.concatenate([seen, np.random.default_rng(0).normal(size=seen.shape).astype(np.float32)])


def mixing(probabilities: Array) -> Diagnostics:
    """R-hat and effective sample size of the worst quantity of [chains, draws, quantities]."""
    rhat, ess = (judge(probabilities, RESOLUTION) for judge in (split_rhat, effective_sample_size))
    return {"rhat": rhat.max(), "ess": ess.min()}


def diverged_at(divergent: Array, before: int) -> Array:
    """The first divergent transition, `before` others counted in, of a chain that had too many; -1 if none had."""
    failed = divergent.mean(axis=0) > DIVERGENT
    first = jnp.where(failed, divergent.argmax(axis=0), len(divergent)).min()
    return jnp.where(failed.any(), before + first, -1)
