"""The neural bandit: what an agent's beliefs are worth when it must act on them.

Osband et al., "The Neural Testbed", NeurIPS 2022, section 5 and appendix E: 2, 10 and 50 dimensions with 20 arms each,
temperature 0.1, 50,000 steps of Thompson sampling, 20 seeds; the preset `code` decays weights as its code does.
`bandit-rules` plays environments of ten dimensions greedily, epsilon-greedily, by upper confidence bounds and at random
too; `bandit-laws` draws them from other networks (section 6).
"""

from __future__ import annotations

from calibrant.suites.base import Foretold, Preset, Suite, Timed
from calibrant.suites.robustness import LAWS

DIM = (2, 10, 50)
RULES = ("thompson", "greedy", "epsilon", "ucb", "uniform")
SMALL = ("mlp", "ensemble?size=10", "ensemble+?size=10", "dropout", "bbb", "hypermodel", "epinet", "deep_kernel")
METRICS = ("regret", "average_regret", "simple_regret", "regret_to_uniform", "fit_cpu_seconds")
HEADLINES = (("regret", "decisions"), ("simple_regret", "late decisions"))
COURSE = (Timed("average_regret", "steps", running=True),)


def spec(
    dim: int,
    *,
    steps: int = 50_000,
    rule: str = "thompson",
    decay: str = "paper",
    width: int = 50,
    activation: str = "relu",
) -> str:
    """Canonical: fields in declared order, defaults left out."""
    given = [f"steps={steps}"] * (steps != 50_000) + [f"rule={rule}"] * (rule != "thompson")
    given += [f"decay={decay}"] * (decay != "paper") + [f"dim={dim}"] * (dim != 2)
    given += [f"hidden={width}x{width}"] * (width != 50) + [f"activation={activation}"] * (activation != "relu")
    return "bandit" + ("?" + "&".join(given) if given else "")


PAPER = (
    *("uniform", "oracle", "mlp", "ensemble?size=30", "ensemble+?size=30"),
    *("dropout", "bbb", "hypermodel", "epinet", "deep_kernel"),
)

SUITE = Suite(
    name="bandit",
    title="Neural bandit",
    presets={
        "quick": Preset(
            problems=tuple(spec(dim, steps=2000) for dim in (2, 10)),
            agents=("uniform", "oracle", "mlp", "ensemble?size=10", "ensemble+?size=10", "epinet"),
            seeds=8,
            alone=True,
        ),
        "paper": Preset(problems=tuple(spec(dim) for dim in DIM), agents=PAPER, seeds=20),
        "code": Preset(problems=tuple(spec(dim, decay="code") for dim in DIM), agents=PAPER, seeds=20, alone=True),
    },
    metrics=METRICS,
    headlines=HEADLINES,
    baseline="mlp",
    axes=("dim", "steps", "decay"),
    timed=COURSE,
    unit="",
    foretold=Foretold(by=("kl_tau1", "kl_tau10"), at="dim"),
    tuned_on="testbed",
)
BY_RULE = Suite(
    name="bandit-rules",
    title="Neural bandit by other rules",
    presets={
        "quick": Preset(
            tuple(spec(2, steps=1000, rule=rule) for rule in RULES),
            ("mlp", "ensemble+?size=10"),
            seeds=8,
            alone=True,
        ),
        "paper": Preset(tuple(spec(10, steps=5000, rule=rule) for rule in RULES), SMALL, seeds=20),
    },
    metrics=METRICS,
    headlines=HEADLINES,
    baseline="mlp",
    axes=("dim", "steps", "rule"),
    met_by=("rule",),
    timed=(Timed("average_regret", "steps", lines="rule", running=True),),
    unit="",
    tuned_on="testbed",
)
BY_LAW = Suite(
    name="bandit-laws",
    title="Neural bandit under other generative models",
    presets={
        "quick": Preset(
            tuple(spec(2, steps=500, width=width, activation=activation) for width, activation in LAWS),
            ("mlp", "ensemble?size=10", "ensemble+?size=10", "epinet"),
            seeds=4,
            alone=True,
        ),
        "paper": Preset(
            tuple(spec(2, steps=5000, width=width, activation=activation) for width, activation in LAWS),
            SMALL,
            seeds=20,
        ),
    },
    metrics=METRICS,
    headlines=HEADLINES,
    baseline="mlp",
    axes=("activation", "hidden", "steps"),
    compared=("activation", "hidden"),
    unit="",
    tuned_on="testbed",
)
