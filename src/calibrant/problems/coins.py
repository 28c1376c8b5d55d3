"""A bag of coins.

Example 1 of Osband et al., "Evaluating High-Order Predictive Distributions in Deep Learning" (UAI 2022).
Each of M coins has its own probability of heads, uniform on (0, 1); an input names a coin (as a row of the identity
matrix, so that an agent without special knowledge has no reason to think neighbours alike), a label is one toss of it.
No coin says anything about another. `train` tosses are shown first, none by default, as in the example.
Tuples are i.i.d. coins, or `kappa` coins drawn from the bag and tossed again and again; coins that come up more than
once in a tuple are kept once with how often they are tossed. Closed forms: `calibrant.problems.coins_theory`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Le, Len

from calibrant.problems.environment import draw_labels
from calibrant.problems.tuples import family_name, polyadic_tuples
from calibrant.seeds import Stream
from calibrant.types import Array, Data, Facts, Instance, Question, Truth, Tuples

Size = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class Bag:
    """The true coins: logits [batch, 2] at rows of the identity matrix."""

    heads: Array  # [coins] probability of class 1

    def __call__(self, x: Array) -> Array:
        return self.logp(x)

    def logp(self, x: Array) -> Array:
        p = self.heads[np.argmax(x, axis=1)]
        return np.stack([np.log1p(-p), np.log(p)], axis=1)


@dataclass(frozen=True)
class Coins:
    """Coins with unknown, unrelated probabilities of heads (Osband et al., UAI 2022, Example 1)."""

    coins: Annotated[int, Ge(1), Le(4000)] = 100
    train: Annotated[int, Ge(0)] = 0  # tosses that an agent sees
    tuples: Annotated[int, Ge(2)] = 1000  # tuples asked per family
    tau: Annotated[tuple[Size, ...], Len(1)] = (10,)  # orders of joint prediction
    kappa: tuple[Size, ...] = (1, 2)  # coins of the polyadic families
    worlds: Annotated[int, Ge(2)] = 1000  # worlds asked of a belief without finite support

    version: ClassVar[int] = 1  # raise when a change alters what a seed draws: ids of cells then change with it

    @property
    def dim(self) -> int:
        return self.coins

    def sample(self, seed: int) -> Instance:
        path = ("coins", self.version, self.coins, self.train, seed)
        bag = Bag(Stream(*path, "heads").uniform(self.coins))
        every = np.eye(self.coins, dtype=np.float32)
        shown = every[Stream(*path, "train-x").integers(self.coins, self.train)]
        y = draw_labels(Stream(*path, "train-y"), bag.logp(shown))
        logp = bag.logp(every)
        marginal = np.arange(self.coins)[:, None]
        question = Question(every, tuple(self._families(path)), marginal, self.worlds)
        facts = Facts(self.coins, 2, self.train, 1.0, law="coins")
        truth = Truth(draw_labels(Stream(*path, "labels"), logp), logp)
        return Instance(Data(shown, y), facts, question, truth, bag)

    def shape(self) -> Hashable:
        """Problems of equal shape, but for the number of training points, can share a compiled program."""
        return ("coins", self.coins, self.train == 0, self.tuples, self.tau, self.kappa, self.worlds)

    def _families(self, path: tuple[object, ...]) -> list[Tuples]:
        chosen = Stream(*path, "iid").integers(self.coins, self.tuples, max(self.tau))
        families = [_tossed("", chosen[:, :tau], np.ones((self.tuples, tau), int)) for tau in self.tau]
        for kappa in self.kappa:
            anchors = Stream(*path, "anchors", kappa).integers(self.coins, self.tuples, kappa)
            for tau in self.tau:
                if tau > 1:  # a single toss is of one coin whatever kappa is
                    places = polyadic_tuples(Stream(*path, "places", kappa, tau), self.tuples, tau, kappa)
                    families.append(_tossed(family_name(kappa), anchors, places.repeats))
        return families


def _tossed(name: str, coins: Array, repeats: Array) -> Tuples:
    """The tuples of coins [n, a], each tossed `repeats` [n, a] times; equal coins of a tuple are put together."""
    order = np.argsort(coins, axis=1, kind="stable")
    coins, repeats = np.take_along_axis(coins, order, axis=1), np.take_along_axis(repeats, order, axis=1)
    first = np.concatenate([np.ones((len(coins), 1), bool), coins[:, 1:] != coins[:, :-1]], axis=1)
    place = np.cumsum(first, axis=1) - 1  # where each coin's tosses are added up
    together = np.zeros_like(repeats)
    np.add.at(together, (np.arange(len(coins))[:, None], place), repeats)
    anchors = np.zeros_like(coins)
    np.put_along_axis(anchors, place, coins, axis=1)
    return Tuples(name, int(repeats[0].sum()), anchors, together)
