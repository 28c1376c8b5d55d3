"""Heat maps are real PNGs, the right way up; dots stand where the training points are."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
import pytest

from calibrant.report.pictures import LEVELS, galleries, heat_map, palette
from calibrant.types import Cell, Record

SIDE = np.linspace(-2.0, 2.0, 5)
GRID = np.stack(np.meshgrid(SIDE, SIDE[::-1]), axis=-1).reshape(-1, 2)


def decode(uri: str) -> np.ndarray:
    """Palette indices of an 8-bit indexed PNG; checksums are checked."""
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + length
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (depth, colour) == (8, 3) and len(chunks[b"PLTE"]) == 3 * LEVELS
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


def record(agent: str, seed: int = 0, problem: str = "testbed", **changed: Any) -> Record:
    picture = {
        "x": np.array([[-2.0, 2.0], [2.5, -2.5], [9.0, 9.0]]),
        "y": np.array([0, 1, 1], np.int8),
        "grid": GRID,
        "truth": np.linspace(0, 1, len(GRID)),
        "mean": np.full(len(GRID), 0.5, np.float16),
        "worlds": np.zeros((2, len(GRID)), np.float16),
    }
    return Record(Cell(problem, agent, seed, f"{problem}{agent}{seed}"), picture=picture | changed)


def test_the_first_input_points_right_and_the_second_up() -> None:
    shuffled = np.random.default_rng(0).permutation(len(GRID))
    right, up = ((GRID[shuffled][:, axis] + 2) / 4 for axis in (0, 1))
    across = np.rint(np.linspace(0, LEVELS - 1, 5)).astype(int)
    assert (decode(heat_map(GRID[shuffled], right)) == across).all()
    assert (decode(heat_map(GRID[shuffled], up)) == across[::-1, None]).all()


def test_probabilities_out_of_range_are_cut_and_missing_ones_are_even() -> None:
    pixels = decode(heat_map(GRID, np.where(GRID[:, 0] > 0, np.where(GRID[:, 1] > 0, 1.2, np.nan), -0.1)))
    assert set(np.unique(pixels)) == {0, LEVELS // 2, LEVELS - 1}


def test_the_colour_map_is_lightest_in_the_middle_and_falls_to_both_sides() -> None:
    light = palette().astype(float) @ [0.2126, 0.7152, 0.0722]
    steps = np.diff(light)
    assert (steps[: LEVELS // 2] > 0).all() and (steps[LEVELS // 2 :] < 0).all()


def test_dots_stand_in_their_pixels_and_outsiders_are_left_out() -> None:
    (gallery,) = galleries([record("mlp")])
    assert gallery.points == ("M10.0 10.0h0", "")  # the centre of the top left of 5 x 5 pixels; an edge is outside
    assert gallery.train == 3 and len(gallery.strips[0].worlds) == 2
    (inside,) = galleries([record("mlp", x=np.array([[0.0, 0.0], [2.0, -1.0], [2.4, 2.4]]))])
    assert inside.points == ("M50.0 50.0h0", "M90.0 70.0h0M98.0 2.0h0")


def test_one_gallery_per_problem_of_the_seed_that_most_agents_have() -> None:
    records = [record("a", 0), record("b", 1), record("a", 1), record("a", 0, "testbed?train=3")]
    found = galleries(records, order=["b", "a"])
    assert [(g.problem, g.seed) for g in found] == [("testbed", 1), ("testbed?train=3", 0)]
    assert [strip.agent for strip in found[0].strips] == ["b", "a"]


@pytest.mark.parametrize("grid", [GRID[:-1], GRID[:, :1], np.repeat(GRID[:5], 5, axis=0), np.zeros((0, 2))])
def test_pictures_that_are_no_images_are_passed_over(grid: np.ndarray) -> None:
    incomplete = Record(Cell("testbed", "mlp", 0, "c"), picture={"x": np.zeros((1, 2))})
    assert galleries([record("mlp", grid=grid), incomplete, Record(Cell("testbed", "mlp", 0, "d"))]) == []
