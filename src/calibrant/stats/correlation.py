"""Do two sets of scores order agents alike? Correlation coefficients over agents, with bootstrap intervals.

The kinds. `pearson` is that of the mean scores, `log` that of their logarithms, and `rank` (Spearman's) that of their
ranks, ties sharing their mean rank. A coefficient is nan where one side does not vary, or where a logarithm does not
exist because a score is not positive.

The intervals reach from the 5th to the 95th percentile of two different bootstraps, as two things are uncertain.

*Environments drawn anew.* The agents are given; how far would their coefficient move if they were measured on other
environments? Environments are drawn within their stratum (see `stats.intervals`), the same ones for all agents, and for
both sides where these share environments. From a stratum of n, n - 1 are drawn and weighted by n / (n - 1) (Rao and Wu,
JASA 1988): drawing n would make a mean's variance too small by 1 - 1/n, a half when a setting has two seeds. Strata
with one environment are collapsed as for means.

*Agents drawn anew.* The measurements are given; how far does the coefficient hang on which agents were chosen? Agents
are drawn with replacement, as many as there are; draws of fewer than three different agents are passed over, for two
points lie on a line. Below five agents nearly every draw is of that sort, and there is no such interval.

*Blocks of seeds.* Osband et al. ("The Neural Testbed", 2022, Figures 8 and 9) repeat both measurements ten times and
correlate all pairs of an agent and a repetition. Here seeds are divided into blocks, each of which is a repetition on
environments of its own. Some blocks are harder than others, which says nothing about agents: each block's mean over
agents is taken off before products are summed over all blocks (for ranks, agents are ranked block by block). For the
interval blocks are drawn anew, the same ones for all agents. Noise within agents weakens the coefficient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.stats import rankdata

from calibrant.seeds import Stream
from calibrant.types import Array, CalibrantError

Kind: TypeAlias = Literal["pearson", "log", "rank"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PERCENTILES = (5.0, 95.0)
DRAWS = 2000
FEWEST = 3  # agents that a coefficient is asked of
FEW = 5  # agents that can be drawn anew
DEFINED = 0.9  # share of the draws that must have a coefficient for their percentiles to mean anything


@dataclass(frozen=True)
class Correlation:
    """A coefficient over n agents with its two intervals; nan where there is none."""

    kind: Kind
    value: float
    low: float  # environments drawn anew
    high: float
    agents_low: float  # agents drawn anew
    agents_high: float
    n: int


@dataclass(frozen=True)
class Measured:
    """The scores of the same agents on one set of environments, each named by its setting and its seed."""

    values: Array  # [agents, environments], all finite
    environments: tuple[tuple[str, int], ...]  # [environments]

    @property
    def means(self) -> Array:
        return np.asarray(self.values, float).mean(axis=1)


def coefficient(a: Array, b: Array, kind: Kind = "pearson") -> Array:
    """The correlation of a [..., agents] with b [..., agents]; nan where it is not defined.

    >>> float(coefficient([1.0, 2.0, 3.0], [1.0, 4.0, 9.0], "rank"))
    1.0
    """
    x, y = (_transformed(_varied(np.asarray(side, float)), kind) for side in (a, b))
    x, y = (side - side.mean(axis=-1, keepdims=True) for side in (x, y))
    return _ratio((x * y).sum(-1), (x * x).sum(-1), (y * y).sum(-1))


def correlate(a: Measured, b: Measured, draws: int = DRAWS, seed: int = 0) -> tuple[Correlation, ...]:
    """The coefficients of two sides that hold the same agents in the same order, one of each kind."""
    drawn = drawn_means([a, b], draws, seed)
    return tuple(_correlation(kind, [a.means, b.means], drawn, seed) for kind in KINDS)


def correlate_blocks(
    a: Measured, b: Measured, blocks: int, draws: int = DRAWS, seed: int = 0
) -> tuple[tuple[Array, Array], tuple[Correlation, ...]]:
    """The mean scores of every agent in every block, [agents, blocks] of each side; coefficients within blocks."""
    means = block_means(a, blocks), block_means(b, blocks)
    picked = Stream("correlation", seed, "blocks", blocks).integers(blocks, draws, blocks)
    found = []
    for kind in KINDS:
        x, y = (_centred(side.T, kind) for side in means)  # [blocks, agents]
        sums = [(one * other).sum(axis=1) for one, other in ((x, y), (x, x), (y, y))]
        value = float(_ratio(*(part.sum() for part in sums)))
        low, high = _limits(_ratio(*(part[picked].sum(axis=1) for part in sums)))
        nothing = float("nan")
        found.append(Correlation(kind, value, low, high, nothing, nothing, x.size))
    return means, tuple(found)


def block_means(side: Measured, blocks: int) -> Array:
    """Mean scores [agents, blocks] over the environments whose seed, modulo the number of blocks, is the block's."""
    home = np.array([seed % blocks for _, seed in side.environments])
    if missing := set(range(blocks)) - set(home.tolist()):
        raise CalibrantError(
            f"{blocks} blocks need at least as many seeds on either side; block {min(missing)} has no environment"
        )
    values = np.asarray(side.values, float)
    return np.stack([values[:, home == block].mean(axis=1) for block in range(blocks)], axis=1)


