"""The Neural Testbed in 2, 10 and 100 dimensions: 3 x 4 training sizes x 3 temperatures x 5 seeds = 180 environments.

Osband et al., "Evaluating High-Order Predictive Distributions in Deep Learning", UAI 2022, section 4: T = ratio * D
training points, so that every dimension has a low, two middle and a high data regime. Every belief is asked at tau=1,
i.i.d. at tau=10 and dyadically at tau=10.
"""

from __future__ import annotations

from calibrant.suites.base import Preset, Suite
from calibrant.suites.testbed import TEMP, spec

DIM = (2, 10, 100)
RATIO = (1, 10, 100, 1000)


SUITE = Suite(
    name="testbed-hd",
    title="Neural Testbed, 2 to 100 dimensions",
    presets={
        "quick": Preset(
            problems=tuple(spec(ratio * dim, "0.1", dim) for dim in DIM for ratio in RATIO),
            agents=("uniform", "mlp", "ensemble?size=10", "ensemble+?size=10"),
            seeds=3,
        ),
        "paper": Preset(
            problems=tuple(spec(ratio * dim, temp, dim) for dim in DIM for ratio in RATIO for temp in TEMP),
            agents=(
                *("uniform", "prior", "oracle", "logistic", "mlp", "ensemble", "ensemble+", "dropout", "bbb"),
                *("hypermodel", "epinet", "deep_kernel", "sgmcmc", "knn", "random_forest"),
            ),
            seeds=5,
        ),
    },
    # Dyadic first: it is what orders the agents, as the others do not tell them apart when inputs are many.
    metrics=("kl_tau10_dyadic", "kl_tau10", "kl_tau1", "accuracy", "ece", "fit_cpu_seconds"),
    headlines=(("kl_tau10_dyadic", "joint predictions"), ("kl_tau1", "single predictions")),
    baseline="mlp",
    axes=("dim", "train", "temp"),
)
