"""The values of one field of a suite's problems against each other: do agents score alike under all of them?

Osband et al. correlate agents' scores between generative models ("The Neural Testbed", NeurIPS 2022, Figures 10, 11).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.report.board import strict
from calibrant.report.contenders import choose, measured, panel_of, scored, usual_metric, values_of
from calibrant.stats.correlation import PERCENTILES, Correlation, Kind, correlation_matrix
from calibrant.stats.panel import Panel
from calibrant.suites.base import Suite
from calibrant.types import CalibrantError, Record

MATRIX_METRICS = ("kl_tau1", "kl_tau10", "regret")  # Figures 10 and 11


@dataclass(frozen=True)
class Matrix:
    """The values of one field of a suite's problems against each other, by one metric."""

    suite: str
    metric: str
    field: str
    kind: Kind
    values: tuple[str, ...]
    environments: tuple[int, ...]  # of each value
    agents: tuple[str, ...]
    cells: tuple[tuple[Correlation, ...], ...]  # [values, values]
    left_out: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = strict(dataclasses.asdict(self) | {"percentiles": list(PERCENTILES)})
        return found


def compare_values(
    records: Sequence[Record],
    suite: Suite,
    field: str,
    *,
    metric: str | None = None,
    agents: Sequence[str] | None = None,
    kind: Kind = "pearson",
) -> Matrix:
    """Correlate agents' scores between the values of a field, where the suite's other compared fields are at default.

    So the activations of the suite `robustness` are compared at the default width, and the widths at the default
    activation, as in the paper.
    """
    name = metric or usual_metric(suite)
    panel = panel_of(records, suite, name)
    values, parts = _split(panel, suite, field)
    titles = [f"{field}={value}" for value in values]
    chosen, left_out = choose([scored(part, name) for part in parts], titles, agents)
    sides = [measured(part, name, chosen, title) for part, title in zip(parts, titles, strict=True)]
    return Matrix(
        suite=suite.name,
        metric=name,
        field=field,
        kind=kind,
        values=values,
        environments=tuple(len(side.environments) for side in sides),
        agents=chosen,
        cells=tuple(map(tuple, correlation_matrix(sides, kind))),
        left_out=left_out,
    )


def matrices(records: Sequence[Record], suite: Suite) -> list[Matrix]:
    """Every matrix that a report shows of a suite; what has too few agents or values yet is left out."""
    found = []
    for field in suite.compared:
        for metric in (metric for metric in MATRIX_METRICS if metric in suite.metrics):
            try:
                found.append(compare_values(records, suite, field, metric=metric))
            except CalibrantError:
                continue
    return found


def _split(panel: Panel, suite: Suite, field: str) -> tuple[tuple[str, ...], list[Panel]]:
    """The values of a field, and each one's part of the panel."""
    order, inside = values_of(field, panel.problems, suite)
    if len(order) < 2:
        raise CalibrantError(f"records of suite '{suite.name}' have only one {field}: there is nothing to correlate")
    marks = [np.array([inside.get(problem) == value for problem in panel.problems], bool) for value in order]
    return order, [panel.inside(mark).clustered(suite.drawn) for mark in marks]
