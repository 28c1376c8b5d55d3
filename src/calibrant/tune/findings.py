"""Which hyperparameters matter, and what a smaller search would have found.

The importance of a hyperparameter is its share of the objective's variance by functional ANOVA (Hutter et al., "An
Efficient Approach for Assessing Hyperparameter Importance", 2014), as Optuna computes it: shares of single
hyperparameters, scaled to sum to one. The expected best of k trials drawn without replacement from n is
    sum_i C(n - i, k - 1) / C(n, k) v_(i),   v_(1) the best,
the unbiased form (Tang et al., 2020) of the curve of Dodge et al., "Show Your Work", 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibrant.tune.samplers import distribution, value
from calibrant.tune.spaces import Choice, Point, Range

FEW = 4  # trials that say nothing about importance


def expected_best(values: Sequence[float], minimise: bool = True) -> tuple[float, ...]:
    """The expected best of k = 1, 2, ... of these values.

    >>> expected_best([3.0, 1.0, 2.0])
    (2.0, 1.333..., 1.0)
    """
    best_first = np.array(sorted(values, reverse=not minimise), float)
    n = len(best_first)
    places = np.arange(1, n)
    curve = []
    for k in range(1, n + 1):
        ratios = np.maximum(n - places - k + 1, 0) / (n - places)  # of neighbouring chances: no huge binomials
        curve.append(float(k / n * np.cumprod([1.0, *ratios]) @ best_first))
    return tuple(curve)


def importance(points: Sequence[Point], values: Sequence[float]) -> dict[str, float]:
    """Each hyperparameter's share, largest first; empty where too few trials, or none that differ, say nothing."""
    names = [name for name in dict.fromkeys(key for point in points for key in point) if len(_words(points, name)) > 1]
    if len(points) < FEW or not names or max(values) == min(values):
        return {}
    import optuna

    axes: Mapping[str, Choice | Range] = {name: _axis(_words(points, name)) for name in names}
    distributions = {name: distribution(axis) for name, axis in axes.items()}
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study()
    for point, one in zip(points, values, strict=True):
        params = {name: value(axis, point[name]) for name, axis in axes.items()}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=one))
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(share) for name, share in shares.items()}


def _words(points: Sequence[Point], name: str) -> list[str]:
    return list(dict.fromkeys(point[name] for point in points))


def _axis(words: Sequence[str]) -> Choice | Range:
    """Numbers as a range, logarithmic when they span more than a factor of ten; anything else as it is."""
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return Choice(tuple(words))
    low, high = min(numbers), max(numbers)
    return Range(low, high, log=0 < 10 * low < high)
