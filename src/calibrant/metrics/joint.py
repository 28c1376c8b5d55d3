"""The joint score of a family of tuples: KL, its marginal part, and the entropy of the truth.

For a tuple with anchors a and repeats r, the agent's joint probability of labels y is  Q(y) = sum_m w_m prod_t
p_m(y_t | x_t). The score is  KL = sum_y P(y) [log P(y) - log Q(y)].  Labels are summed out:

exactly   Places at one anchor are exchangeable, so an outcome is how often each class occurs at each anchor. The
          anchors are split into two halves with tables of outcomes; Q over all pairs of outcomes is then one matrix
          product over worlds. 1024 labellings of ten binary places cost as much as 64.
sampled   When there are more than ENUMERATE outcomes: KL = sum_t KL(P_t || q_t) + E_y[log prod_t q_t(y_t) - log Q(y)].
          The first part is closed; only the second is averaged over DRAWS labellings from the truth. The expectation
          is exactly KL for any number of draws, and its noise is only that of the dependence part.
observed  Without a true distribution (real data) the label of each anchor is what it is; KL is then the joint NLL.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrant.metrics.logspace import Groups, full_and_left_out, log_group_sums, log_of_sums, probabilities
from calibrant.seeds import Stream
from calibrant.types import Array, Tuples

ENUMERATE = 4096  # more outcomes than this are sampled
DRAWS = 64  # labellings per tuple when they are sampled
BYTES = 4e6  # working memory for one block of tuples: it stays in cache
TINY = 1e-280  # sums of products below this may have lost digits and are redone in logarithms
NEGLIGIBLE = 1e-30  # outcomes that the truth gives less than this add nothing that a double could hold


@dataclass(frozen=True)
class JointParts:
    """Per tuple [n]; `kl_left_out` [groups] is the mean KL with each group of worlds left out."""

    kl: Array
    marginal: Array
    entropy: Array
    kl_left_out: Array


@dataclass(frozen=True)
class Outcomes:
    """Class counts at some anchors, and the log of how many labellings share each."""

    anchors: range  # of the tuple's anchors, those that these outcomes are about
    classes: int
    each: tuple[Array, ...]  # per anchor, [outcomes at it, classes]
    counts: Array  # [outcomes, all anchors * classes], zero at other anchors
    multiplicity: Array  # [outcomes] log


def joint_parts(
    logp: Array,  # [unique, classes, worlds]
    groups: Groups,
    tuples: Tuples,
    logq: Array,  # [unique, classes] the agent's marginal prediction
    truth: Array | None,  # [unique, classes]
    labels: Array,  # [unique]
    stream: Stream,
) -> JointParts:
    """Score every tuple of a family. Tuples with the same repeats share their tables of outcomes."""
    n, (_, classes, count) = len(tuples.anchors), logp.shape
    marginal, entropy = marginal_parts(tuples, logq, truth, labels)
    if count == 1:  # one world is a product of its marginals
        return JointParts(marginal, marginal, entropy, marginal.mean(keepdims=True))
    kl, left_out = np.zeros(n), np.zeros((groups.count, n))
    for members, anchors, pattern in patterns(tuples):
        halves = _halves(pattern, classes) if truth is not None else None
        wide = sum(len(half.counts) for half in halves) if halves else (DRAWS if truth is not None else 1)
        for block in _blocks(len(members), count * max(wide, len(pattern) * classes)):
            rows, at = members[block], anchors[block]
            worlds = logp[at].reshape(len(rows), -1, count)  # [b, anchors * classes, worlds]
            if truth is None:
                counts = (labels[at][:, :, None] == np.arange(classes)) * np.array(pattern)[None, :, None]
                score = _observed(worlds, counts, groups)
            elif halves:
                score = _enumerated(worlds, truth[at].reshape(len(rows), -1), halves, groups)
            else:
                counts = draw_counts(stream, np.exp(truth[at]), pattern)
                score = _sampled(worlds, logq[at].reshape(len(rows), -1), counts, marginal[rows], groups)
            kl[rows], left_out[:, rows] = score
    return JointParts(kl, marginal, entropy, left_out.mean(axis=1))


# --- three ways to treat labels, each (kl [b], kl with each group left out [groups, b]) -------------------


def _enumerated(worlds: Array, truth: Array, halves: tuple[Outcomes, Outcomes], groups: Groups) -> tuple[Array, Array]:
    if (p := probabilities(worlds)) is None:
        p = np.exp(worlds.astype(np.float64))
    p = p.reshape(len(worlds), -1, halves[0].classes, worlds.shape[2])
    left, right = (_products(p, half) for half in halves)  # [b, outcomes of the half, worlds]
    left *= groups.weights
    sums = np.stack(
        [left[..., m] @ np.swapaxes(right[..., m], 1, 2) for m in map(groups.members, range(groups.count))]
    )  # [groups, b, outcomes, outcomes]
    full, left_out = log_of_sums(sums, groups)
    parts = [truth @ half.counts.T for half in halves]
    log_p = parts[0][:, :, None] + parts[1][:, None, :]
    true = np.exp(log_p + halves[0].multiplicity[:, None] + halves[1].multiplicity)
    lost = np.argwhere((sums.min(axis=0) < TINY) & (true > NEGLIGIBLE))
    for block in _blocks(len(lost), worlds.shape[2] * worlds.shape[1]):
        b, i, j = lost[block].T
        logs = np.einsum("bkw,bk->wb", worlds[b], halves[0].counts[i] + halves[1].counts[j])
        full[b, i, j], left_out[:, b, i, j] = full_and_left_out(log_group_sums(logs, groups), groups)
    return _expect(true, log_p - full), _expect(true, log_p - left_out)


def _products(p: Array, half: Outcomes) -> Array:
    """Every world's probability of every outcome of a half [b, outcomes, worlds]; p [b, anchors, classes, worlds]."""
    b, worlds = len(p), p.shape[3]
    table = np.ones((b, 1, worlds))
    for anchor, counts in zip(half.anchors, half.each, strict=True):
        powers = _powers(p[:, anchor], counts)
        table = (table[:, :, None] * powers[:, None]).reshape(b, -1, worlds)
    return table


