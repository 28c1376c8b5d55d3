"""The 2-D Neural Testbed: 7 training sizes x 3 temperatures x 10 seeds = 210 environments."""

from __future__ import annotations

from calibrant.suites.base import Preset, Suite

TRAIN = (1, 3, 10, 30, 100, 300, 1000)
TEMP = ("0.01", "0.1", "0.5")


def spec(train: int, temp: str, dim: int = 2) -> str:
    """Canonical: fields in declared order, defaults left out."""
    given = [f"train={train}"] * (train != 10) + [f"temp={temp}"] * (temp != "0.1") + [f"dim={dim}"] * (dim != 2)
    return "testbed" + ("?" + "&".join(given) if given else "")


SUITE = Suite(
    name="testbed",
    title="Neural Testbed, 2-D",
    presets={
        "quick": Preset(
            problems=tuple(spec(train, temp) for train in (1, 10, 100, 1000) for temp in TEMP),
            agents=("uniform", "mlp", "ensemble?size=10", "ensemble+?size=10"),
            seeds=2,
        ),
        "paper": Preset(
            problems=tuple(spec(train, temp) for train in TRAIN for temp in TEMP),
            agents=("uniform", "prior", "oracle", "logistic", "mlp", "ensemble", "ensemble+"),
            seeds=10,
        ),
    },
    metrics=("kl_tau1", "kl_tau10", "kl_tau10_dyadic", "aggregate", "accuracy", "ece", "fit_cpu_seconds"),
    baseline="mlp",
    axes=("train", "temp"),
)
