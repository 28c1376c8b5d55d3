"""How the report looks: one colour and shape per agent, names of metrics, numbers, and the charts' theme.

Colours stay apart for readers with any of the common colour vision deficiencies and stand out on white and on near
black; a test holds them to that. Shapes and dashes say the same again. Everything else is drawn in `currentColor`, so
that a chart follows the page from light to dark without being drawn anew.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from calibrant.report.wording import heading

AGENT_COLOURS: Mapping[str, str] = {
    "uniform": "#8b919a",
    "prior": "#855c75",
    "oracle": "currentColor",
    "logistic": "#4fb0ea",
    "mlp": "#0b6fb8",
    "ensemble": "#e09b1a",
    "ensemble+": "#cf4a10",
}
SPARE_COLOURS = ("#0f9d73", "#d0589f", "#6a5ae0", "#a89f2e", "#8a5a44", "#2f9ea6", "#c2702e", "#5f8a3a")
SHAPES: Mapping[str, str] = {  # Vega's name and the same as an SVG path in a 16 x 16 box
    "circle": "M8 3a5 5 0 1 1 0 10a5 5 0 1 1 0-10z",
    "square": "M3.5 3.5h9v9h-9z",
    "triangle-up": "M8 2.5l6 11h-12z",
    "diamond": "M8 1.5l5.5 6.5l-5.5 6.5l-5.5-6.5z",
    "triangle-down": "M8 13.5l-6-11h12z",
    "cross": "M6 2.5h4v3.5h3.5v4h-3.5v3.5h-4v-3.5h-3.5v-4h3.5z",
    "triangle-right": "M13.5 8l-11 6v-12z",
    "triangle-left": "M2.5 8l11-6v12z",
}
CONTROLS = ("uniform", "prior", "oracle", "bayes")  # they bound the scale; drawn dashed
PRIVILEGED = ("oracle",)  # told the truth: never part of a verdict

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif'
THEME: Mapping[str, Any] = {
    "background": None,
    "font": FONT,
    "padding": 4,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "tickColor": "currentColor",
        "domainColor": "currentColor",
        "gridColor": "currentColor",
        "gridOpacity": 0.1,
        "domainOpacity": 0.35,
        "tickOpacity": 0.35,
        "labelOpacity": 0.85,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titleOpacity": 0.7,
        "labelLimit": 220,
        "tickSize": 4,
    },
    "legend": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 260,
    },
    "title": {"color": "currentColor", "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
    "text": {"color": "currentColor", "fontSize": 12},
    "rule": {"color": "currentColor"},
    "tick": {"color": "currentColor"},
}


def colours(agents: Iterable[str]) -> dict[str, str]:
    """A colour per agent: built-in ones have theirs for good, others one that their name decides, if it is free.

    >>> colours(["mlp", "mine.py:Agent"]) == colours(["mine.py:Agent", "mlp"])
    True
    """
    chosen: dict[str, str] = {}
    for agent in sorted(set(agents)):
        start = zlib.crc32(agent.encode()) % len(SPARE_COLOURS)
        liked = (AGENT_COLOURS.get(base_name(agent), SPARE_COLOURS[start]), *SPARE_COLOURS[start:], *SPARE_COLOURS)
        chosen[agent] = next((colour for colour in liked if colour not in chosen.values()), liked[0])
    return chosen


def shapes(agents: Iterable[str]) -> dict[str, str]:
    """A point shape per agent, in the order in which colours are known."""
    known, names = list(AGENT_COLOURS), list(SHAPES)
    place = {agent: known.index(base_name(agent)) if base_name(agent) in known else len(known) for agent in agents}
    order = sorted(place, key=lambda agent: (place[agent], agent))
    return {agent: names[position % len(names)] for position, agent in enumerate(order)}


def base_name(agent: str) -> str:
    """The method's name without its parameters: `ensemble+?size=10` is an `ensemble+`."""
    return agent.partition("?")[0]


def short_name(agent: str) -> str:
    """An agent's name as charts show it: the digest of a file agent stays in the table.

    >>> short_name("mine.py:Agent@0123456789ab?l2=3")
    'mine.py:Agent?l2=3'
    """
    return re.sub(r"@[0-9a-f]{12}", "", agent)


def label(metric: str) -> str:
    """A metric's name in words, without the arrow of its table heading.

    >>> label("kl_tau10_dyadic")
    'KL τ=10 dyadic'
    """
    return heading(metric).rpartition(" ")[0]


def number(value: float, digits: int = 3) -> str:
    """Three significant digits, powers of ten only for the tiny; a dash where there is no number.

    >>> [number(value) for value in (0.12914, 1.3671, 12345.6, 0.00001234, -0.5, math.nan)]
    ['0.129', '1.37', '12 346', '1.23 × 10⁻⁵', '−0.500', '–']
    """
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) < 1e-4:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}".replace("-", "−")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}".replace(",", " ").replace("-", "−")


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
