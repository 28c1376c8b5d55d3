"""Names beside points: no name on another, near where there is room, the same for the same points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from calibrant.report.labels import LETTER, LINE, MARKER, Box, Place, place_names

FRAME = Box(0, 0, 620, 420)


def boxes(points: list[tuple[float, float]], names: list[str], places: list[Place]) -> list[Box]:
    found = []
    for (x, y), name, place in zip(points, names, places, strict=True):
        left = x + place.dx - (place.side == "right") * LETTER * len(name)
        found.append(Box(left, y + place.dy - LINE / 2, left + LETTER * len(name), y + place.dy + LINE / 2))
    return found


@pytest.mark.parametrize("spread", [0.0, 5.0, 30.0, 200.0])
def test_no_name_covers_another_nor_a_point(spread: float) -> None:
    rng = np.random.default_rng(3)
    points = [(float(x), float(y)) for x, y in 200 + spread * rng.uniform(-0.5, 0.5, (9, 2))]
    names = ["mlp", "ensemble", "ensemble+", "dropout", "bbb", "hypermodel", "epinet", "sgmcmc", "deep_kernel"]
    places = place_names(points, names, FRAME)
    drawn = boxes(points, names, places)
    assert all(a.shared(b) == 0 for a, b in itertools.combinations(drawn, 2))
    markers = [Box(x - MARKER, y - MARKER, x + MARKER, y + MARKER) for x, y in points]
    assert all(box.shared(marker) == 0 for i, box in enumerate(drawn) for j, marker in enumerate(markers) if i != j)
    assert places == place_names(points, names, FRAME)


def test_what_is_free_stays_free_in_a_wider_drawing() -> None:
    rng = np.random.default_rng(4)
    points = [(float(x), float(y)) for x, y in rng.uniform((150, 100), (300, 200), (10, 2))]
    names = [f"agent-{index}" for index in range(10)]
    places = place_names(points, names, FRAME)
    wider = boxes([(2.5 * x, y) for x, y in points], names, places)
    assert all(a.shared(b) == 0 for a, b in itertools.combinations(wider, 2))


def test_a_lonely_point_has_its_name_at_once_and_the_edge_is_kept() -> None:
    assert place_names([(100.0, 100.0)], ["mlp"], FRAME) == [Place(9.0, -7.0, "left")]
    assert not Place(9.0, -7.0, "left").far and Place(9.0, 21.0, "left").far
    assert place_names([(615.0, 100.0)], ["mlp"], FRAME)[0].side == "right"
    assert place_names([(100.0, 2.0)], ["mlp"], FRAME)[0].dy > 0
    assert place_names([], [], FRAME) == []
