"""Random classification problems from a neural generative model: the Neural Testbed.

The spec says what is drawn (network, temperature, training size) and what is asked (tuples, orders, worlds). The
2-D sweep of the paper is the suite `testbed`; any other dimension, width, depth, activation or number of classes
is the same problem with another spec, e.g. `testbed?train=100&temp=0.1&dim=10&activation=tanh`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Len

from calibrant.problems.environment import draw_environment, draw_labels
from calibrant.problems.tuples import iid_tuples, polyadic_tuples
from calibrant.seeds import Stream
from calibrant.types import Array, Data, Facts, Instance, Question, Truth

PICTURE_SIDE, PICTURE_REACH = 32, 2.5

Size = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class Testbed:
    """A random network labels standard normal inputs; the agent sees `train` of them (Osband et al., 2022)."""

    train: Size = 10  # training points
    temp: Annotated[float, Gt(0)] = 0.1  # logits are divided by it: small is easy, large is noisy
    dim: Size = 2
    classes: Annotated[int, Ge(2)] = 2
    hidden: Annotated[tuple[Size, ...], Len(1)] = (50, 50)
    activation: Literal["relu", "leaky_relu", "tanh", "sigmoid", "swish", "selu", "gelu"] = "relu"
    init: Literal["truncated", "normal", "xavier"] = "truncated"
    tuples: Annotated[int, Ge(2)] = 1000  # tuples asked per family
    tau: Annotated[tuple[Size, ...], Len(1)] = (1, 10)  # orders of joint prediction
    kappa: tuple[Size, ...] = (2,)  # anchors of the polyadic families
    worlds: Annotated[int, Ge(2)] = 1000  # worlds asked of a belief without finite support

    version: ClassVar[int] = 1  # raise when a change alters what a seed draws: ids of cells then change with it

    def sample(self, seed: int) -> Instance:
        draws = (
            f"{self.dim}/{self.classes}/{self.hidden}/{self.activation}/{self.init}/{float(self.temp)!r}/{self.train}"
        )
        path = ("testbed", self.version, draws, seed)
        environment = draw_environment(
            Stream(*path, "environment"),
            self.dim, self.classes, self.hidden, self.activation, self.init, self.temp,
        )  # fmt: skip
        x = Stream(*path, "train-x").normal(self.train, self.dim).astype(np.float32)
        y = draw_labels(Stream(*path, "train-y"), environment.logp(x))
        question = self._question(path)
        logp = environment.logp(question.x)
        facts = Facts(self.dim, self.classes, self.train, self.temp, self.hidden, self.activation, self.init)
        truth = Truth(draw_labels(Stream(*path, "labels"), logp), logp)
        return Instance(Data(x, y), facts, question, truth, environment)

    def shape(self) -> Hashable:
        """Problems of equal shape, but for the number of training points, can share a compiled program."""
        asked = (self.tuples, self.tau, self.kappa, self.worlds)
        return ("testbed", self.dim, self.classes, self.hidden, self.activation, self.init, asked)

    def _question(self, path: tuple[object, ...]) -> Question:
        longest = max(self.tau)
        x = [Stream(*path, "iid").normal(self.tuples * longest, self.dim)]
        families = [iid_tuples(self.tuples, tau, longest) for tau in self.tau]
        for kappa in self.kappa:
            start = sum(len(part) for part in x)
            x.append(Stream(*path, "anchors", kappa).normal(self.tuples * kappa, self.dim))
            families += [
                polyadic_tuples(Stream(*path, "places", kappa, tau), self.tuples, tau, kappa, start)
                for tau in self.tau
                if tau > 1  # a single place is asked at one input whatever kappa is
            ]
        marginal = np.arange(self.tuples * longest).reshape(self.tuples, longest)
        inputs = np.concatenate(x).astype(np.float32)
        return Question(inputs, tuple(families), marginal, self.worlds, picture_grid() if self.dim == 2 else None)


def picture_grid() -> Array:
    """A square grid over the plane, row by row from the top left: where beliefs about 2-D problems are drawn."""
    side = np.linspace(-PICTURE_REACH, PICTURE_REACH, PICTURE_SIDE)
    return np.stack(np.meshgrid(side, side[::-1]), axis=-1).reshape(-1, 2).astype(np.float32)
