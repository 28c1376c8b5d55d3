"""Regret of a game: by how much the reward probability of the best arm exceeds that of the arm played.

It is expected regret: no reward's luck is in it. What a uniform player loses on average is known exactly, so that
regret can also be said as a share of it.
"""

from __future__ import annotations

import numpy as np

from calibrant.types import Array, Scores

STRETCHES = 100  # of a game: their average regrets are kept, for curves


def regret_scores(regrets: Array, reward: Array, order: Array | None) -> dict[str, Scores]:
    """From the regret of every step [steps], the table's reward probabilities [rows, arms] and the rows offered.

    `regret` is the total, `average_regret` per step (its items are the averages of a hundred stretches),
    `simple_regret` that of the last stretch, and `regret_to_uniform` the total over what a uniform player loses.
    """
    kept = np.asarray(regrets, np.float64)
    stretches = np.array([part.mean() for part in np.array_split(kept, min(STRETCHES, len(kept)))])
    total, uniform = float(kept.sum()), uniform_regret(reward, order, len(kept))
    scores = {
        "regret": Scores(total),
        "average_regret": Scores(total / len(kept), n=len(stretches), items=stretches),
        "simple_regret": Scores(float(stretches[-1])),
    }
    return scores | ({"regret_to_uniform": Scores(total / uniform)} if uniform > 0 else {})


def uniform_regret(reward: Array, order: Array | None, steps: int) -> float:
    """Expected total regret of playing every arm on offer with equal chance."""
    values = np.asarray(reward, np.float64)
    if order is None:
        return float(steps * (values.max() - values.mean()))
    offered = values[np.asarray(order)[:steps]]
    return float((offered.max(axis=1) - offered.mean(axis=1)).sum())
