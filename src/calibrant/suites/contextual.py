"""Real datasets as contextual bandits: the reward of the class played is all that an agent ever learns of a row."""

from __future__ import annotations

from calibrant.suites.base import Preset, Suite, Timed

TABLES = ("iris", "wine_quality", "german_credit")
IMAGES = ("mnist", "fashion_mnist", "mnist_shot_noise", "cifar10")
AGENTS = ("uniform", "oracle", "mlp", "ensemble?size=10", "ensemble+?size=10&prior_scale=1", "epinet?prior_scale=0.03")


def spec(data: str, *, steps: int = 2000) -> str:
    """Canonical: fields in declared order, defaults left out."""
    given = [f"steps={steps}"] * (steps != 2000) + [f"data={data}"] * (data != "iris")
    return "contextual" + ("?" + "&".join(given) if given else "")


SUITE = Suite(
    name="contextual",
    title="Contextual bandits of real data",
    presets={
        "quick": Preset(problems=tuple(spec(data) for data in TABLES), agents=AGENTS, seeds=5, alone=True),
        "paper": Preset(
            problems=tuple(spec(data, steps=10_000) for data in (*TABLES, *IMAGES)),
            agents=(*AGENTS, "dropout", "bbb", "hypermodel?prior_scale=0.1"),
            seeds=10,
        ),
    },
    metrics=(
        "regret_to_uniform",
        "simple_regret_to_uniform",
        "regret",
        "simple_regret",
        "average_regret",
        "fit_cpu_seconds",
    ),
    headlines=(("regret_to_uniform", "decisions"), ("simple_regret_to_uniform", "late decisions")),
    baseline="mlp",
    axes=("data", "steps"),
    timed=(Timed("average_regret", "steps", running=True),),
    unit="",
)
