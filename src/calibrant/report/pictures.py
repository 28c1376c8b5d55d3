"""What a belief looks like over a 2-D problem: truth, mean and imagined worlds as small heat maps (Figure 12).

Each map is an indexed PNG of a kilobyte, written here with the standard library and scaled smoothly by the browser;
training points are two SVG paths shared by all maps of a setting. A vector chart of the same would take megabytes.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.types import Array, Record

# Probability of class 1, from 0 to 1: blue, paper white, orange; equal steps look equal to either side of one half.
COLOUR_MAP = ("#0b3c6f", "#2f79b5", "#93c1e0", "#f6f4f0", "#f3b57c", "#cf6a1d", "#7d3104")
LEVELS = 65
PARTS = ("x", "y", "grid", "truth", "mean", "worlds")


@dataclass(frozen=True)
class Strip:
    """One agent's belief: the mean over all worlds, and a few single worlds, as data URIs."""

    agent: str
    mean: str
    worlds: tuple[str, ...]


@dataclass(frozen=True)
class Gallery:
    """One environment of one setting and what the agents believe of it."""

    problem: str
    seed: int
    train: int
    truth: str
    points: tuple[str, str]  # SVG paths of the training points of class 0 and of class 1, in a 100 x 100 box
    strips: tuple[Strip, ...]


def galleries(records: Iterable[Record], order: Sequence[str] = ()) -> list[Gallery]:
    """A gallery per problem, each of the one environment that most agents were drawn on; agents in the given order."""
    drawn: dict[str, dict[int, dict[str, Record]]] = {}
    for record in records:
        if all(part in record.picture for part in PARTS) and _is_lattice(record.picture["grid"]):
            seeds = drawn.setdefault(record.cell.problem, {})
            seeds.setdefault(record.cell.seed, {})[record.cell.agent] = record
    place = {agent: position for position, agent in enumerate(order)}
    result = []
    for problem, seeds in drawn.items():
        seed = min(seeds, key=lambda seed: (-len(seeds[seed]), seed))
        agents = sorted(seeds[seed], key=lambda agent: (place.get(agent, len(place)), agent))
        result.append(_gallery(problem, seed, [seeds[seed][agent] for agent in agents]))
    return result


def heat_map(grid: Array, probability: Array) -> str:
    """A data URI of a PNG of probabilities on a lattice of inputs, the second input pointing up."""
    xs, columns = np.unique(np.asarray(grid)[:, 0], return_inverse=True)
    ys, rows = np.unique(-np.asarray(grid)[:, 1], return_inverse=True)
    pixels = np.zeros((len(ys), len(xs)), np.uint8)
    level = np.rint(np.clip(np.nan_to_num(np.asarray(probability, np.float64), nan=0.5), 0, 1) * (LEVELS - 1))
    pixels[rows, columns] = level.astype(np.uint8)
    return "data:image/png;base64," + base64.b64encode(indexed_png(pixels, palette())).decode()


def indexed_png(pixels: Array, colours: Array) -> bytes:
    """A PNG of palette indices [height, width] with colours [n, 3], all uint8."""
    height, width = pixels.shape
    scanlines = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels, np.uint8))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = [
        (b"IHDR", header),
        (b"PLTE", np.ascontiguousarray(colours, np.uint8).tobytes()),
        (b"IDAT", zlib.compress(scanlines, 9)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def palette() -> Array:
    """The colour map as [LEVELS, 3] bytes."""
    anchors = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in COLOUR_MAP])
    where = np.linspace(0, len(COLOUR_MAP) - 1, LEVELS)
    mixed = [np.interp(where, np.arange(len(COLOUR_MAP)), anchors[:, channel]) for channel in range(3)]
    return np.rint(np.stack(mixed, axis=1)).astype(np.uint8)


def _gallery(problem: str, seed: int, records: Sequence[Record]) -> Gallery:
    picture = records[0].picture
    labels = np.asarray(picture["y"])
    strips = tuple(_strip(record.cell.agent, record.picture) for record in records)
    points = tuple(_dots(picture["grid"], np.asarray(picture["x"])[labels == label]) for label in (0, 1))
    truth = heat_map(picture["grid"], picture["truth"])
    return Gallery(problem, seed, len(labels), truth, (points[0], points[1]), strips)


def _strip(agent: str, picture: Mapping[str, Array]) -> Strip:
    maps = [heat_map(picture["grid"], part) for part in (picture["mean"], *picture["worlds"])]
    return Strip(agent, maps[0], tuple(maps[1:]))


def _dots(grid: Array, points: Array) -> str:
    """An SVG path of zero-length strokes, which round caps turn into dots; points beyond the map are left out."""
    axes = [np.unique(np.asarray(grid, np.float64)[:, axis]) for axis in (0, 1)]
    steps = np.array([(axis[-1] - axis[0]) / (len(axis) - 1) for axis in axes])
    low, high = np.array([axis[0] for axis in axes]) - steps / 2, np.array([axis[-1] for axis in axes]) + steps / 2
    inside = points[((points > low) & (points < high)).all(axis=1)]
    across, up = ((inside - low) / (high - low) * 100).T.reshape(2, -1)
    return "".join(f"M{x:.1f} {100 - y:.1f}h0" for x, y in zip(across, up, strict=True))


def _is_lattice(grid: Array) -> bool:
    """Whether the inputs are all pairs of two axes: only those make an image."""
    inputs = np.asarray(grid)
    if inputs.ndim != 2 or inputs.shape[1] != 2:
        return False
    sides = [len(np.unique(inputs[:, axis])) for axis in (0, 1)]
    return min(sides) > 1 and sides[0] * sides[1] == len(inputs) == len(np.unique(inputs, axis=0))
