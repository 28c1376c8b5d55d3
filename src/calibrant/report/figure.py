"""A correlation's figure as a file: a page that needs no network, or a plain drawing.

The page draws with Vega-Lite. The drawing is made here, of a few lines and circles, so that it needs nothing else; its
scatter has the scales of the page's chart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from calibrant.report.correlation import Comparison, Series
from calibrant.report.correlation_charts import SHADES, extent, name_places, placed, side_title
from calibrant.report.correlation_matrix import Matrix
from calibrant.report.files import write_whole
from calibrant.report.labels import Box
from calibrant.report.style import FONT, colours, label, number, short_name
from calibrant.stats.intervals import Interval
from calibrant.types import CalibrantError

WIDE, HIGH = 640, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 20, 50
SQUARE, NAMES = 56, 90
DECADES = 10  # the ratio of an axis's ends from which ticks are powers of ten

Scale = Callable[[float], float]


def write_figure(path: Path, found: Comparison | Series | Matrix) -> None:
    """Write FILE.html or FILE.svg, by the name's ending."""
    if path.suffix == ".html":
        from calibrant.report.html import render_correlation

        text = render_correlation(found)
    elif path.suffix == ".svg":
        text = figure_svg(found)
    else:
        raise CalibrantError(f"a figure is written to FILE.html or FILE.svg, not to '{path}'")
    write_whole(path, text.encode())


def figure_svg(found: Comparison | Series | Matrix) -> str:
    if isinstance(found, Matrix):
        return matrix_svg(found)
    return scatter_svg(found) if isinstance(found, Comparison) else series_svg(found)


def series_svg(found: Series) -> str:
    """The scatters of all values beside each other."""
    parts = [
        f'<g transform="translate({place * WIDE} 0)">\n{scatter_svg(one)}</g>'
        for place, one in enumerate(found.comparisons.values())
    ]
    return _drawing(WIDE * len(parts), HIGH, f"a scatter for every {found.field}, a point per agent", parts)


def scatter_svg(found: Comparison) -> str:
    x, x_ticks = _scale([point.a for point in found.points], LEFT, WIDE - RIGHT)
    y, y_ticks = _scale([point.b for point in found.points], HIGH - BOTTOM, TOP)
    bottom, right = HIGH - BOTTOM, WIDE - RIGHT
    parts = [_line(LEFT, bottom, right, bottom, "#888"), _line(LEFT, bottom, LEFT, TOP, "#888")]
    for value in x_ticks:
        parts += [_line(x(value), bottom, x(value), bottom + 4, "#888")]
        parts += [_text(x(value), bottom + 18, number(value), "middle")]
    for value in y_ticks:
        parts += [
            _line(LEFT - 4, y(value), LEFT, y(value), "#888"),
            _text(LEFT - 8, y(value) + 4, number(value), "end"),
        ]
    parts += [_text((LEFT + right) / 2, HIGH - 10, side_title(found.a), "middle")]
    parts += [_text(16, (TOP + bottom) / 2, side_title(found.b), "middle", turned=True)]
    paint = colours(point.agent for point in found.points)
    parts += [
        f'<circle cx="{x(one.a):.1f}" cy="{y(one.b):.1f}" r="2.5" fill="{paint[one.agent]}" fill-opacity="0.45"/>'
        for one in found.repeated
    ]
    names = name_places(found, Box(LEFT, TOP, right, bottom))
    for point, name in zip(found.points, names, strict=True):
        colour, (at, up) = paint[point.agent], (x(point.a.mean), y(point.b.mean))
        parts += [_line(x(low), up, x(high), up, colour) for low, high in _known(point.a)]
        parts += [_line(at, y(low), at, y(high), colour) for low, high in _known(point.b)]
        parts += [f'<circle cx="{at:.1f}" cy="{up:.1f}" r="5" fill="{colour}"/>']
        parts += [_line(at, up, at + name.dx, up + name.dy, "#aaa")] * name.far
        anchor = "start" if name.side == "left" else "end"
        parts += [_text(at + name.dx, up + name.dy + 4, short_name(point.agent), anchor)]
    return _drawing(WIDE, HIGH, f"{side_title(found.b)} against {side_title(found.a)}, a point per agent", parts)


def matrix_svg(found: Matrix) -> str:
    parts = []
    for row, (name, line) in enumerate(zip(found.values, found.cells, strict=True)):
        top = NAMES + row * SQUARE
        parts += [_text(NAMES - 8, top + SQUARE / 2 + 4, name, "end")]
        parts += [_text(NAMES + (row + 0.5) * SQUARE, NAMES - 10, name, "middle")]
        for column, cell in enumerate(line):
            left, known = NAMES + column * SQUARE, math.isfinite(cell.value)
            fill = _shade(cell.value) if known else "none"
            parts += [f'<rect x="{left}" y="{top}" width="{SQUARE - 2}" height="{SQUARE - 2}" fill="{fill}"/>']
            ink = "#fff" if known and abs(cell.value) > 0.6 else "#222"
            said = f"{cell.value:z.2f}" if known else "–"
            parts += [_text(left + SQUARE / 2 - 1, top + SQUARE / 2 + 4, said, "middle", ink)]
    side = NAMES + len(found.values) * SQUARE
    parts += [_text(8, 24, f"{label(found.metric)}, by {found.field}", "start")]
    return _drawing(side + 10, side + 10, f"correlation of agents' scores between values of {found.field}", parts)


# --- scales and shapes --------------------------------------------------------------------------------


def _scale(points: Sequence[Interval], start: float, end: float) -> tuple[Scale, list[float]]:
    """From a number to its place, and where the axis has ticks."""
    low, high, logarithmic = extent(points)
    spread = logarithmic and high / low > DECADES
    return placed(points, start, end), _powers(low, high) if spread else _ticks(low, high)


def _powers(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten that lie inside; powers alone where those would be many."""
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    multiples = (1, 2, 5) if len(powers) < 5 else (1,)
    return [power * multiple for power in powers for multiple in multiples if low <= power * multiple <= high]


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers inside: multiples of 1, 2 or 5 powers of ten, about five of them."""
    rough = (high - low) / 5 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * multiple for multiple in (1, 2, 5, 10) if power * multiple >= rough)
    return [step * index for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _known(one: Interval) -> list[tuple[float, float]]:
    return [(one.low, one.high)] if math.isfinite(one.low) and math.isfinite(one.high) else []


def _shade(value: float) -> str:
    """Between the middle colour and that of the nearer end."""
    low, middle, high = (tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5)) for colour in SHADES)
    end = high if value > 0 else low
    mixed = [round(m + (e - m) * abs(value)) for m, e in zip(middle, end, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" stroke-width="1.5"/>'


def _text(x: float, y: float, words: str, anchor: str, colour: str = "#222", turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' * turned
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{turn}>{escape(words)}</text>'


def _drawing(wide: float, high: float, title: str, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
    head += f'color="#222" font-family={quoteattr(FONT)} font-size="12">'
    return "\n".join([head, f"<title>{escape(title)}</title>", *parts, "</svg>", ""])
