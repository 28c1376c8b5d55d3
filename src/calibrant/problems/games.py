"""What all bandits have in common: how long they last, by which rule arms are played, how agents learn meanwhile."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le

Size = Annotated[int, Ge(1)]
TRACED = ("epsilon", "bonus", "lr")  # numbers that a compiled game takes as data


@dataclass(frozen=True)
class BanditGame:
    """The fields that games share; a game adds its own and says what is drawn."""

    steps: Size = 50_000
    rule: Literal["thompson", "greedy", "epsilon", "ucb", "uniform"] = "thompson"
    looks: Size = 10  # worlds that greedy, epsilon and ucb take the mean over; a finite belief has no more than its own
    epsilon: Annotated[float, Ge(0), Le(1)] = 0.05  # share of steps in which `epsilon` plays any arm
    bonus: Annotated[float, Ge(0)] = 1.0  # standard deviations that `ucb` adds
    capacity: Size = 10_000  # observations that are kept
    batch: Size = 128  # observations per gradient step
    updates: Size = 1  # gradient steps per observation
    lr: Annotated[float, Gt(0)] = 1e-3  # of Adam, for every agent
    decay: Literal["paper", "code"] = "paper"  # of weights: 2 l2 sqrt(temp) / t, or 2 l2 temp / (networks t)

    played: ClassVar[bool] = True
    train: ClassVar[int] = 0  # nothing is shown before the game
    worlds: ClassVar[int] = 1

    def settings(self) -> tuple[Hashable, ...]:
        """What of these fields shapes the compiled program."""
        return tuple(getattr(self, field.name) for field in fields(BanditGame) if field.name not in TRACED)
