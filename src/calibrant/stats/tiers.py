"""Tiers: which agents can be told apart, instead of ranks that noise decides.

The rule. Every pair of agents is compared by a paired, stratified t-test on shared environments, once in each
direction, and Holm's correction is applied over all k (k - 1) directed comparisons of the k agents at 5 %. The best
agent then leads the first tier, and every agent that is not significantly worse than it joins it. The best of the
others leads the next tier, and so on.

What it guarantees. With probability at least 95 % **no** statement "A is better than B" on which the tiers rest is
wrong, be it that A and B are equal or that B is better. It holds for all pairs at once, because a leader is picked by
its results: correcting only for the comparisons with the leader would let noise pick the comparison too. So equal
agents share one tier with at least 95 %, and each agent has been shown to be worse than the leader of every tier above
its own.

What it does not. Agents of one tier are not shown to be equal, only not told apart from its leader. A noisy agent may
share a tier above a steadier one whose mean is better. The guarantee is for one metric on one set of environments, and
inherits the t approximation, here far in its tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.special import stdtr

from calibrant.stats.intervals import Estimates
from calibrant.stats.paired import differences
from calibrant.types import Array

Direction = Literal["lower", "higher"]


def tiers(
    agents: Sequence[str], values: Array, strata: Array, better: Direction = "lower", alpha: float = 0.05
) -> tuple[tuple[str, ...], ...]:
    """Groups of agents, best first; `values` is [agents, n] with nan for missing environments.

    Agents without any value are left out. Two agents that share fewer than two environments are not told apart.

    >>> tiers(["a", "b", "c"], [[1.0, 1.1, 1.2], [9.0, 9.1, 9.3], [1.1, 1.2, 1.1]], ["one"] * 3)
    (('a', 'c'), ('b',))
    """
    losses = np.asarray(values, float) * (1 if better == "lower" else -1)
    worse = significantly_worse(losses, strata, alpha)
    level = levels(losses)
    left = sorted(np.flatnonzero(~np.isnan(level)).tolist(), key=lambda agent: level[agent])
    groups = []
    while left:
        leader = left[0]
        groups.append(tuple(agents[agent] for agent in left if not worse[agent, leader]))
        left = [agent for agent in left if worse[agent, leader]]
    return tuple(groups)


def significantly_worse(losses: Array, strata: Array, alpha: float = 0.05) -> Array:
    """[k, k] bool: row i is worse than row j, with a family-wise error of alpha over all directed pairs."""
    losses = np.asarray(losses, float)
    p = np.stack([_chance(differences(losses, other, strata)) for other in losses], axis=1)
    np.fill_diagonal(p, np.nan)
    ascending = np.sort(p[~np.isnan(p)])
    passed = ascending <= alpha / np.arange(len(ascending), 0, -1)
    rejected = len(passed) if passed.all() else int(passed.argmin())  # Holm stops at the first that does not pass
    return p <= ascending[rejected - 1] if rejected else np.zeros(p.shape, bool)


def levels(losses: Array) -> Array:
    """Each agent's mean after the environments' effects are taken off by least squares; nan without any value.

    Where all agents have the same environments it orders them as their plain means do; where some miss, an agent does
    not lead merely because it was only asked the easy ones.
    """
    present = ~np.isnan(losses)
    company = np.maximum(present.sum(0), 1)
    known = np.where(present, losses, 0.0)
    surplus = np.where(present, losses - known.sum(0) / company, 0.0).sum(1)
    overlap = np.diag(present.sum(1)) - (present / company) @ present.T
    return np.where(present.any(1), np.linalg.lstsq(overlap, surplus)[0], np.nan)


def _chance(paired: Estimates) -> Array:
    """One-sided p-value of "the difference is above 0"; nan where there are fewer than two environments."""
    return stdtr(paired.df, -paired.mean / np.maximum(paired.se, 1e-200))