def correlation_matrix(
    sides: Sequence[Measured], kind: Kind = "pearson", draws: int = DRAWS, seed: int = 0
) -> list[list[Correlation]]:
    """The coefficient of every side with every side; the diagonal is 1 where it is defined."""
    drawn, means = drawn_means(sides, draws, seed), [side.means for side in sides]
    return [
        [_correlation(kind, [means[i], means[j]], [drawn[i], drawn[j]], seed) for j in range(len(sides))]
        for i in range(len(sides))
    ]


def drawn_means(sides: Sequence[Measured], draws: int, seed: int) -> list[Array]:
    """Mean scores [draws, agents] of every side on environments drawn anew, shared ones drawn together."""
    every = sorted({environment for side in sides for environment in side.environments})
    place = {environment: index for index, environment in enumerate(every)}
    weights = environment_weights([problem for problem, _ in every], draws, Stream("correlation", seed, "environments"))
    means = []
    for side in sides:
        mine = weights[:, [place[environment] for environment in side.environments]]
        with np.errstate(invalid="ignore", divide="ignore"):  # no environment of a side drawn: no mean
            means.append(mine @ np.asarray(side.values, float).T / mine.sum(axis=1, keepdims=True))
    return means


def environment_weights(strata: Sequence[str], draws: int, stream: Stream) -> Array:
    """Weights [draws, environments] by Rao and Wu: every stratum's sum is its size in every draw.

    A mean under them has the variance that `stats.intervals` estimates. A lone environment in all keeps its weight.
    """
    codes = _collapsed(np.unique(np.asarray(strata), return_inverse=True)[1])
    weights = np.ones((draws, len(codes)))
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        size = len(members)
        if size < 2:
            continue
        picked = stream.integers(size, draws, size - 1) + size * np.arange(draws)[:, None]
        counts = np.bincount(picked.ravel(), minlength=draws * size).reshape(draws, size)
        weights[:, members] = counts * (size / (size - 1))
    return weights


def _ratio(xy: Array, xx: Array, yy: Array) -> Array:
    """The coefficient from sums of products; nan where one side does not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(xy / np.sqrt(xx * yy), -1.0, 1.0)


def _centred(values: Array, kind: Kind) -> Array:
    """Transformed, less the mean of each row; rows that do not vary count for nothing."""
    found = _transformed(values, kind)
    return np.where(np.isnan(_varied(values)), 0.0, found - found.mean(axis=-1, keepdims=True))


def _correlation(kind: Kind, means: Sequence[Array], drawn: Sequence[Array], seed: int) -> Correlation:
    a, b = means
    if len(a) != len(b) or len(a) < FEWEST:
        raise CalibrantError(f"a correlation needs at least {FEWEST} agents that both sides have")
    low, high = _limits(coefficient(drawn[0], drawn[1], kind))
    others = _drawn_agents(len(a), len(drawn[0]), seed)
    below, above = _limits(coefficient(a[others], b[others], kind))
    value = float(coefficient(a, b, kind))
    if np.isnan(value):
        low = high = below = above = float("nan")
    return Correlation(kind, value, low, high, below, above, len(a))


def _drawn_agents(count: int, draws: int, seed: int) -> Array:
    """[draws, agents] indices, at least three different ones in each; none at all where agents are few."""
    if count < FEW:
        return np.zeros((0, count), int)
    picked = Stream("correlation", seed, "agents", count).integers(count, draws, count)
    different = (np.diff(np.sort(picked, axis=1), axis=1) > 0).sum(1) + 1
    return picked[different >= FEWEST]


def _limits(found: Array) -> tuple[float, float]:
    known = found[~np.isnan(found)]
    if not len(known) or len(known) < DEFINED * len(found):
        return float("nan"), float("nan")
    low, high = np.percentile(known, PERCENTILES)
    return float(low), float(high)


def _transformed(values: Array, kind: Kind) -> Array:
    if kind == "rank":
        return np.where(np.isnan(values).any(-1, keepdims=True), np.nan, rankdata(values, axis=-1, nan_policy="omit"))
    if kind == "log":
        positive = (values > 0).all(axis=-1, keepdims=True)
        return np.where(positive, np.log(np.where(positive, values, 1.0)), np.nan)
    return values


def _varied(values: Array) -> Array:
    """Rows that vary by mere rounding become nan: what they correlate with would be chance."""
    reach = values.max(axis=-1, keepdims=True) - values.min(axis=-1, keepdims=True)
    return np.where(reach > 1e-12 * np.abs(values).max(axis=-1, keepdims=True), values, np.nan)


def _collapsed(codes: Array) -> Array:
    """Strata of one environment become one stratum; a lone one joins the largest."""
    count = np.bincount(codes)
    single = count[codes] == 1
    home = count.argmax() if single.sum() == 1 else len(count)
    return np.where(single, home, codes)
