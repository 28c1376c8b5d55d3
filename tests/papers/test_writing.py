"""A receipt on a page and on a terminal."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

from calibrant.papers.format import Paper
from calibrant.papers.receipts import Estimate, Receipt, Row, judge
from calibrant.papers.writing import command, markdown, page_name, plain, summary, write
from calibrant.types import CalibrantError

PAPER = Paper.model_validate(
    {
        "name": "tiny", "title": "A tiny paper", "citation": "Nobody, 2020",
        "items": {
            "table1": {
                "title": "Table 1", "plan": {"problems": ["testbed"], "seeds": 10},
                "values": [{"label": "MLP", "agent": "mlp", "published": {"kl_tau10": 1.0}}],
                "trends": [{"claim": "it pays", "better": "mlp", "worse": "uniform", "metrics": ["nll", "kl_tau1"]}],
                "facts": ["10 environments"], "differences": ["labels are summed out"],
            }
        },
    }
)  # fmt: skip
OURS = judge(Estimate(1.0623, 0.9823, 1.1423, 0.04, 10, mc_bias=0.02), "value", 1.015, None, 0.0)
VALUE = Row("value", "ENSEMBLE+", "ensemble+", "kl_tau10", "value", 1.015, None, OURS, None, 10, 0, 12.3)
GROWTH = Row("growth", "growth", "a over b", "kl_tau1 → kl_tau10", "above", of=10)


def made(*rows: Row, **changes: Any) -> Receipt:
    return dataclasses.replace(
        Receipt(PAPER, "table1", rows or (VALUE, GROWTH), 10, 20, 0, 0, 34.6, {}, whole=True), **changes
    )


def lines_of(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_the_verdict_line_says_how_many_agree_and_what_is_lacking() -> None:
    assert summary(made()) == "1 of 2 claims agree, 0 differ, 1 not run. Cost: 35 CPU s."
    partial = made(whole=False, seeds=3, missing=4, absent={"dropout": "unknown"}, agents=("mlp",))
    assert "Partial: 3 of 10 seeds; only mlp; 4 of 20 cells have no record; not in this installation: dropout." in (
        summary(partial)
    )
    assert "2 of 20 cells failed and are left out." in summary(made(failed=2))
    assert "tuned" in summary(made(tuned=True)) and "Partial" not in summary(made(failed=2))


def test_the_page_has_a_row_per_claim() -> None:
    text = markdown(made())
    assert (
        "| ENSEMBLE+ | ensemble+ | kl_tau10 | 1.015 | 1.062 [0.982, 1.142] | 0.040 | +1.2 | +0.8 | agrees | 10 | 12 |"
        in text
    )
    assert "| growth | a over b | kl_tau1 → kl_tau10 | above 0 | – | – | – | – | not run | 0 of 10 | – |" in text
    assert "calibrant reproduce tiny:table1\n" in text and "Nobody, 2020" in text
    for part in (
        "- 10 environments",
        "- labels are summed out",
        "it pays",
        "not taken off: `ensemble+` kl_tau10 +0.020",
    ):
        assert part in text
    assert len({line.count(" | ") for line in lines_of(text, "| ")}) == 1
    assert "published estimator" not in text


def test_the_published_estimator_has_columns_where_it_is_known() -> None:
    beside = dataclasses.replace(VALUE, as_published=OURS)
    text = markdown(made(beside, GROWTH))
    assert "ours by the published estimator" in text and "+1.2 | agrees" in text
    assert "by their estimator" in plain(made(beside))


def test_an_error_that_was_published_is_shown() -> None:
    text = markdown(made(dataclasses.replace(VALUE, error=0.05)))
    assert "1.015 ± 0.05" in text and "Where a standard error was published" in text


def test_numbers_without_limits_or_error_are_written() -> None:
    lone = judge(Estimate(0.5, math.nan, math.nan, math.nan, 1), "value", 0.5, None, 0.0)
    certain = judge(Estimate(0.5, 0.5, 0.5, 0.0, 9), "value", 0.4, None, 0.0)
    text = markdown(made(*(dataclasses.replace(VALUE, ours=one) for one in (lone, certain))))
    assert "| 0.500 | – | – | – | undecided | 1 of 10 |" in text
    assert "| 0.500 [0.500, 0.500] | 0.000 | +inf | +inf | differs | 9 of 10 |" in text


def test_the_terminal_aligns_columns() -> None:
    head, *body = plain(made()).splitlines()[2:5]
    assert head.index("verdict") == body[0].index("agrees") == body[1].index("not run")
    assert plain(made()).endswith(summary(made()))


def test_the_command_is_the_one_that_was_given() -> None:
    assert command(made(seeds=2, agents=("mlp", "ensemble?size=3"), tuned=True)) == (
        'calibrant reproduce tiny:table1 --agents "mlp,ensemble?size=3" --seeds 2 --tuned'
    )


def test_a_partial_receipt_never_takes_the_place_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write(made()) == Path("tiny-table1.md")
    Path("docs/results").mkdir(parents=True)
    whole = write(made())
    assert whole == Path("docs/results/tiny-table1.md") and whole.read_text() == markdown(made())
    assert write(made(whole=False)) == Path("docs/results/tiny-table1-partial.md")
    assert page_name(made(tuned=True)) == "tiny-table1-tuned"


def test_the_page_goes_where_it_is_told(tmp_path: Path) -> None:
    assert write(made(), tmp_path) == tmp_path / "tiny-table1.md"
    assert write(made(whole=False), tmp_path / "mine.md") == tmp_path / "mine.md"
    with pytest.raises(CalibrantError, match="there is no folder"):
        write(made(), tmp_path / "missing" / "mine.md")
