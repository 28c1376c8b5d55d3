"""A board in writing: what people read fits and says what it means; what machines read is complete."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from calibrant.report.board import Board, Row
from calibrant.report.table import console_table, render
from calibrant.stats.intervals import Interval
from calibrant.types import CalibrantError

COLUMNS = ("kl_tau1", "kl_tau10", "kl_tau10_dyadic", "aggregate", "accuracy", "ece", "fit_cpu_seconds")
# (mean, half-width) of each column, as large as the published ones
PUBLISHED = {
    "sgmcmc": (
        (0.122, 0.011),
        (0.947, 0.083),
        (1.12, 0.10),
        (0.217, 0.019),
        (0.796, 0.014),
        (0.082, 0.0043),
        (812.0, 9.0),
    ),
    "ensemble+?size=30&l2=3": (
        *((0.129, 0.012), (1.015, 0.091), (1.25, 0.11), (0.231, 0.021)),
        *((0.790, 0.013), (0.085, 0.0041), (21.3, 0.4)),
    ),
    "mlp": ((0.129, 0.012), (1.367, 0.13), (1.92, 0.16), (0.266, 0.025), (0.793, 0.013), (0.078, 0.0044), (1.53, 0.03)),
}


def board(*wheres: dict[str, object], failed: int = 0) -> Board:
    rows = []
    for where in wheres or ({},):
        for place, (agent, numbers) in enumerate(PUBLISHED.items(), 1):
            for metric, (mean, half) in zip(COLUMNS, numbers, strict=True):
                gap = mean - PUBLISHED["mlp"][COLUMNS.index(metric)][0]
                reach = abs(gap) * (2 if metric == "kl_tau1" else 0.5)  # of kl_tau1 no difference is significant
                difference = Interval(gap, gap - reach, gap + reach, 210)
                few, broken = (210 - failed, failed) if agent == "sgmcmc" else (210, 0)
                rows.append(
                    Row(agent, metric, where, mean, mean - half, mean + half, few, broken, difference, tier=place)
                )
    order = tuple((agent,) for agent in PUBLISHED)
    return Board("testbed", "mlp", tuple(rows[0].slice), tuple(rows), dict.fromkeys(COLUMNS, order))


def text(shown: Board, **options: int) -> str:
    written = render(shown, "table", **options)
    assert isinstance(written, str)
    return written


def agent_lines(table: str, agent: str) -> list[str]:
    return [line for line in table.splitlines() if re.search(rf"^ *[\d–] +{re.escape(agent)}\s", line)]


@pytest.mark.parametrize("failed", [0, 13])
def test_the_default_columns_fit_into_120_characters_side_by_side(failed: int) -> None:
    table = text(board(failed=failed))
    assert max(map(len, table.splitlines())) <= 120
    (line,) = agent_lines(table, "sgmcmc")
    assert "…" not in table
    assert line.split()[:6] == ["1", "sgmcmc", "0.122±0.011", "0.95±0.08*", "1.12±0.10*", "0.217±0.019*"]
    assert table.count("KL τ=10") == 2 and "fit CPU s ↓" in table


def test_a_narrow_table_becomes_blocks_and_loses_nothing() -> None:
    table = text(board(), width=60)
    assert max(map(len, table.splitlines())) <= 60
    cells = " ".join(agent_lines(table, "mlp"))
    for shown in ("0.129±0.012", "1.37±0.13", "1.92±0.16", "0.27±0.03", "0.793±0.013", "0.078±0.004", "1.53±0.03"):
        assert shown in cells


def test_marks_only_what_differs_significantly() -> None:
    table = text(board())
    (baseline,), (other,) = agent_lines(table, "mlp"), agent_lines(table, "sgmcmc")
    assert "*" not in baseline
    assert other.count("*") == 6, "all but kl_tau1"
    assert "* differs from mlp (paired, 5 %" in table


def test_colours_say_better_or_worse_in_either_direction() -> None:
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="standard", _environ={})
    console.print(console_table(board(), 200))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    green, red = "\x1b[32m", "\x1b[31m"
    coloured = set(re.findall(r"(\x1b\[3\dm) *([^\s\x1b]+)", shown))
    assert (green, "0.95±0.08*") in coloured, "a lower loss is better"
    assert {(green, "0.796±0.014*"), (red, "0.790±0.013*")} <= coloured, "a higher accuracy is better"
    assert (red, "21.3±0.4*") in coloured, "a higher cost is worse"


def test_notes_explain_intervals_tiers_and_failures() -> None:
    whole, partial = text(board()), text(board(failed=13))
    assert "95 % intervals over 210 environments, stratified by setting" in whole
    assert "No cell failed." in whole and " failed\n" not in whole
    assert "95 % intervals over n environments" in partial and "never averaged" in partial
    assert agent_lines(partial, "sgmcmc")[0].split()[-2:] == ["197", "13"]
    assert "Monte-Carlo" not in whole


def test_notes_name_the_monte_carlo_bias_that_matters() -> None:
    shown = board()
    biases = {("sgmcmc", "kl_tau10"): 0.02, ("mlp", "kl_tau10"): 0.012}  # half-widths: 0.083 and 0.13
    rows = tuple(Row(**{**vars(row), "mc_bias": biases.get((row.agent, row.metric), 0.0)}) for row in shown.rows)
    table = text(Board(shown.suite, shown.baseline, shown.by, rows, shown.tiers))
    (note,) = [line for line in table.splitlines() if "Monte-Carlo" in line]
    assert "sgmcmc kl_tau10 +0.02" in note and "mlp" not in note


def with_gaps(shown: Board) -> Board:
    shares = {"sgmcmc": (0.81, 0.76, 0.86), "ensemble+?size=30&l2=3": (0.68, 0.58, 0.73), "mlp": (0.0, 0.0, 0.0)}
    rows = tuple(
        replace(row, gap=Interval(*shares[row.agent], 120) if row.metric.startswith("kl_") else None)
        for row in shown.rows
    )
    return replace(shown, rows=rows, floor="bayes")


def test_gaps_are_columns_of_their_own() -> None:
    table = text(with_gaps(board()), width=200)
    assert table.count("gap closed") == 3 and "τ=10 ↑" in table and max(map(len, table.splitlines())) <= 200
    assert agent_lines(table, "sgmcmc")[0].split()[-3:] == ["0.81±0.05"] * 3
    assert table.count("0.68 [0.58, 0.73]") == 3
    assert agent_lines(table, "mlp")[0].split()[-3:] == ["0"] * 3
    assert "Gap closed: share of the way from mlp (0) to bayes (1), on the up to 120 environments" in table
    narrow = text(with_gaps(board()))
    assert max(map(len, narrow.splitlines())) <= 120 and narrow.count("gap closed") == 3
    assert "gap closed" not in text(board()).lower()


def test_gaps_reach_every_format() -> None:
    shown = with_gaps(board())
    written = {name: render(shown, name) for name in ("json", "csv", "latex")}
    first = json.loads(written["json"])["rows"][0]
    assert first["gap"] == {"mean": 0.81, "low": 0.76, "high": 0.86, "n": 120}
    assert isinstance(written["csv"], str)
    rows = list(csv.DictReader(io.StringIO(written["csv"])))
    assert (rows[0]["floor"], rows[0]["gap_low"], rows[0]["gap_n"]) == ("bayes", "0.76", "120")
    assert {row["gap_mean"] for row in rows if row["metric"] == "accuracy"} == {""}
    assert r"gap closed KL $\tau$=10 $\uparrow$" in str(written["latex"]) and r"$0.81 \pm 0.05$" in str(
        written["latex"]
    )


def test_slices_are_sections() -> None:
    table = text(board({"temp": 0.1}, {"temp": 0.5}))
    assert table.index("temp=0.1") < table.index("temp=0.5")
    assert len(agent_lines(table, "mlp")) == 2
    assert "in each section" in table


def test_what_is_missing_is_a_dash() -> None:
    nan = math.nan
    rows = tuple(Row("broken", metric, {}, nan, nan, nan, 0, 4) for metric in COLUMNS)
    table = text(Board("testbed", None, (), rows, dict.fromkeys(COLUMNS, ())))
    (line,) = agent_lines(table, "broken")
    assert line.split() == ["–", "broken", *["–"] * 7, "4"]
    assert "differs" not in table


def test_json_is_strict() -> None:
    written = render(board(), "json")
    assert json.loads(written)["rows"][0]["agent"] == "sgmcmc" and "NaN" not in str(written)


def test_csv_is_long_with_full_precision() -> None:
    written = render(board({"temp": 0.1}, {"temp": 0.5}), "csv")
    assert isinstance(written, str)
    rows = list(csv.DictReader(io.StringIO(written)))
    assert len(rows) == 2 * len(PUBLISHED) * len(COLUMNS)
    assert {row["slice_temp"] for row in rows} == {"0.1", "0.5"}
    first = rows[0]
    assert (first["agent"], first["metric"], first["baseline"], first["better"]) == (
        "sgmcmc",
        "kl_tau1",
        "mlp",
        "lower",
    )
    assert float(first["low"]) == 0.122 - 0.011 and first["ratio_mean"] == "" and first["difference_n"] == "210"


def test_parquet_reads_back_as_it_was() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    written = render(board({"temp": 0.1}), "parquet")
    assert isinstance(written, bytes)
    table = parquet.read_table(pyarrow.BufferReader(written))
    assert table.num_rows == len(PUBLISHED) * len(COLUMNS)
    assert str(table.schema.field("ratio_mean").type) == "double", "a column without any value keeps its type"
    assert table.column("slice_temp").to_pylist()[0] == 0.1 and table.column("n").to_pylist()[0] == 210


def test_parquet_without_pyarrow_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CalibrantError, match="needs PyArrow") as caught:
        render(board(), "parquet")
    assert "\n" not in str(caught.value)


def test_latex_is_booktabs_with_everything_escaped() -> None:
    written = render(board({"hidden_size": "50%"}), "latex")
    assert isinstance(written, str)
    body = [line for line in written.splitlines() if not line.startswith("%")]
    assert body[0] == r"\begin{tabular}{rl" + "r" * 7 + "}" and body[-1] == r"\end{tabular}"
    assert [line for line in body if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert r"ensemble{+}?size=30\&l2=3" in written and r"hidden\_size=50\%" in written
    assert r"$0.122 \pm 0.011$" in written and r"$0.95 \pm 0.08^{*}$" in written
    for line in body:
        bare = re.sub(r"\\[&%_]", "", line)
        assert "%" not in bare and bare.count("{") == bare.count("}")
        if r"\\" in bare and "multicolumn" not in bare:
            assert bare.count("&") == 8
        assert all(ord(letter) < 128 for letter in line), "no sign that plain LaTeX cannot set"


def test_an_unknown_format_gets_the_nearest_one() -> None:
    with pytest.raises(CalibrantError, match="'latx' is no format of a board, did you mean 'latex'"):
        render(board(), "latx")
