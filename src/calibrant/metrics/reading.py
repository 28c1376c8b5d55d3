"""What is read off a belief's answers before any score: marginal predictions and joint parts, each computed once."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from calibrant.metrics.closed import closed_marginals, closed_parts
from calibrant.metrics.joint import JointParts, joint_parts
from calibrant.metrics.logspace import Groups, group_worlds, log_means
from calibrant.seeds import Stream
from calibrant.types import Answers, Array, Question, Truth, Tuples

BLOCK = 128  # unique inputs averaged at a time: their worlds stay in cache


@dataclass(frozen=True)
class Marginal:
    """Single predictions at the inputs that are judged on, item i averaging its k inputs."""

    logq: Array  # [m, k, classes]
    logq_left_out: Array  # [groups, m, k, classes]
    p: Array  # [m, k, classes] true probabilities, or the observed label with probability 1
    labels: Array  # [m, k] drawn labels
    entropy: Array  # [m, k] of the truth; 0 where it is not known


class Reading:
    """Answers beside the question and the truth. Metrics read from it; nothing is computed twice."""

    def __init__(self, answers: Answers, question: Question, truth: Truth, key: object = "metric") -> None:
        self.answers, self.question, self.truth, self.key = answers, question, truth, key
        self._joint: dict[int, JointParts] = {}  # not functools.cache, which would keep all answers alive for ever

    @property
    def true_logp(self) -> Array | None:
        return None if self.truth.logp is None else np.asarray(self.truth.logp, np.float64)

    @functools.cached_property
    def groups(self) -> Groups:
        return group_worlds(self.answers)

    @functools.cached_property
    def _averaged(self) -> tuple[Array, Array]:
        """log of the mean probability over worlds [unique, classes], and with each group left out."""
        if self.answers.log_joint is not None:
            known = closed_marginals(self.answers.log_joint, self.question.x, self.by_input.shape[1])
            return known, known[None]
        blocks = []
        for start in range(0, len(self.by_input), BLOCK):
            blocks.append(log_means(self.by_input[start : start + BLOCK], self.groups))
        return np.concatenate([full for full, _ in blocks]), np.concatenate([out for _, out in blocks], axis=1)

    @functools.cached_property
    def by_input(self) -> Array:
        """[unique, classes, worlds]: the worlds' answers to an input side by side, for products over inputs."""
        return np.ascontiguousarray(np.moveaxis(np.asarray(self.answers.logp), 0, 2))

    @functools.cached_property
    def marginal(self) -> Marginal:
        rows = np.asarray(self.question.marginal)
        logq, left_out = self._averaged
        labels = np.asarray(self.truth.labels)[rows]
        if self.true_logp is None:
            p = (labels[..., None] == np.arange(logq.shape[1])).astype(np.float64)
            entropy = np.zeros(rows.shape)
        else:
            true = self.true_logp[rows]
            p, entropy = np.exp(true), -(np.exp(true) * true).sum(axis=-1)
        return Marginal(logq[rows], left_out[:, rows], p, labels, entropy)

    def joint(self, family: int) -> JointParts:
        """The parts of the joint score of one family of tuples."""
        if family not in self._joint:
            tuples: Tuples = self.question.tuples[family]
            stream = Stream(self.key, "labels", tuples.name, tuples.tau)
            logq, _ = self._averaged
            labels = np.asarray(self.truth.labels)
            if (closed := self.answers.log_joint) is not None:
                x = np.asarray(self.question.x)
                self._joint[family] = closed_parts(closed, x, tuples, logq, self.true_logp, labels, stream)
                return self._joint[family]
            self._joint[family] = joint_parts(self.by_input, self.groups, tuples, logq, self.true_logp, labels, stream)
        return self._joint[family]
