"""Ten real datasets, each at 10, 100, 1000 and all of its training rows (Osband et al., UAI 2022, Table 2).

A dataset with fewer rows has fewer settings: nothing is trained on the same rows under two names.

Agents decay their weights by l2 / T (`fixed`), as in the original's sweeps on real data: the testbed's form, which
grows with the number of inputs, leaves nothing of a network that has 784 of them and ten rows. The scale of the prior
functions of `ensemble+` is a third of the testbed's. Both were looked at on tuning seeds, which no board shows.
"""

from __future__ import annotations

from calibrant.data.catalogue import CATALOGUE
from calibrant.suites.base import Preset, Suite

TRAIN = (10, 100, 1000)
SMALL = ("iris", "wine_quality", "german_credit")


def _spec(data: str, train: int) -> str:
    given = [f"data={data}"] * (data != "iris") + [f"train={train}"] * (train != 10)
    return "real" + ("?" + "&".join(given) if given else "")


def _settings(data: str) -> tuple[str, ...]:
    rows = CATALOGUE[data].train
    return tuple(_spec(data, train) for train in (*(size for size in TRAIN if size < rows), rows))


SUITE = Suite(
    name="real",
    title="Real data",
    presets={
        "quick": Preset(
            problems=(
                *(problem for data in SMALL for problem in _settings(data)),
                *(_spec("mnist", train) for train in TRAIN),
            ),
            agents=(
                *("uniform", "mlp?l2_form=fixed", "ensemble?l2_form=fixed&size=10"),
                "ensemble+?l2_form=fixed&size=10&prior_scale=1",
            ),
            seeds=3,
        ),
        "paper": Preset(
            problems=tuple(problem for data in CATALOGUE for problem in _settings(data)),
            agents=(
                *("uniform", "logistic?l2_form=fixed", "mlp?l2_form=fixed", "ensemble?l2_form=fixed"),
                *("ensemble+?l2_form=fixed&prior_scale=1", "dropout?l2_form=fixed", "bbb?kl_form=fixed"),
                "hypermodel?l2_form=fixed",
            ),
            seeds=5,
        ),
    },
    metrics=("nll", "joint_nll_tau10_dyadic", "accuracy", "ece", "fit_cpu_seconds"),
    headlines=(("joint_nll_tau10_dyadic", "joint predictions"), ("nll", "single predictions")),
    baseline="mlp?l2_form=fixed",
    axes=("data", "train"),
)
