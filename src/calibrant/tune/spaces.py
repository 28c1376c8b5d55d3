"""Search spaces: what may vary, and the agents' specs that come of it.

A space is written as `l2=0.1|1|10,prior_scale=0.1..10:log`: values in a list, or numbers between two ends, on a
logarithmic scale when said so. `tune.grids` holds what is known of an agent; of one that is not named there, a space is
derived from the bounds that its fields are annotated with.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, Lt

from calibrant import registry
from calibrant.tune.grids import SEARCHED, Searched
from calibrant.types import CalibrantError

DIGITS = 4  # significant digits of a drawn number: a spec should be readable
AROUND = (0.1, 0.3, 1, 3, 10)  # what a derived grid multiplies a default by
ACROSS = (0.1, 0.3, 0.5, 0.7, 0.9)  # where it looks between two bounds


@dataclass(frozen=True)
class Choice:
    """One of some values, as they stand in a spec."""

    values: tuple[str, ...]

    def __str__(self) -> str:
        return "|".join(self.values)

    def holds(self, word: str) -> bool:
        return word in self.values


@dataclass(frozen=True)
class Range:
    """A number between two ends, both included."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __str__(self) -> str:
        return f"{registry.show(self.low)}..{registry.show(self.high)}" + (":log" if self.log else "")

    def holds(self, word: str) -> bool:
        number = _number(word)
        return number is not None and self.low <= number <= self.high

    def word(self, number: float) -> str:
        """The number as it stands in a spec, rounded and kept between the ends."""
        rounded = round(number) if self.whole else _rounded(number)
        return registry.show(float(min(max(rounded, self.low), self.high)))


Space: TypeAlias = Mapping[str, Choice | Range]
Point: TypeAlias = Mapping[str, str]  # a value for each name, as it stands in a spec


def parse_space(text: str, agent: str) -> dict[str, Choice | Range]:
    """Read a space for an agent, whose own fields say which numbers are whole.

    >>> {name: str(one) for name, one in parse_space("l2=0.10|1, lr=1e-4..0.01:log", "mlp").items()}
    {'l2': '0.1|1', 'lr': '0.0001..0.01:log'}
    """
    space: dict[str, Choice | Range] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, values = part.partition("=")
        if not (name and equals and values):
            raise CalibrantError(f"'{part}' in the space should be name=A|B|C or name=LOW..HIGH, with :log if wanted")
        if name in space:
            raise CalibrantError(f"'{name}' stands twice in the space '{text}'")
        space[name] = _range(part, values, agent, name) if ".." in values else _choice(part, values)
    if not space:
        raise CalibrantError("the space is empty; it should be like l2=0.1|1|10,prior_scale=0.1..10:log")
    fixed = set(registry.parse_query(agent, agent.partition("?")[2])) & set(space)
    if fixed:
        raise CalibrantError(f"'{min(fixed)}' is both fixed in '{agent}' and searched: leave it out of one of them")
    for name, one in space.items():  # both ends and every value are refused here if the agent refuses them
        for word in one.values if isinstance(one, Choice) else (one.word(one.low), one.word(one.high)):
            spec_at(agent, {name: word})
    return space


def print_space(space: Space) -> str:
    return ",".join(f"{name}={one}" for name, one in space.items())


def known_space(agent: str, sampler: str) -> tuple[str, ...]:
    """The space of an agent that the user gives none for, as blocks: several for a grid, one for other samplers.

    What the agent's own spec fixes is left out.
    """
    name, _, query = agent.partition("?")
    fixed = registry.parse_query(agent, query)
    searched = SEARCHED.get(name) or derived(agent)
    blocks = searched.grid if sampler == "grid" else (searched.ranges,)
    parts = [[part for part in block.split(",") if part.partition("=")[0] not in fixed] for block in blocks]
    texts = tuple(dict.fromkeys(",".join(kept) for kept in parts if any(kept)))
    if not texts:
        raise CalibrantError(
            f"agent '{agent}' says of no parameter what it may be: say it with --space NAME=LOW..HIGH:log or NAME=A|B|C"
        )
    return texts


