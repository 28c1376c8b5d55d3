"""The neural bandit: what an agent's beliefs are worth when it must act on them.

Osband et al., "The Neural Testbed", NeurIPS 2022, section 5 and appendix E: 2, 10 and 50 dimensions with 20 arms each,
temperature 0.1, 50,000 steps of Thompson sampling, 20 seeds. The preset `rules` plays the same environments greedily,
epsilon-greedily, by upper confidence bounds and at random; `laws` draws them from other networks (section 6).
"""

from __future__ import annotations

from calibrant.suites.base import Preset, Suite
from calibrant.suites.robustness import LAWS

DIM = (2, 10, 50)
RULES = ("thompson", "greedy", "epsilon", "ucb", "uniform")
PAPER = (
    *("uniform", "oracle", "mlp", "ensemble?size=30", "ensemble+?size=30"),
    *("dropout", "bbb", "hypermodel", "epinet", "deep_kernel"),
)


def spec(dim: int, *, steps: int = 50_000, rule: str = "thompson", width: int = 50, activation: str = "relu") -> str:
    """Canonical: fields in declared order, defaults left out."""
    given = [f"steps={steps}"] * (steps != 50_000) + [f"rule={rule}"] * (rule != "thompson")
    given += [f"dim={dim}"] * (dim != 2)
    given += [f"hidden={width}x{width}"] * (width != 50) + [f"activation={activation}"] * (activation != "relu")
    return "bandit" + ("?" + "&".join(given) if given else "")


SUITE = Suite(
    name="bandit",
    title="Neural bandit",
    presets={
        "quick": Preset(
            problems=tuple(spec(dim, steps=2000) for dim in (2, 10)),
            agents=("uniform", "oracle", "mlp", "ensemble?size=10", "ensemble+?size=10", "epinet"),
            seeds=8,
        ),
        "paper": Preset(problems=tuple(spec(dim) for dim in DIM), agents=PAPER, seeds=20),
        "rules": Preset(
            problems=tuple(spec(10, steps=5000, rule=rule) for rule in RULES),
            agents=("mlp", "ensemble?size=10", "ensemble+?size=10", "epinet", "deep_kernel"),
            seeds=16,
        ),
        "laws": Preset(
            problems=tuple(spec(2, steps=5000, width=width, activation=activation) for width, activation in LAWS),
            agents=("mlp", "ensemble?size=10", "ensemble+?size=10", "dropout", "bbb", "hypermodel", "epinet"),
            seeds=16,
        ),
    },
    metrics=("regret", "average_regret", "simple_regret", "regret_to_uniform", "fit_cpu_seconds"),
    headlines=(("regret", "decisions"), ("simple_regret", "late decisions")),
    baseline="mlp",
    axes=("dim", "rule", "steps", "activation", "hidden"),
    compared=("activation", "hidden"),
    tuned_on="testbed",
)
