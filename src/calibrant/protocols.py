"""The contracts. An agent turns data into a belief; a belief imagines worlds; a question is asked of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Protocol, runtime_checkable

from calibrant.types import Array, Cell, Data, Facts, Instance, Key, Record


@runtime_checkable
class Worlds(Protocol):
    """Imagined environments: row i of the result is ONE function, coherent across all inputs."""

    @property
    def weights(self) -> Array | None: ...  # [n], uniform when None
    def __call__(self, x: Array) -> Array: ...  # [batch, inputs] -> logits [n, batch, classes]


@runtime_checkable
class Belief(Protocol):
    """An approximate posterior over functions."""

    @property
    def atoms(self) -> int | None: ...  # size of a finite support, which is enumerated; None: sampled
    def worlds(self, key: Key, n: int) -> Worlds: ...


@runtime_checkable
class ClosedBelief(Belief, Protocol):
    """A belief that knows joint probabilities in closed form: they are then not averaged over its worlds.

    `counts[k, a, c]` is how often labelling k has class c at input a; the result is a log-probability per labelling.
    """

    def log_joint(self, x: Array, counts: Array) -> Array: ...  # [a, inputs], [k, a, classes] -> [k]


@runtime_checkable
class EstimatingBelief(Belief, Protocol):
    """A belief that estimates the joint probability of many labels better than a mean over its worlds does."""

    def evidence(self, seed: int, x: Array, labels: Array) -> tuple[float, float]: ...  # log-probability, its error


@runtime_checkable
class Agent(Protocol):
    """An inference method with its hyperparameters."""

    def fit(self, key: Key, train: Data, facts: Facts) -> Belief: ...


class Problem(Protocol):
    """A distribution over instances."""

    train: int  # training points
    dim: int  # inputs of a point
    worlds: int  # worlds asked of a belief without finite support

    def sample(self, seed: int) -> Instance: ...
    def shape(self) -> Hashable: ...  # problems of one shape share a compiled program


class Store(Protocol):
    """Where records live. Appending is atomic and idempotent."""

    def done(self, cells: Iterable[Cell]) -> set[str]: ...
    def append(self, record: Record) -> None: ...
    def records(
        self,
        problems: Collection[str] | None = None,
        agents: Collection[str] | None = None,
        items: bool = False,
        pictures: bool = False,
    ) -> Iterator[Record]: ...
