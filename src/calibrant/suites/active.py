"""Active learning on testbed environments: which rule learns most from few labels, and with whose beliefs."""

from __future__ import annotations

from calibrant.suites.base import Preset, Suite, Timed

PRIORITIES = ("uniform", "entropy", "margin", "variation", "bald", "variance", "joint")


def spec(dim: int, priority: str, *, per_dim: int = 100, labels: int = 100) -> str:
    """Canonical: fields in declared order, defaults left out."""
    given = [f"dim={dim}"] * (dim != 2) + [f"per_dim={per_dim}"] * (per_dim != 100)
    given += [f"labels={labels}"] * (labels != 100) + [f"priority={priority}"] * (priority != "bald")
    return "active" + ("?" + "&".join(given) if given else "")


SUITE = Suite(
    name="active",
    title="Active learning",
    presets={
        "quick": Preset(
            problems=tuple(spec(2, priority, labels=50) for priority in PRIORITIES),
            agents=("mlp", "ensemble?size=10", "ensemble+?size=10", "epinet"),
            seeds=8,
            alone=True,
        ),
        "paper": Preset(
            problems=tuple(
                spec(dim, priority, per_dim=per_dim, labels=labels)
                for dim, per_dim, labels in ((2, 100, 100), (10, 20, 200))
                for priority in PRIORITIES
            ),
            agents=(
                *("mlp", "ensemble?size=30", "ensemble+?size=30", "dropout", "bbb", "hypermodel", "epinet"),
                "deep_kernel",
            ),
            seeds=20,
        ),
    },
    metrics=(
        "curve_kl_tau10_dyadic",
        "curve_kl_tau10",
        "curve_kl_tau1",
        "curve_accuracy",
        "kl_tau10_dyadic",
        "accuracy",
    ),
    headlines=(("curve_kl_tau10_dyadic", "joint predictions"), ("curve_kl_tau1", "single predictions")),
    baseline="mlp",
    axes=("dim", "priority", "labels"),
    met_by=("priority",),
    timed=(
        Timed("curve_kl_tau10_dyadic", "labels", lines="priority"),
        Timed("curve_kl_tau1", "labels", lines="priority"),
        Timed("curve_accuracy", "labels", lines="priority"),
    ),
    tuned_on="testbed",
)
