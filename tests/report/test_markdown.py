"""A board as Markdown: every table is one, costs are multiples of the baseline's, ratios and tiers stand below."""

from __future__ import annotations

from dataclasses import replace

from tests.report.test_table import PUBLISHED, board

from calibrant.report.board import Board
from calibrant.report.table import render
from calibrant.stats.intervals import Interval


def paired() -> Board:
    """The published board with ratios: twice the baseline for every agent but itself."""
    plain = board()
    twice = Interval(2.0, 1.9, 2.2, 210)
    return replace(plain, rows=tuple(replace(row, ratio=twice) for row in plain.rows))


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every table: head, rule, body."""
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    return [[[cell.strip() for cell in line.strip("|").split(" | ")] for line in block] for block in blocks]


def test_tables_are_whole_and_costs_are_multiples_of_the_baseline() -> None:
    text = str(render(paired(), "markdown"))
    results, ratios = tables(text)
    for table in (results, ratios):
        assert {len(line) for line in table} == {len(table[0])}
    head, _, first, *rest = results
    assert head[:3] == ["tier", "agent", "KL τ=1 ↓"] and head[-2:] == ["fit CPU s ↓", "fit ÷ mlp"]
    assert first[:4] == ["1", "`sgmcmc`", "0.122±0.011", "0.95±0.08\\*"] and first[-1] == "2"
    assert len(rest) == len(PUBLISHED) - 1


def test_ratios_are_of_losses_only_and_the_baseline_is_left_out() -> None:
    _, ratios = tables(str(render(paired(), "markdown")))
    assert ratios[0] == ["agent", "KL τ=1 ↓", "KL τ=10 ↓", "KL τ=10 dyadic ↓", "aggregate ↓", "ECE ↓"]
    assert [line[0] for line in ratios[2:]] == ["`sgmcmc`", "`ensemble+?size=30&l2=3`"]
    assert ratios[2][1] == "2.00 [1.90, 2.20]"


def test_tiers_and_notes() -> None:
    text = str(render(board(), "markdown"))
    assert "- accuracy ↑: `sgmcmc` > `ensemble+?size=30&l2=3` > `mlp`" in text and "- fit CPU s" not in text
    assert "\\* differs from mlp" in text


def test_slices_are_sections_without_ratios() -> None:
    text = str(render(board({"temp": 0.1}, {"temp": 0.5}), "markdown"))
    assert text.count("**temp=") == 2 and len(tables(text)) == 2
