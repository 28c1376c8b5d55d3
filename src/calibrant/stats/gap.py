"""How much of the way from a baseline to a floor an agent goes.

The floor is the best that any agent can do on average, such as the posterior under the law that environments are drawn
from. With means over the environments that all three have answered,

    gap(agent) = (baseline - agent) / (baseline - floor):

0 for the baseline, 1 for the floor, negative for an agent that is worse than the baseline. It is a ratio of two means
of paired differences, so its interval is Fieller's (see `stats.paired`), which excludes 1 exactly when the agent
differs significantly from the floor. An estimate may pass 1 by luck, or because the floor itself is Monte Carlo.

Environments without a floor are left out: give nan there. Where the floor is not below the baseline there is no way to
go, and the share is nan; where the two cannot be told apart the share has no bounded interval, and its limits are nan.
"""

from __future__ import annotations

import math

import numpy as np

from calibrant.stats.intervals import LEVEL, Interval
from calibrant.stats.paired import ratios
from calibrant.types import Array


def gap(agent: Array, baseline: Array, floor: Array, strata: Array, level: float = LEVEL) -> Interval:
    """The share of one agent; all arguments are losses [n] on environments, nan is missing.

    >>> gap([2.0, 4.0], [3.0, 5.0], [1.0, 1.0], ["a", "a"]).mean
    0.333...
    """
    return gaps(np.asarray(agent, float)[None], baseline, floor, strata, level)[0]


def gaps(agents: Array, baseline: Array, floor: Array, strata: Array, level: float = LEVEL) -> list[Interval]:
    """The share of every row of `agents` [rows, n] between `baseline` [n] and `floor` [n]."""
    agents, baseline, floor = (np.asarray(losses, float) for losses in (agents, baseline, floor))
    way, gone = baseline - floor, baseline - agents
    shared = ~np.isnan(gone) & ~np.isnan(way)
    length = np.where(shared, way, 0.0).sum(axis=1)
    found = ratios(gone, way, strata, level)
    nowhere = (math.nan,) * 3
    return [one if far > 0 else Interval(*nowhere, one.n) for one, far in zip(found, length.tolist(), strict=True)]
