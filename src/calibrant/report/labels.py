"""Where the names of points go, so that no name covers another name or another point.

A name stands beside its point, to the right or to the left, and moves up or down until it is free; a thin line leads to
one that had to go far. Points are served one after another, those with the most neighbours first. Widths of words are
estimated, as nothing here draws.

Pages draw as wide as their reader's window is: points then move apart sideways while names keep their size. So a place
has to be free at the given width and at several greater ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

LETTER = 6.9  # the average width of a semi-bold letter of 12 pixels
LINE = 14.0  # the height of a line
BESIDE = 9.0  # from a point to its name
MARKER = 6.0  # half the side of a point
FAR = 20.0  # from here on a line leads to the name
STEPS = 14  # up and down, by half a line
STRETCHES = (1.0, 1.25, 1.5, 2.0, 2.5)  # widths over the given one


@dataclass(frozen=True)
class Place:
    """Where a name stands, from its point: its nearer end, and the middle of its line; y grows downwards."""

    dx: float
    dy: float
    side: Literal["left", "right"]  # on which side of the name its point is

    @property
    def far(self) -> bool:
        return abs(self.dy) > FAR


@dataclass(frozen=True)
class Box:
    """A rectangle, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)

    def shared(self, other: Box) -> float:
        """The area of what two rectangles have in common."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(wide, 0.0) * max(high, 0.0)


def place_names(points: Sequence[tuple[float, float]], names: Sequence[str], frame: Box) -> list[Place]:
    """A place for every name, in the order given; a name that fits nowhere stands where it covers least."""
    found: dict[int, Place] = {}

    def cost(index: int, place: Place) -> tuple[float, float]:
        """What is covered or lies outside first, then how far away the name is."""
        covered = 0.0
        for stretch in STRETCHES:
            at = [(x * stretch, y) for x, y in points]
            box = _box(at[index], names[index], place)
            covered += sum(box.shared(_marker(point)) for other, point in enumerate(at) if other != index)
            covered += sum(box.shared(_box(at[other], names[other], taken)) for other, taken in found.items())
            covered += box.area - box.shared(Box(frame.left, frame.top, frame.right * stretch, frame.bottom))
        return round(covered, 3), abs(place.dy)

    for index in sorted(range(len(points)), key=lambda one: _lonely(points, one)):
        found[index] = min(_options(), key=partial(cost, index))
    return [found[index] for index in range(len(points))]


def _options() -> list[Place]:
    """Nearest first, the right before the left, above before below."""
    heights = [0.5 * LINE * step for step in range(1, STEPS + 1)]
    return [
        Place(dx, dy, side)
        for height in heights
        for dy in (-height, height)
        for dx, side in _SIDES
    ]  # fmt: skip


_SIDES: tuple[tuple[float, Literal["left", "right"]], ...] = ((BESIDE, "left"), (-BESIDE, "right"))


def _box(point: tuple[float, float], name: str, place: Place) -> Box:
    end, wide, middle = point[0] + place.dx, LETTER * len(name), point[1] + place.dy
    left = end if place.side == "left" else end - wide
    return Box(left, middle - LINE / 2, left + wide, middle + LINE / 2)


def _marker(point: tuple[float, float]) -> Box:
    x, y = point
    return Box(x - MARKER, y - MARKER, x + MARKER, y + MARKER)


def _lonely(points: Sequence[tuple[float, float]], index: int) -> tuple[float, float]:
    """How far the third nearest other point is, and the height: the crowded come first, from above."""
    apart = sorted(math.dist(points[index], other) for at, other in enumerate(points) if at != index)
    return (apart[min(2, len(apart) - 1)] if apart else math.inf), points[index][1]
