"""The bag of coins: what joint predictions of coins of no relation tell apart, with closed forms to hold against."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from calibrant.suites.base import Preset, Suite

AGENTS = ("coins_independent", "coins_shared", "coins_posterior")


def _specs(sizes: Iterable[int], *given: str) -> tuple[str, ...]:
    """Canonical: fields in declared order, defaults left out."""
    return tuple("coins?" + "&".join([f"coins={n}"] * (n != 100) + list(given)) for n in sizes)


def expected(agent: str, metric: str, at: Mapping[str, Any]) -> float | None:
    """Of a bag without training data, for the agents and the orders that have a closed form.

    >>> round(expected("coins_posterior", "kl_tau10_dyadic", {"coins": 100, "train": 0}), 4)
    1.1624
    """
    family = re.fullmatch(r"kl_tau(\d+)(_kappa1|_dyadic)?", metric)
    if agent not in AGENTS or at.get("train") or not family:
        return None
    from calibrant.problems.coins_theory import expected_kl

    kappa = {None: None, "_kappa1": 1, "_dyadic": 2}[family[2]]
    return expected_kl(agent.removeprefix("coins_"), at["coins"], int(family[1]), kappa)


SUITE = Suite(
    name="coins",
    title="Bag of coins",
    presets={
        "quick": Preset(_specs((10, 100, 1000), "tau=10x100"), AGENTS, seeds=10),
        "paper": Preset(_specs((10, 30, 100, 300, 1000, 3000), "tau=3x10x30x100"), AGENTS, seeds=30),
        "trained": Preset(_specs((10, 100), "train=100"), (*AGENTS, "uniform", "prior", "logistic", "mlp"), seeds=5),
    },
    metrics=("kl_tau10", "kl_tau100", "kl_tau10_kappa1", "kl_tau10_dyadic", "kl_tau100_dyadic"),
    baseline="coins_posterior",
    axes=("coins", "train"),
    expected=expected,
)
