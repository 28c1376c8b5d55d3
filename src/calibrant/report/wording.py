"""Metrics and numbers as people read them: short headings, and digits that the interval supports."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from calibrant.report.board import better

ROUND_OFF = 1e-7  # what single precision leaves of a score that is zero
WORDS = {"cpu": "CPU", "seconds": "s", "mb": "MB"} | {
    word: word.upper() for word in ("kl", "nll", "ece", "aurcc", "rpp", "cr10", "augrc", "aurc")
}


def heading(metric: str) -> str:
    """A metric's name for people, with an arrow that says which way is better.

    >>> heading("kl_tau10_dyadic"), heading("fit_cpu_seconds"), heading("accuracy")
    ('KL τ=10 dyadic ↓', 'fit CPU s ↓', 'accuracy ↑')
    """
    words = [WORDS.get(word, re.sub(r"^tau(?=\d)", "τ=", word)) for word in metric.split("_")]
    return " ".join([*words, "↑" if better(metric) == "higher" else "↓"])


def quantity(mean: float, low: float, high: float) -> str:
    """An estimate with its interval; limits may be nan.

    The half-width gets one significant digit, or two when it begins with 1, and the mean as many decimals. Limits that
    are not symmetric about the mean are written out. Without limits the mean gets three significant digits.

    >>> quantity(0.12914, 0.12514, 0.13314), quantity(2.0, 1.5, 4.1), quantity(0.12914, math.nan, math.nan)
    ('0.129±0.004', '2.0 [1.5, 4.1]', '0.129')
    """
    if not math.isfinite(mean):
        return "–"
    if max(map(abs, (mean, low, high))) < ROUND_OFF or (abs(mean) < ROUND_OFF and not math.isfinite(low)):
        return "0"
    half = (high - low) / 2
    if not math.isfinite(half) or half <= 1e-9 * abs(mean):
        return _writer(abs(mean), 0 if mean.is_integer() else 2 - _exponent(mean))(mean)
    nearer = min(abs(mean - low), abs(high - mean))
    finest = nearer if nearer > half / 100 else half
    write = _writer(max(abs(mean), half), (1 if finest < 1.95 * 10.0 ** _exponent(finest) else 0) - _exponent(finest))
    if abs(high + low - 2 * mean) <= 0.1 * half:
        return f"{write(mean)}±{write(half)}"
    return f"{write(mean)} [{write(low)}, {write(high)}]"


def _writer(scale: float, decimals: int) -> Callable[[float], str]:
    """How to write numbers of a scale to so many decimals: by powers of ten where it would be a long row of zeros."""
    if scale < 1e9 and (decimals <= 4 or scale >= 1e-2):
        return lambda value: f"{value:z.{max(decimals, 0)}f}"

    def by_powers_of_ten(value: float) -> str:
        digits = min(max(0, _exponent(value) + decimals), 6)
        return re.sub(r"e([+-])0*(?=\d)", r"e\1", f"{value:.{digits}e}") if value else "0"

    return by_powers_of_ten


def _exponent(value: float) -> int:
    """Of the first significant digit."""
    return math.floor(math.log10(abs(value))) if value else 0
