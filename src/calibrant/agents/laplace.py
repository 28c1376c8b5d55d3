"""Laplace approximation: a Gaussian around a trained network, as wide as the loss there is flat.

MacKay, "A Practical Bayesian Framework for Backpropagation Networks", 1992; Daxberger et al., "Laplace Redux", NeurIPS
2021. Training with weight decay finds the mode of exp(-E),  E = sum of cross-entropies + T strength |theta|^2, and the
posterior is taken to be N(trained, (J' H J + precision I)^-1) with the generalised Gauss-Newton matrix J' H J over the
training rows, H = diag(p) - p p' of each row's class probabilities, and precision 2 T strength / prior_scale^2. It
covers the last layer (`over=last_layer`) or all parameters (`over=full`) and has no other approximation.

A world is f(x; trained) + J(x) delta (`predict=linearised`; Immer, Korzepa and Bauer, AISTATS 2021), or the network run
with trained + delta (`predict=sampled`). The last layer is linear, so there both are the same function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_solve, solve_triangular

from calibrant.nets.mlp import Mlp, reference_network
from calibrant.nets.trees import static, tree
from calibrant.train.beliefs import BLOCK, Diagnostics, NetworkWorlds
from calibrant.train.likelihoods import l2_strength
from calibrant.train.recipe import Recipe
from calibrant.types import Array, CalibrantError, Data, Facts, Key

LARGEST = 10_000  # parameters that a dense factor is made for


@tree
@dataclass(frozen=True)
class LinearWorlds:
    """n shifts of some layers, each pushed through the network's derivative, which is made once for BLOCK inputs."""

    layers: Any
    shifts: Any  # of layers[cut:], leaves [n, ...]
    network: Mlp = static()
    cut: int = static()
    weights: Any = None

    def __call__(self, x: Array) -> Array:
        if len(x) <= BLOCK:
            return self._block(x)
        blocks = jnp.pad(x, ((0, -len(x) % BLOCK), (0, 0))).reshape(-1, BLOCK, x.shape[1])
        logits = jnp.swapaxes(jax.lax.map(self._block, blocks), 0, 1)
        return logits.reshape(len(logits), -1, logits.shape[-1])[:, : len(x)]

    def _block(self, x: Array) -> Array:
        bottom, top = self.layers[: self.cut], self.layers[self.cut :]
        centre, push = jax.linearize(lambda layers: self.network((*bottom, *layers), x), top)
        return centre + jax.lax.map(push, self.shifts)


@tree
@dataclass(frozen=True)
class LaplaceBelief:
    """A Gaussian over layers[cut:], held by what its draws are made of.

    Few rows: the root V of V' V = J' H J and the Cholesky factor of I + V V' / precision. Many rows: no root, and the
    factor of V' V + precision I.
    """

    layers: Any
    root: Any  # [rows, parameters] or None
    factor: Any
    precision: Any
    network: Mlp = static()
    cut: int = static()
    predict: str = static()
    diagnostics: Diagnostics = field(default_factory=dict)

    @property
    def atoms(self) -> None:
        return None

    def worlds(self, key: Key, n: int) -> LinearWorlds | NetworkWorlds:
        top = self.layers[self.cut :]
        centre, restore = ravel_pytree(top)
        shifts = self._deviations(key, len(centre), n)
        if self.predict == "linearised":
            return LinearWorlds(self.layers, jax.vmap(restore)(shifts), self.network, self.cut)
        bottom = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (n, *leaf.shape)), self.layers[: self.cut])
        return NetworkWorlds((*bottom, *jax.vmap(restore)(centre + shifts)), self.network)

    def _deviations(self, key: Key, parameters: int, n: int) -> Array:
        """n draws of N(0, (V' V + precision I)^-1), [n, parameters].

        With few rows a draw of the prior is corrected by what the rows would have said of it (Matheron's rule).
        """
        prior_key, noise_key = jax.random.split(key)
        drawn = jax.random.normal(prior_key, (parameters, n))
        if self.root is None:
            return solve_triangular(self.factor, drawn, trans=1, lower=True).T
        drawn = drawn / jnp.sqrt(self.precision)
        heard = self.root @ drawn + jax.random.normal(noise_key, (len(self.root), n))
        return (drawn - self.root.T @ cho_solve((self.factor, True), heard) / self.precision).T


