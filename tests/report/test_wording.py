"""Numbers and names as people read them."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.report.wording import heading, quantity


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (0.12914, 0.0042, "0.129±0.004"),
        (0.12914, 0.0142, "0.129±0.014"),
        (1.367, 0.0961, "1.37±0.10"),
        (1.367, 0.21, "1.4±0.2"),
        (1234.6, 56.0, "1235±56"),
        (0.0, 0.31, "0.0±0.3"),
        (-0.0004, 0.03, "0.00±0.03"),
        (0.080031, 0.000171, "0.08003±0.00017"),
        (0.000118, 0.0000193, "1.18e-4±1.9e-5"),
        (0.0, 0.00003, "0±3e-5"),
    ],
)
def test_digits_follow_the_half_width(mean: float, half: float, text: str) -> None:
    assert quantity(mean, mean - half, mean + half) == text


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((math.nan, math.nan, math.nan), "–"),
        ((0.12914, math.nan, math.nan), "0.129"),
        ((2802.0, 2802.0, 2802.0), "2802"),
        ((0.0, 0.0, 0.0), "0"),
        ((0.129, 0.120, 0.158), "0.129 [0.120, 0.158]"),
        ((1.0, 1.0, 1.5), "1.0 [1.0, 1.5]"),
    ],
)
def test_what_is_not_symmetric_is_never_shown_as_if_it_were(numbers: tuple[float, float, float], text: str) -> None:
    assert quantity(*numbers) == text


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e4))
def test_the_shown_interval_is_the_real_one_up_to_rounding(mean: float, half: float) -> None:
    shown = quantity(mean, mean - half, mean + half)
    if half > 1e-8 * abs(mean):
        middle, width = map(float, re.fullmatch(r"(.+)±(.+)", shown).groups())  # type: ignore[union-attr]
        assert abs(middle - mean) <= 0.26 * half and abs(width - half) <= 0.26 * half


def test_headings_are_short_and_say_which_way_is_better() -> None:
    assert heading("joint_nll_tau10") == "joint NLL τ=10 ↓"
    assert heading("peak_memory_mb") == "peak memory MB ↓"
    assert heading("cr10") == "CR10 ↑"
