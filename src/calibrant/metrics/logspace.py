"""Averages of probabilities kept as logarithms, with the jackknife that tells what finitely many worlds cost.

The log of a mean over n sampled worlds is biased downwards by about Var / (2 n mean^2), so KL and NLL come out too
high; the bias reaches a nat when worlds disagree strongly. Worlds are split into GROUPS groups; leaving each out in
turn gives the jackknife's estimate of bias and standard error. A belief with finite support is enumerated: no bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.types import Answers, Array, Scores

GROUPS = 10
SAFE = {4: -80.0, 8: -700.0}  # logarithms above this have a normal exponential, by bytes per number


@dataclass(frozen=True)
class Groups:
    """How worlds are weighted and grouped. One group when nothing is left to chance."""

    weights: Array  # [worlds], sums to 1
    bounds: Array  # [groups + 1] world i belongs to the group whose bounds enclose it
    jackknife: bool

    @property
    def count(self) -> int:
        return len(self.bounds) - 1

    def members(self, group: int) -> slice:
        return slice(self.bounds[group], self.bounds[group + 1])

    @property
    def share(self) -> Array:
        """[groups] the weight of each group."""
        return np.add.reduceat(self.weights, self.bounds[:-1])


def group_worlds(answers: Answers) -> Groups:
    worlds = len(answers.logp)
    weights = np.full(worlds, 1 / worlds) if answers.weights is None else np.asarray(answers.weights, np.float64)
    weights = weights / weights.sum()
    if answers.exact or worlds < 2:
        return Groups(weights, np.array([0, worlds]), jackknife=False)
    groups = Groups(weights, np.linspace(0, worlds, min(GROUPS, worlds) + 1).astype(int), jackknife=True)
    if groups.share.max() > 1 - 1e-9:  # nothing would be left without that group
        return Groups(weights, np.array([0, worlds]), jackknife=False)
    return groups


def probabilities(logp: Array) -> Array | None:
    """exp(logp) in double precision by way of its own, or None where its own could lose a world by underflow."""
    return np.exp(logp).astype(np.float64) if logp.min(initial=0.0) > SAFE[logp.dtype.itemsize] else None


def log_means(logp: Array, groups: Groups) -> tuple[Array, Array]:
    """From [inputs, classes, worlds]: the log mean probability over worlds, and with each group left out in turn."""
    if logp.shape[2] == 1:  # itself, to the last digit: the truth has a KL of 0
        only = logp[..., 0].astype(np.float64)
        return only, only[None]
    if (p := probabilities(logp)) is None:
        return full_and_left_out(log_group_sums(np.moveaxis(logp, 2, 0).astype(np.float64), groups), groups)
    member = np.zeros((len(groups.weights), groups.count))
    for g in range(groups.count):
        member[groups.members(g), g] = groups.weights[groups.members(g)]
    sums = (p.reshape(-1, p.shape[2]) @ member).reshape(*p.shape[:2], -1)
    return log_of_sums(np.moveaxis(sums, 2, 0), groups)


def log_of_sums(sums: Array, groups: Groups) -> tuple[Array, Array]:
    """Logs of the sum over groups [groups, ...], and with each left out: the others are added, never subtracted."""
    with np.errstate(divide="ignore"):
        if not groups.jackknife:
            full = np.log(sums.sum(axis=0))
            return full, full[None]
        others, below, above = np.zeros_like(sums), sums[0].copy(), sums[-1].copy()
        for g in range(1, len(sums)):  # running sums from both ends; np.cumsum is several times slower on this axis
            others[g] += below
            below += sums[g]
            others[-1 - g] += above
            above += sums[-1 - g]
        rest = np.log1p(-groups.share).reshape(-1, *[1] * (sums.ndim - 1))
        return np.log(below), np.log(others) - rest


def log_group_sums(values: Array, groups: Groups) -> Array:
    """log of the weighted sum over each group's worlds: [worlds, ...] -> [groups, ...]."""
    with np.errstate(divide="ignore"):
        scaled = values + np.log(groups.weights).reshape(-1, *[1] * (values.ndim - 1))
    return np.stack([logsumexp(scaled[groups.members(g)]) for g in range(groups.count)])


def logsumexp(values: Array) -> Array:
    """Over the leading axis; a column of minus infinities stays minus infinity."""
    top = values.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return top + np.log(np.exp(values - top).sum(axis=0))


def full_and_left_out(log_sums: Array, groups: Groups) -> tuple[Array, Array]:
    """From group sums [groups, ...]: the log mean over all worlds, and with each group left out in turn."""
    full = logsumexp(log_sums)
    if not groups.jackknife:
        return full, full[None]
    others = [logsumexp(np.delete(log_sums, g, axis=0)) - np.log1p(-groups.share[g]) for g in range(groups.count)]
    return full, np.stack(others)


def summarise(items: Array, left_out: Array | None = None, keep: bool = True) -> Scores:
    """Scores of per-item values [n]; `left_out` holds the mean over items with each group of worlds left out."""
    mean, n = float(items.mean()), len(items)
    se = float(items.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    bias = spread = 0.0
    if left_out is not None and len(left_out) > 1:
        count = len(left_out)
        bias = float((count - 1) * (left_out.mean() - mean))
        spread = float(np.sqrt((count - 1) / count * ((left_out - left_out.mean()) ** 2).sum()))
    return Scores(mean, se, n, bias, spread, items.astype(np.float32) if keep else None)
