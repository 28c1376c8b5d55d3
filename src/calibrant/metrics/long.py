"""Joint scores of high order: tuples of thousands of labels, streamed so that memory does not grow with them.

A tuple is drawn, its inputs are asked in blocks of BLOCK, and only each world's running log-likelihood is kept; after
tau inputs it gives the score of order tau. Summing out 2^10,000 labellings is impossible, so every tuple has one
labelling y from the truth. Q is the mean over the belief's worlds, and as in `calibrant.metrics.joint` only the
dependence part feels the labels' noise:
    KL = sum_t KL(P_t || q_t) + E_y[log prod_t q_t(y_t) - log Q(y)].

A belief may bring an estimator of Q of its own (`evidence`); then KL = E_y[log P(y) - log Q(y)], whose noise is less
where a belief comes to know the environment, because both terms share it. Its errors are taken as if those of all
tuples were fully correlated, which bounds them from above.
`drawn_kl_tau...` is what the mean over sampled worlds gives in any case, as published experiments estimate it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from calibrant.metrics.logspace import Groups, full_and_left_out, group_worlds, log_group_sums, log_means, summarise
from calibrant.seeds import child
from calibrant.types import Answers, Array, Long, Scores

BLOCK = 512  # inputs asked at a time: a thousand worlds' answers to them are 8 MB


@dataclass(frozen=True)
class Asked:
    """How a belief is asked: its worlds at some inputs, and its own estimate of a joint probability if it has one."""

    answer: Callable[[Array], Answers]  # at inputs [BLOCK, inputs]
    evidence: Callable[[int, Array, Array], tuple[float, float]] | None = None  # (seed, x, labels) -> (log, error)


@dataclass(frozen=True)
class Sums:
    """Of one tuple up to one order."""

    true: float  # log-probability of the labels under the truth
    entropy: float
    marginal: float  # sum of KL(P_t || q_t)
    product: float  # sum of log q_t(y_t)
    full: float  # log of the mean over worlds of their likelihood
    left_out: Array  # [groups] the same without each group


def long_scores(long: Long, asked: Asked, key: object) -> dict[str, Scores]:
    """KL, joint NLL and their marginal and dependence parts for every order above 1."""
    sums: dict[int, list[Sums]] = {tau: [] for tau in long.tau}
    own: dict[int, list[tuple[float, float]]] = {tau: [] for tau in long.tau}
    sampled = False
    for i in range(long.n):
        x, truth, labels = long.draw(i)
        for tau, found, groups in _running(long.tau, x, truth, labels, asked):
            sums[tau].append(found)
            sampled = groups.jackknife
            if asked.evidence and tau > 1:
                own[tau].append(asked.evidence(child(key, "evidence", i, tau) % 2**32, x[:tau], labels[:tau]))
    return {
        name: score
        for tau in long.tau
        if tau > 1
        for name, score in _scores(f"tau{tau}", sums[tau], own[tau], sampled).items()
    }


def _running(
    orders: tuple[int, ...], x: Array, truth: Array, labels: Array, asked: Asked
) -> Iterator[tuple[int, Sums, Groups]]:
    """The sums of one tuple after each order."""
    true = entropy = marginal = product = 0.0
    likelihood: Array | float = 0.0  # [worlds]
    start = 0
    for tau in orders:
        for begin in range(start, tau, BLOCK):
            rows = slice(begin, min(begin + BLOCK, tau))
            count = rows.stop - rows.start
            answers = asked.answer(np.pad(x[rows], ((0, BLOCK - count), (0, 0))))  # one shape: one compiled program
            logp = np.asarray(answers.logp, np.float64)[:, :count]  # [worlds, rows, classes]
            groups = group_worlds(answers)
            logq, _ = log_means(np.ascontiguousarray(np.moveaxis(logp, 0, 2)), groups)
            p, y = np.exp(truth[rows]), labels[rows, None]
            true += float(np.take_along_axis(truth[rows], y, axis=1).sum())
            entropy -= float(_weighted(p, truth[rows]))
            marginal += float(_weighted(p, truth[rows] - logq))
            product += float(np.take_along_axis(logq, y, axis=1).sum())
            likelihood = likelihood + np.take_along_axis(logp, y[None], axis=2)[..., 0].sum(axis=1)
        start = tau
        full, left_out = full_and_left_out(log_group_sums(np.asarray(likelihood), groups), groups)
        yield tau, Sums(true, entropy, marginal, product, float(full), left_out), groups


def _weighted(p: Array, values: Array) -> float:
    return float((p * np.where(p > 0, values, 0.0)).sum())


def _scores(name: str, sums: list[Sums], own: list[tuple[float, float]], sampled: bool) -> dict[str, Scores]:
    true, entropy, marginal, product, full = (
        np.array([getattr(one, part) for one in sums]) for part in ("true", "entropy", "marginal", "product", "full")
    )
    drawn = summarise(true - full, keep=False)
    scores = {f"drawn_kl_{name}": replace(drawn, mean=max(drawn.mean, 0.0))} if sampled else {}
    if own:
        logs, errors = np.array(own).T
        kl, left_out, bias, error = true - logs, None, float((errors**2).mean() / 2), float(errors.mean())
    else:
        kl = marginal + product - full
        left_out = (marginal + product - np.stack([one.left_out for one in sums], axis=1)).mean(axis=1)
    for part, shift in {"kl": np.zeros(1), "joint_nll": entropy, "dependence": -marginal}.items():
        score = summarise(kl + shift, None if left_out is None else left_out + shift.mean(), keep=part == "kl")
        scores[f"{part}_{name}"] = replace(score, mc_bias=bias, mc_se=error) if own else score
    return scores | {f"marginal_{name}": summarise(marginal, keep=False)}
