"""The form of a paper's data file: what was published, what we run to compare with it, what is known to differ.

A file is TOML, one per paper, and every item of it (a table, a figure) says which environments to run and makes
**claims** of two kinds. *Values* are numbers: the mean of a metric, by agent. *Trends* are sentences about a figure
that gives no numbers: one agent is better than another, and the more so from metric to metric.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Len
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError, model_validator

from calibrant import registry
from calibrant.types import CalibrantError

FOLDER = Path(__file__).parent

Word = Annotated[str, Len(1)]
Name = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
]  # stands in commands and in names of files
Positive = Annotated[float, Gt(0)]
Where = dict[Word, Word | int | float]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Plan(_Part):
    """The environments: the problems of a suite's preset, or a list of its own; `seeds` of each."""

    seeds: Annotated[int, Ge(1)]
    suite: Word | None = None  # also the suite whose tuned hyperparameters apply
    preset: Word | None = None
    problems: tuple[Word, ...] = ()

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Plan:
        if bool(self.problems) == bool(self.preset) or (self.preset and not self.suite):
            raise ValueError("a plan names either a suite and its preset, or problems")
        return self


class Values(_Part):
    """A row of a table: published means by metric, and their standard errors where these were published too."""

    label: Word  # what the paper calls it
    agent: Word  # our spec of it
    published: Annotated[dict[Word, float], Len(1)]
    errors: dict[Word, Positive] = {}
    where: Where = {}  # only these problems of the plan, by their fields, as in `--where`

    @property
    def agents(self) -> tuple[str, ...]:
        return (self.agent,)

    @model_validator(mode="after")
    def _errors_have_values(self) -> Values:
        if extra := sorted(self.errors.keys() - self.published.keys()):
            raise ValueError(f"an error is given for '{extra[0]}', but no value")
        return self


class Trend(_Part):
    """`better` beats `worse`, and its benefit grows from each metric to the next.

    The benefit is the difference of the mean losses, or the share of the loss of `worse` that `better` takes away.
    """

    claim: Word  # in the paper's sense, with its place
    better: Word
    worse: Word
    metrics: Annotated[tuple[Word, ...], Len(2)]  # losses, in the order in which the benefit grows
    measure: Literal["difference", "share"] = "difference"
    similar_at: tuple[Word, ...] = ()  # metrics at which the paper calls the two alike
    where: Where = {}

    @property
    def agents(self) -> tuple[str, ...]:
        return (self.worse, self.better)

    @model_validator(mode="after")
    def _alike_somewhere_named(self) -> Trend:
        if extra := sorted(set(self.similar_at) - set(self.metrics)):
            raise ValueError(f"similar_at names '{extra[0]}', which is not among the metrics")
        return self


class Item(_Part):
    """A table or a figure."""

    title: Word
    plan: Plan
    values: tuple[Values, ...] = ()
    trends: tuple[Trend, ...] = ()
    within: Annotated[float, Ge(0)] = 0.0  # published numbers may be off by this much: rounding, or reading a figure
    relative_to: Word | None = None  # an agent of `values`: ratios to it are compared as well,
    ratios: tuple[Word, ...] = ()  # of these metrics
    estimators: dict[Word, Word] = {}  # metric: our metric that is computed exactly as the paper's code does
    facts: tuple[Word, ...] = ()  # what the source says about how the numbers were made
    differences: tuple[Word, ...] = ()  # what is known to differ in method from ours

    @property
    def claims(self) -> tuple[Values | Trend, ...]:
        return (*self.values, *self.trends)

    @property
    def agents(self) -> tuple[str, ...]:
        """Our specs of all agents that the item speaks about, in its order."""
        return tuple(dict.fromkeys(agent for claim in self.claims for agent in claim.agents))

    @model_validator(mode="after")
    def _claims_something(self) -> Item:
        if not (self.values or self.trends):
            raise ValueError("an item needs values or trends")
        if bool(self.relative_to) != bool(self.ratios):
            raise ValueError("relative_to and ratios go together")
        if self.relative_to and not any(row.agent == self.relative_to for row in self.values):
            raise ValueError(f"relative_to names '{self.relative_to}', which has no values")
        return self


class Paper(_Part):
    """One source and what can be reproduced of it."""

    name: Name
    title: Word
    citation: Word
    items: Annotated[dict[Name, Item], Len(1)]


def read_paper(path: Path) -> Paper:
    """The paper in a data file, checked; whatever is wrong with the file is one sentence."""
    try:
        return Paper.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CalibrantError(f"cannot read '{path}': {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CalibrantError(f"'{path}' is not TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        what = str(first["msg"]).removeprefix("Value error, ").replace("Input should", "it should")
        raise CalibrantError(f"'{path}' is not a paper's data file: {place}: {what}") from None


def papers(folder: Path = FOLDER) -> dict[str, Paper]:
    """Every paper that has a data file, by name."""
    return {paper.name: paper for paper in map(read_paper, sorted(folder.glob("*.toml")))}


def find(reference: str, folder: Path = FOLDER) -> tuple[Paper, str]:
    """What `PAPER:ITEM` names, where PAPER may also be a data file of one's own, as in `mine.toml:table1`."""
    name, _, item = reference.rpartition(":")
    if not name:
        name, item = item, ""
    known = {name: read_paper(Path(name))} if name.endswith(".toml") else papers(folder)
    if name not in known:
        raise CalibrantError(f"unknown paper '{name}'{registry.nearest(name, known)}; there are {', '.join(known)}")
    paper = known[name]
    if item not in paper.items:
        given = f"'{name}' has no item '{item}'" if item else f"'{name}' names no item"
        near = registry.nearest(item, paper.items) if item else ""
        raise CalibrantError(f"{given}{near}; it has {', '.join(f'{name}:{one}' for one in paper.items)}")
    return paper, item
