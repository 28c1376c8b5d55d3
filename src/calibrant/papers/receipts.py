"""A receipt: a paper's claims, our numbers with their 95 % intervals, how far apart the two are, and a verdict on each.

A published value is compared by  z = (ours - published) / error.  Papers rarely print errors, so there are two:

z         the error is our standard error, with the published one where there is one, and with what rounding (or reading
          a figure) may hide; otherwise the published value is taken as exact. The verdict is by this one, and it is
          strict: two faithful runs with equal errors differ by it in 16 % of entries.
z_alike   the error if the unpublished one is as large as ours: √2 times it. None where an error was published.

A value agrees when |z| < 2. A trend is a claim about a direction: it agrees when the 95 % interval lies above 0,
differs when it lies below, and is undecided when it holds 0; what is called similar agrees then.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from calibrant.papers.format import Paper

Verdict = Literal["agrees", "differs", "undecided", "not run"]
Expected = Literal["value", "above", "similar"]  # the published value; above 0; 0 within its error
FAR = 2.0


@dataclass(frozen=True)
class Estimate:
    """Our number over n environments; limits and `se` are nan with fewer than two. `mc_bias` is not taken off."""

    mean: float
    low: float
    high: float
    se: float
    n: int
    z: float = math.nan
    z_alike: float | None = None
    mc_bias: float = 0.0
    verdict: Verdict = "not run"


@dataclass(frozen=True)
class Row:
    """One claim beside what we have."""

    kind: Literal["value", "ratio", "benefit", "growth"]
    label: str  # what the paper calls it
    agent: str  # our spec, or two of them
    metric: str
    expected: Expected
    published: float | None = None  # None where the claim is about a direction
    error: float | None = None  # published standard error
    ours: Estimate | None = None  # None: not run
    as_published: Estimate | None = None  # by the paper's own estimator, where records have it
    of: int = 0  # environments of the item
    failed: int = 0  # cells
    cpu_seconds: float = 0.0  # of the agents in the row: compile, fit and ask

    @property
    def verdict(self) -> Verdict:
        return self.ours.verdict if self.ours else "not run"

    @property
    def n(self) -> int:
        return self.ours.n if self.ours else 0


@dataclass(frozen=True)
class Receipt:
    """A paper's item beside ours."""

    paper: Paper
    item: str
    rows: tuple[Row, ...]
    seeds: int
    cells: int  # that were asked for,
    missing: int  # have no record,
    failed: int  # or failed
    cpu_seconds: float  # of all records used, each counted once
    absent: Mapping[str, str]  # agents of the item that this installation does not have, and why
    whole: bool  # the item was asked for as published, and every cell was tried
    agents: tuple[str, ...] = ()  # as they were asked for; () means all of the item
    tuned: bool = False  # our own tuned hyperparameters stand for the paper's

    @property
    def verdicts(self) -> dict[Verdict, int]:
        counts: dict[Verdict, int] = {"agrees": 0, "differs": 0, "undecided": 0, "not run": 0}
        for row in self.rows:
            counts[row.verdict] += 1
        return counts

    def to_json(self) -> dict[str, Any]:
        """Plain dicts and lists that strict JSON can write: what is not a finite number is None."""
        item = self.paper.items[self.item]
        own = {name: getattr(self, name) for name in ("seeds", "cells", "missing", "failed", "cpu_seconds")}
        plain: dict[str, Any] = _plain(
            {
                "paper": self.paper.name,
                "item": self.item,
                "title": item.title,
                "citation": self.paper.citation,
                "whole": self.whole,
                "tuned": self.tuned,
                "agents": self.agents,
                "verdicts": self.verdicts,
                "rows": [dataclasses.asdict(row) | {"n": row.n, "verdict": row.verdict} for row in self.rows],
                **own,
                "seeds_published": item.plan.seeds,
                "absent": dict(self.absent),
                "facts": item.facts,
                "differences": item.differences,
            }
        )
        return plain


def judge(found: Estimate, expected: Expected, published: float, error: float | None, hidden: float) -> Estimate:
    """Our number with its distance from a published one, which rounding or reading may have moved by up to `hidden`.

    >>> made = judge(Estimate(0.897, 0.81, 0.98, 0.044, 210), "value", 1.015, None, 0.0)
    >>> round(made.z, 2), round(made.z_alike, 2), made.verdict
    (-2.68, -1.9, 'differs')
    """
    gap, rounding = found.mean - published, hidden / math.sqrt(3)  # the spread of an even chance over ± hidden
    z = _over(gap, math.hypot(found.se, error or 0.0, rounding))
    guess = expected == "value" and error is None
    alike = _over(gap, math.hypot(found.se, found.se, rounding)) if guess else None
    return dataclasses.replace(found, z=z, z_alike=alike, verdict=_verdict(found, z, expected))


def _verdict(found: Estimate, z: float, expected: Expected) -> Verdict:
    if math.isnan(found.se):
        return "undecided"  # a single environment has no error
    if expected == "value":
        return "agrees" if abs(z) < FAR else "differs"
    if expected == "similar":
        return "agrees" if found.low <= 0 <= found.high else "differs"
    return "agrees" if found.low > 0 else "differs" if found.high < 0 else "undecided"


def _over(gap: float, error: float) -> float:
    if error == 0:
        return 0.0 if gap == 0 else math.copysign(math.inf, gap)
    return gap / error


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
