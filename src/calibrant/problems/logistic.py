"""Logistic regression in D dimensions.

Section 3 of Osband et al., "Evaluating High-Order Predictive Distributions in Deep Learning" (UAI 2022):
phi ~ N(0, I_D), inputs x ~ N(0, I_D), P(y = 1 | x) = sigma(phi x / temp). Without training data unless `train` says so.

The paper prints sigma(rho phi x) with rho = 0.01, and calls that a temperature with a high signal-to-noise ratio. As
printed it is a low one, under which its Figure 2 cannot come about (two anchors, five labels at each, would say nearly
nothing even at D = 1000). Logits are therefore divided by the temperature, as everywhere in the Neural Testbed;
`temp=100` is the formula as printed.

I.i.d. tuples of order `tau` are streamed (`Question.long`): of 10,000 inputs in 1000 dimensions one tuple, 40 MB, is in
memory at a time. Tuples of `kappa` anchors are of order `repeats`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Len
from scipy.special import log_expit

from calibrant.problems.environment import draw_labels
from calibrant.problems.tuples import polyadic_tuples
from calibrant.seeds import Stream
from calibrant.types import Array, Data, Facts, Instance, Long, Question, Truth, Tuples

Size = Annotated[int, Ge(1)]
ROWS = 1000  # inputs of a long tuple drawn at a time


@dataclass(frozen=True)
class Plane:
    """The true environment: logits [batch, 2] are 0 and phi x / temp."""

    phi: Array  # [inputs]
    temp: float

    def __call__(self, x: Array) -> Array:
        logit = np.asarray(x, np.float64) @ self.phi / self.temp
        return np.stack([np.zeros_like(logit), logit], axis=1)

    def logp(self, x: Array) -> Array:
        logit = self(x)[:, 1]
        return np.stack([log_expit(-logit), log_expit(logit)], axis=1)


@dataclass(frozen=True)
class Logistic:
    """Logistic regression with normal weights and normal inputs (Osband et al., UAI 2022, section 3)."""

    dim: Size = 10
    temp: Annotated[float, Gt(0)] = 0.01  # logits are divided by it
    train: Annotated[int, Ge(0)] = 0  # training points
    tuples: Annotated[int, Ge(2)] = 1000  # tuples of each polyadic family
    repeats: Annotated[int, Ge(2)] = 10  # order of the polyadic families
    kappa: Annotated[tuple[Size, ...], Len(1)] = (1, 2)  # their anchors
    tau: Annotated[tuple[Size, ...], Len(1)] = (10, 100, 1000, 10000)  # orders of i.i.d. tuples, rising
    long: Annotated[int, Ge(2)] = 10  # i.i.d. tuples
    worlds: Annotated[int, Ge(2)] = 1000  # worlds asked of a belief without finite support

    version: ClassVar[int] = 1  # raise when a change alters what a seed draws: ids of cells then change with it

    def __post_init__(self) -> None:
        if list(self.tau) != sorted(set(self.tau)):
            raise ValueError(f"tau={'x'.join(map(str, self.tau))} should rise, as in tau=10x100x1000")

    def sample(self, seed: int) -> Instance:
        path = ("logistic", self.version, self.dim, repr(float(self.temp)), self.train, seed)
        plane = Plane(Stream(*path, "phi").normal(self.dim), self.temp)
        x = Stream(*path, "train-x").normal(self.train, self.dim).astype(np.float32)
        y = draw_labels(Stream(*path, "train-y"), plane.logp(x))
        question = self._question(path, plane)
        logp = plane.logp(question.x)
        facts = Facts(self.dim, 2, self.train, self.temp, law="logistic")
        truth = Truth(draw_labels(Stream(*path, "labels"), logp), logp)
        return Instance(Data(x, y), facts, question, truth, plane)

    def shape(self) -> Hashable:
        """Problems of equal shape, but for the number of training points, can share a compiled program."""
        return ("logistic", self.dim, self.train == 0, self.tuples, self.repeats, self.kappa, self.worlds)

    def _question(self, path: tuple[object, ...], plane: Plane) -> Question:
        x: list[Array] = []
        families: list[Tuples] = []
        for kappa in self.kappa:
            start = sum(len(part) for part in x)
            places = Stream(*path, "places", kappa, self.repeats)
            x.append(Stream(*path, "anchors", kappa).normal(self.tuples * kappa, self.dim).astype(np.float32))
            families.append(polyadic_tuples(places, self.tuples, self.repeats, kappa, start))
        inputs = np.concatenate(x)
        marginal = np.arange(len(inputs))[:, None]
        long = Long(self.tau, self.long, DrawLong(path, plane, max(self.tau)))
        return Question(inputs, tuple(families), marginal, self.worlds, long=long)


@dataclass(frozen=True)
class DrawLong:
    """Tuple i of the i.i.d. family, block by block: its first inputs are the same whatever the longest order is."""

    path: tuple[object, ...]
    plane: Plane
    longest: int

    def __call__(self, i: int) -> tuple[Array, Array, Array]:
        x = np.empty((self.longest, len(self.plane.phi)), np.float32)
        for start in range(0, self.longest, ROWS):
            block = x[start : start + ROWS]
            block[:] = Stream(*self.path, "iid", i, start).normal(*block.shape)
        logp = self.plane.logp(x)
        return x, logp, draw_labels(Stream(*self.path, "iid-labels", i), logp)
