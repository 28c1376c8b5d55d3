"""Colours that everyone can tell apart, on light and on dark paper."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from calibrant.report.style import AGENT_COLOURS, SHAPES, SPARE_COLOURS, colours, number, shapes

PAPERS = ("#ffffff", "#181c22")
FIXED = [colour for colour in AGENT_COLOURS.values() if colour != "currentColor"]
# Linear RGB as seen with full protanopia, deuteranopia and tritanopia (Machado, Oliveira and Fernandes, 2009).
SIGHT = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
CONES = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
OKLAB = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def seen(colour: str, sight: str) -> np.ndarray:
    return OKLAB @ np.cbrt(CONES @ np.clip(np.asarray(SIGHT[sight]) @ linear(colour), 0, 1))


def contrast(one: str, other: str) -> float:
    bright = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) + 0.05 for colour in (one, other))
    return bright[1] / bright[0]


@pytest.mark.parametrize("sight", SIGHT)
def test_built_in_agents_are_told_apart(sight: str) -> None:
    # 0.02 is about a just noticeable difference in this space
    apart = {pair: np.linalg.norm(seen(pair[0], sight) - seen(pair[1], sight)) for pair in combinations(FIXED, 2)}
    assert min(apart.values()) > 0.1


@pytest.mark.parametrize("paper", PAPERS)
def test_colours_stand_out_on_paper(paper: str) -> None:
    assert min(contrast(colour, paper) for colour in (*FIXED, *SPARE_COLOURS)) > 2.2


def test_colours_belong_to_agents_not_to_company() -> None:
    alone, together = colours(["mine.py:A"]), colours([*AGENT_COLOURS, "mine.py:A", "zeal.py:Z"])
    assert together["mine.py:A"] == alone["mine.py:A"] in SPARE_COLOURS
    assert all(together[agent] == colour for agent, colour in AGENT_COLOURS.items())
    assert len(set(together.values())) == len(together)
    assert colours(["ensemble+?size=3"])["ensemble+?size=3"] == AGENT_COLOURS["ensemble+"]


def test_more_agents_than_colours_still_get_one() -> None:
    many = [f"mine.py:A{place}" for place in range(30)]
    assert set(colours(many)) == set(many) == set(shapes(many))
    assert set(shapes(many).values()) == set(SHAPES)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-1.5, "−1.50"), (1234567.0, "1 234 567"), (-3e-7, "−3.00 × 10⁻⁷"), (float("inf"), "–")],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text