def _powers(p: Array, counts: Array) -> Array:
    """prod_c p_c ^ count_c for every row of counts; p [b, classes, worlds] -> [b, rows, worlds]."""
    if counts.sum(axis=1).max() == 1:  # one place: each outcome is a class
        return p[:, counts.argmax(axis=1)]
    powers = np.ones((len(p), len(counts), p.shape[2]))
    for c in range(p.shape[1]):
        power = np.ones((len(p), p.shape[2]))
        for times in range(1, int(counts.max()) + 1):
            power = power * p[:, c]
            powers[:, counts[:, c] == times] *= power[:, None]
    return powers


def _expect(p: Array, values: Array) -> Array:
    return (p * np.where(p > NEGLIGIBLE, values, 0.0)).sum(axis=(-2, -1))


def _sampled(worlds: Array, logq: Array, counts: Array, marginal: Array, groups: Groups) -> tuple[Array, Array]:
    joint = np.moveaxis(counts @ worlds, 2, 0)  # [worlds, b, draws]
    full, left_out = full_and_left_out(log_group_sums(joint, groups), groups)
    product = (logq[:, None, :] * counts).sum(axis=2)
    return marginal + (product - full).mean(axis=1), marginal + (product - left_out).mean(axis=2)


def _observed(worlds: Array, counts: Array, groups: Groups) -> tuple[Array, Array]:
    joint = np.einsum("bkw,bk->wb", worlds, counts.reshape(len(worlds), -1))
    full, left_out = full_and_left_out(log_group_sums(joint, groups), groups)
    return -full, -left_out


# --- tables ---------------------------------------------------------------------------------------


