"""The bag of coins: what joint predictions of coins of no relation tell apart, with closed forms to hold against."""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.suites.base import Preset, Suite

AGENTS = ("coins_independent", "coins_shared", "coins_posterior")


def _specs(sizes: Iterable[int], *given: str) -> tuple[str, ...]:
    """Canonical: fields in declared order, defaults left out."""
    return tuple("coins?" + "&".join([f"coins={n}"] * (n != 100) + list(given)) for n in sizes)


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
)
