"""The 2-D testbed under other generative models: 7 activations and 5 widths, 11 laws in all.

Osband et al., "The Neural Testbed", NeurIPS 2022, section 6 (Figures 10 and 11): do agents rank alike whatever draws
the environments? Agents keep the network (ReLU, 50 and 50 hidden units) and the hyperparameters of the default law; see
`problems.misspecified`. The default law's environments are those of the suite `testbed`.
"""

from __future__ import annotations

from calibrant.suites.base import Preset, Suite
from calibrant.suites.testbed import TEMP, TRAIN

ACTIVATIONS = ("tanh", "swish", "sigmoid", "selu", "relu", "leaky_relu", "gelu")
WIDTHS = (5, 10, 20, 50, 100)
SHORT_CHAIN = "sgmcmc?lr=0.01&prior_variance=0.2&momentum=0.97&burn_in=4000&samples=60&thin=100"  # tuned on `testbed`
LAWS = (*((50, activation) for activation in ACTIVATIONS), *((width, "relu") for width in WIDTHS if width != 50))


def _spec(train: int, temp: str, width: int, activation: str) -> str:
    """In the order in which the problem declares its fields, without defaults."""
    given = [f"train={train}"] * (train != 10) + [f"temp={temp}"] * (temp != "0.1")
    given += [f"hidden={width}x{width}"] * (width != 50) + [f"activation={activation}"] * (activation != "relu")
    return "misspecified" + ("?" + "&".join(given) if given else "")


SUITE = Suite(
    name="robustness",
    title="Neural Testbed, 2-D, under other generative models",
    presets={
        "quick": Preset(
            problems=tuple(_spec(10, "0.1", *law) for law in LAWS),
            agents=(
                *("uniform", "mlp", "ensemble?size=10", "ensemble+?size=10", "dropout", "bbb", "hypermodel"),
                SHORT_CHAIN,
            ),
            seeds=2,
        ),
        "paper": Preset(
            problems=tuple(_spec(train, temp, *law) for law in LAWS for train in TRAIN for temp in TEMP),
            agents=("uniform", "mlp", "ensemble", "ensemble+", "dropout", "bbb", "hypermodel", "sgmcmc"),
            seeds=10,
        ),
    },
    metrics=("kl_tau1", "kl_tau10", "kl_tau10_dyadic", "aggregate", "accuracy", "ece", "fit_cpu_seconds"),
    baseline="mlp",
    axes=("activation", "hidden", "train", "temp"),
    compared=("activation", "hidden"),
    tuned_on="testbed",
)
