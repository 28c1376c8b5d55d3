"""Regret of a game: by how much the reward probability of the best arm exceeds that of the arm played.

It is expected regret: no reward's luck is in it. What a uniform player loses on average is known exactly, so that
regret can also be said as a share of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.types import Array, Scores

STRETCHES = 100  # of a game: their average regrets are kept, for curves


@dataclass(frozen=True)
class Course:
    """A game that is over: the regret of every step, and what was on offer."""

    regrets: Array  # [steps]
    reward: Array  # [rows, arms] probability of a reward
    order: Array | None = None  # [steps] the row offered at each step; None: all rows were offered at every step

    @property
    def stretches(self) -> list[Array]:
        """A hundred stretches of steps, or as many as there are."""
        kept = np.asarray(self.regrets, np.float64)
        return np.array_split(kept, min(STRETCHES, len(kept)))

    @property
    def uniform(self) -> Array:
        """Expected regret [steps] of playing every arm on offer with equal chance."""
        values = np.asarray(self.reward, np.float64)
        if self.order is None:
            return np.full(len(self.regrets), values.max() - values.mean())
        offered = values[np.asarray(self.order)[: len(self.regrets)]]
        return np.asarray(offered.max(axis=1) - offered.mean(axis=1))


def regret(course: Course) -> Scores:
    return Scores(float(np.sum(course.regrets, dtype=np.float64)))


def average_regret(course: Course) -> Scores:
    """Its items are the averages of the stretches."""
    means = np.array([part.mean() for part in course.stretches])
    return Scores(regret(course).mean / len(course.regrets), n=len(means), items=means)


def simple_regret(course: Course) -> Scores:
    return Scores(float(course.stretches[-1].mean()))


def regret_to_uniform(course: Course) -> Scores | None:
    return _share(regret(course).mean, float(course.uniform.sum()))


def simple_regret_to_uniform(course: Course) -> Scores | None:
    last = len(course.stretches[-1])
    return _share(simple_regret(course).mean, float(course.uniform[-last:].mean()))


def _share(lost: float, uniform: float) -> Scores | None:
    """None where all arms are alike and nobody can lose."""
    return Scores(lost / uniform) if uniform > 0 else None
