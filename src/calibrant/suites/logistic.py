"""Logistic regression from 1 to 1000 dimensions: which order of joint prediction tells agents apart, and where."""

from __future__ import annotations

from calibrant.suites.base import Preset, Suite

AGENTS = ("uniform", "marginal", "prior")
FEW, TENS, QUICK, MANY = (
    "10x100",
    "10x100x1000x10000",
    "10x30x100x300x1000x3000x10000",
    "2x3x10x20x30x50x100x200x300x500x1000x2000x3000x5000x10000",
)
DIMS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)


def _spec(dim: int, tau: str, long: int, temp: str = "0.01") -> str:
    """Canonical: fields in declared order, defaults left out."""
    given = [f"dim={dim}"] * (dim != 10) + [f"temp={temp}"] * (temp != "0.01") + [f"tau={tau}"] * (tau != TENS)
    return "logistic?" + "&".join([*given, *[f"long={long}"] * (long != 10)])


SUITE = Suite(
    name="logistic",
    title="Logistic regression",
    presets={
        "quick": Preset(
            problems=(
                *(_spec(dim, QUICK, 2) for dim in (1, 2, 3, 5, 10, 30, 100, 300)),
                _spec(1000, TENS, 2),
            ),
            agents=AGENTS,
            seeds=3,
        ),
        "paper": Preset(tuple(_spec(dim, MANY, 10) for dim in DIMS), AGENTS, seeds=10),
        "printed": Preset(tuple(_spec(dim, QUICK, 2, "100") for dim in (1, 10, 100)), AGENTS, seeds=3),
        "trained": Preset(
            problems=tuple(f"logistic?{f'dim={dim}&' * (dim != 10)}train={10 * dim}&tau={FEW}" for dim in (2, 10, 100)),
            agents=("uniform", "prior", "logistic", "mlp", "ensemble?size=10"),
            seeds=3,
        ),
    },
    metrics=("kl_tau10", "kl_tau100", "kl_tau1000", "kl_tau10000", "kl_tau10_kappa1", "kl_tau10_dyadic"),
    baseline="prior",
    axes=("dim", "temp", "train"),
)