@tree
@dataclass(frozen=True)
class Laplace(Recipe):
    """Gaussian around a trained network by the curvature of its loss (Daxberger et al., 2021)."""

    l2: Annotated[float, Gt(0)] = 1.0  # without weight decay there is no posterior
    over: Literal["last_layer", "full"] = static("last_layer")
    predict: Literal["linearised", "sampled"] = static("linearised")
    prior_scale: Annotated[float, Gt(0)] = 1.0  # multiplies the prior's standard deviation, after training
    hidden: tuple[Annotated[int, Ge(1)], ...] | None = static(None)  # None: the network that the facts name

    native: ClassVar[bool] = True

    def fit(self, key: Key, train: Data, facts: Facts) -> LaplaceBelief:
        network = reference_network(facts, self.hidden)
        trained = self.train_independent(key, network, 1, train, facts).params
        layers = jax.tree.map(lambda leaf: leaf[0], trained)
        cut = len(layers) - 1 if self.over == "last_layer" else 0
        precision = 2 * facts.train_size * l2_strength(self.l2, self.l2_form, facts) / self.prior_scale**2
        root, factor = _factorise(network, layers, cut, train, facts, precision)
        return LaplaceBelief(layers, root, factor, jnp.asarray(precision), network, cut, self.predict)

    @property
    def networks(self) -> int:
        return 1


def _factorise(
    network: Mlp, layers: Any, cut: int, train: Data, facts: Facts, precision: Array
) -> tuple[Array | None, Array]:
    """The root and the factor of a `LaplaceBelief`, in the form whose matrix is smaller."""
    centre, restore = ravel_pytree(layers[cut:])
    rows, parameters = len(train.x) * (facts.classes - 1), len(centre)
    if min(rows, parameters) > LARGEST:
        raise CalibrantError(
            f"laplace needs at most {LARGEST} parameters, or as few rows times (classes - 1), and has {parameters} and "
            f"{rows}; over=last_layer or smaller hidden layers have fewer"
        )

    def root_of(x: Array, counts: Array) -> Array:
        """Rows of V at one input: the Cholesky factor of its H, pulled back to the parameters."""
        logits, pull = jax.vjp(lambda top: network((*layers[:cut], *restore(top)), x[None])[0], centre)
        return counts * jax.vmap(lambda column: pull(column)[0])(softmax_factor(logits).T)

    real = (jnp.arange(len(train.x)) < facts.train_size).astype(jnp.float32)
    if rows < parameters:
        root = jax.vmap(root_of)(jnp.asarray(train.x), real).reshape(rows, parameters)
        return root, jnp.linalg.cholesky(jnp.eye(rows) + root @ root.T / precision)

    def add(total: Array, block: tuple[Array, Array]) -> tuple[Array, None]:
        root = jax.vmap(root_of)(*block).reshape(-1, parameters)
        return total + root.T @ root, None

    blocks = -(-len(train.x) // BLOCK)
    size = -(-len(train.x) // blocks)
    missing = blocks * size - len(train.x)
    x = jnp.pad(train.x, ((0, missing), (0, 0))).reshape(blocks, size, -1)
    total, _ = jax.lax.scan(
        add, precision * jnp.eye(parameters), (x, jnp.pad(real, (0, missing)).reshape(blocks, size))
    )
    return None, jnp.linalg.cholesky(total)


def softmax_factor(logits: Array) -> Array:
    """L [classes, classes - 1] with L L' = diag(p) - p p': the Cholesky factor, in closed form.

    With q_j the probability of classes j and later, column j has sqrt(p_j q_(j+1) / q_j) on the diagonal and
    -p_i sqrt(p_j / (q_j q_(j+1))) below.
    """
    logp = jax.nn.log_softmax(logits)
    tail = jax.lax.cumlogsumexp(logp, reverse=True)
    now, later = tail[:-1], tail[1:]
    diagonal = jnp.exp((logp[:-1] + later - now) / 2)
    below = jnp.exp(logp[:, None] + (logp[:-1] - now - later) / 2)
    rows, columns = jnp.arange(len(logits))[:, None], jnp.arange(len(logits) - 1)
    return jnp.where(rows == columns, diagonal, jnp.where(rows > columns, -below, 0.0))