def derived(agent: str) -> Searched:
    """A space from an agent's annotations: its numbers one at a time around their defaults or between their bounds.

    Sizes and words that shape the program of a native agent are left alone, but for words, which a grid tries.
    """
    built = registry.resolve("agents", agent)
    grid, ranges = [], []
    fields = dataclasses.fields(built) if dataclasses.is_dataclass(built) else ()
    hints = typing.get_type_hints(type(built), include_extras=True) if fields else {}
    for field in fields:
        kind, *rules = typing.get_args(hints[field.name]) if _annotated(hints[field.name]) else (hints[field.name],)
        value = getattr(built, field.name)
        if typing.get_origin(kind) is Literal:
            grid.append(f"{field.name}={'|'.join(map(str, typing.get_args(kind)))}")
        elif kind in (int, float) and rules and not field.metadata.get("static"):
            scale = _bounded(rules, value, kind is int)
            if scale is not None:
                words, ends = scale
                grid.append(f"{field.name}={'|'.join(words)}")
                ranges.append(f"{field.name}={ends}")
    return Searched(tuple(grid), ",".join(ranges))


def grid_points(blocks: Iterable[Space]) -> list[Point]:
    """Every point of every block, in order."""
    points: list[Point] = []
    for block in blocks:
        for name, one in block.items():
            if isinstance(one, Range):
                raise CalibrantError(
                    f"a grid needs listed values, but {name}={one} is a range: list some, or choose another --sampler"
                )
        values = [one.values for one in block.values() if isinstance(one, Choice)]
        points += [dict(zip(block, words, strict=True)) for words in itertools.product(*values)]
    return points


def spec_at(agent: str, point: Point) -> str:
    """The agent's canonical spec with these values set."""
    query = "&".join(f"{name}={value}" for name, value in point.items())
    return registry.canonical("agents", agent + ("&" if "?" in agent else "?") + query if query else agent)


def point_of(spec: str, names: Iterable[str]) -> dict[str, str]:
    """The values that a spec has for these names, its defaults included; unknown ones are left out."""
    said = registry.identity("agents", spec) | registry.parse_query(spec, spec.partition("?")[2])
    return {name: tidy(str(said[name])) for name in names if name in said}


def tidy(word: str) -> str:
    """Numbers in one way of writing: 0.10 and 1e-1 are 0.1."""
    number = _number(word)
    return word if number is None else registry.show(number)


# --- reading --------------------------------------------------------------------------------------


def _choice(part: str, values: str) -> Choice:
    words = tuple(dict.fromkeys(tidy(word.strip()) for word in values.split("|")))
    if not all(words):
        raise CalibrantError(f"'{part}' in the space has an empty value")
    return Choice(words)


def _range(part: str, values: str, agent: str, name: str) -> Range:
    ends, _, scale = values.partition(":")
    low, high = (_number(end) for end in ends.split("..", 1))
    if low is None or high is None or scale not in ("", "log"):
        raise CalibrantError(f"'{part}' in the space should be name=LOW..HIGH with two numbers, and :log if wanted")
    if not low < high:
        raise CalibrantError(f"'{part}' in the space should have its lower end first")
    if scale and low <= 0:
        raise CalibrantError(f"'{part}' in the space: a logarithmic range starts above 0")
    value = getattr(registry.resolve("agents", agent), name, None)
    return Range(low, high, bool(scale), isinstance(value, int) and not isinstance(value, bool))


def _number(word: str) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


# --- from annotations -----------------------------------------------------------------------------


def _annotated(hint: Any) -> bool:
    return typing.get_origin(hint) is Annotated


def _bounded(rules: Iterable[Any], value: float, whole: bool) -> tuple[list[str], Range] | None:
    """Words of a grid and a range: between two bounds, or around a positive default that is bounded from below only."""
    low = max((_bound(rule) for rule in rules if isinstance(rule, Ge | Gt)), default=None)
    high = min((_bound(rule) for rule in rules if isinstance(rule, Le | Lt)), default=None)
    if low is None or (high is None and value <= 0):
        return None
    if high is None:
        numbers = [value * factor for factor in AROUND]
        between = Range(_rounded(max(numbers[0], float(whole))), _rounded(numbers[-1]), log=True, whole=whole)
    else:
        numbers = [low + (high - low) * share for share in ACROSS]
        margin = (high - low) / 100  # the bounds themselves may be excluded
        between = Range(_rounded(low + margin), _rounded(high - margin), whole=whole)
    return list(dict.fromkeys(between.word(number) for number in numbers)), between


def _bound(rule: Any) -> float:
    (bound,) = dataclasses.astuple(rule)
    return float(bound)


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
