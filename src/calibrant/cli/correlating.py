"""What `calibrant correlate` does: two suites, maybe value by value of a field, or such values within one suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrant.api import load
from calibrant.report.correlation import Comparison, Match, Series
from calibrant.report.correlation_matrix import Matrix
from calibrant.stats.correlation import Kind
from calibrant.types import CalibrantError


def correlate_suites(
    a: str,
    b: str | None,
    by: str | None,
    metric_a: str | None,
    metric_b: str | None,
    agents: Sequence[str] | None,
    kind: Kind,
    match: Match,
    where_a: Mapping[str, str],
    where_b: Mapping[str, str],
    blocks: int,
    store: str,
) -> Comparison | Series | Matrix:
    if b is None and by is None:
        raise CalibrantError("name two suites, as in `correlate testbed real`, or one with --by FIELD")
    results = load(store)
    if b is None:
        assert by is not None
        if metric_b is not None or where_b or blocks:
            raise CalibrantError("--by with one suite correlates within it: give --metric-a and --where-a alone")
        return results.correlate_values(a, by, metric=metric_a, agents=agents, kind=kind, where=where_a)
    return results.correlate(
        a, b, by=by, metric_a=metric_a, metric_b=metric_b, agents=agents, match=match,
        where_a=where_a, where_b=where_b, blocks=blocks,
    )  # fmt: skip