def marginal_parts(tuples: Tuples, logq: Array, truth: Array | None, labels: Array) -> tuple[Array, Array]:
    """Sum over places of KL(P_t || q_t) and of the entropy of P_t; on real data of -log q_t(y_t) and 0."""
    if truth is None:
        kl = -np.take_along_axis(logq, labels[:, None], axis=1)[:, 0]
        entropy = np.zeros(len(logq))
    else:
        p = np.exp(truth)
        kl, entropy = (p * (truth - logq)).sum(axis=1), -(p * truth).sum(axis=1)
    kl, entropy = ((values[tuples.anchors] * tuples.repeats).sum(axis=1) for values in (kl, entropy))
    return kl, entropy


def patterns(tuples: Tuples) -> Iterator[tuple[Array, Array, tuple[int, ...]]]:
    """Tuples grouped by their repeats in falling order: (rows, their anchors in that order, the repeats)."""
    order = np.argsort(-tuples.repeats, axis=1, kind="stable")
    repeats = np.take_along_axis(tuples.repeats, order, axis=1)
    anchors = np.take_along_axis(tuples.anchors, order, axis=1)
    kinds, kind = np.unique(repeats, axis=0, return_inverse=True)
    for index, row in enumerate(kinds):
        members = np.flatnonzero(kind.reshape(-1) == index)
        pattern = tuple(int(count) for count in row if count)
        yield members, anchors[members][:, : len(pattern)], pattern


def _halves(pattern: tuple[int, ...], classes: int) -> tuple[Outcomes, Outcomes] | None:
    """Two tables of outcomes of about equal length, or None when there are too many outcomes."""
    sizes = [math.comb(repeats + classes - 1, classes - 1) for repeats in pattern]
    if math.prod(sizes) > ENUMERATE:
        return None
    cut = min(range(1, len(sizes) + 1), key=lambda at: math.prod(sizes[:at]) + math.prod(sizes[at:]))
    anchors = range(len(pattern))
    return outcomes_of(pattern, anchors[:cut], classes), outcomes_of(pattern, anchors[cut:], classes)


def outcomes_of(pattern: tuple[int, ...], chosen: range, classes: int) -> Outcomes:
    each = [_counts_of(pattern[anchor], classes) for anchor in chosen]
    counts, multiplicity = [], []
    for outcome in itertools.product(*each):
        row = np.zeros((len(pattern), classes))
        for anchor, count in zip(chosen, outcome, strict=True):
            row[anchor] = count
        counts.append(row.reshape(-1))
        multiplicity.append(sum(math.lgamma(sum(c) + 1) - sum(math.lgamma(k + 1) for k in c) for c in outcome))
    return Outcomes(chosen, classes, tuple(map(np.array, each)), np.array(counts), np.array(multiplicity))


def _counts_of(repeats: int, classes: int) -> list[tuple[int, ...]]:
    """Every way in which `repeats` labels fall into `classes`."""
    if classes == 1:
        return [(repeats,)]
    return [(first, *rest) for first in range(repeats + 1) for rest in _counts_of(repeats - first, classes - 1)]


def draw_counts(stream: Stream, p: Array, pattern: tuple[int, ...]) -> Array:
    """Labellings from the truth [b, anchors, classes] as class counts [b, draws, anchors * classes]."""
    below = np.cumsum(p, axis=2)[:, None, :, None, :-1]  # [b, 1, anchors, 1, classes - 1]
    luck = stream.uniform(len(p), DRAWS, len(pattern), max(pattern))
    label = (luck[..., None] > below).sum(axis=-1)  # [b, draws, anchors, places]
    asked = np.arange(max(pattern)) < np.array(pattern)[:, None]
    hits = (label[..., None] == np.arange(p.shape[2])) & asked[..., None]
    return hits.sum(axis=3).reshape(len(p), DRAWS, -1).astype(np.float64)


def _blocks(n: int, doubles_per_tuple: int) -> Iterator[slice]:
    step = max(1, int(BYTES / (8 * doubles_per_tuple)))
    return (slice(start, start + step) for start in range(0, n, step))
