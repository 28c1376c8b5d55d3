"""A board in writing: a table for people, LaTeX for papers; JSON, CSV and Parquet for machines.

Markdown, for pages, is written next door. The tables show an estimate to the digits that its interval supports, and
say below what the marks mean. The three data formats carry every number in full. Rich and PyArrow are imported where
they are used.
"""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant import registry
from calibrant.report.board import Board, Row
from calibrant.report.wording import heading, quantity
from calibrant.types import CalibrantError

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

WIDTH = 120
GAP = "gap "  # begins the name of a column that shows a metric's gap; no metric's name has a space


def render(board: Board, format: str = "table", *, width: int = WIDTH) -> str | bytes:
    """The board as `table`, `json`, `csv`, `latex`, `markdown` (text) or `parquet` (bytes)."""
    from calibrant.report.markdown import markdown

    writers: dict[str, Callable[[], str | bytes]] = {
        "table": lambda: _text(console_table(board, width), width),
        "json": lambda: json.dumps(board.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        "csv": lambda: _csv(board),
        "latex": lambda: _latex(board),
        "markdown": lambda: markdown(board),
        "parquet": lambda: _parquet(board),
    }
    if format not in writers:
        near = registry.nearest(format, writers)
        raise CalibrantError(f"'{format}' is no format of a board{near}; there are {', '.join(writers)}")
    return writers[format]()


def console_table(board: Board, width: int = WIDTH) -> Group:
    """For a Rich console: agents down, metrics across, in several blocks where the width does not hold them all."""
    from rich.console import Group
    from rich.text import Text

    page = make_page(board)
    title = Text(board.suite, style="bold")
    notes = [Text(note, style="dim") for note in page.notes]
    blocks, space = _layout(page, width)
    tables = [part for columns in blocks for part in (_block(page, columns, space), Text())]
    return Group(title, *tables, *notes)


# --- what a table shows ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One agent in one slice."""

    agent: str
    tier: str
    n: str
    failed: str
    cells: Mapping[str, str]
    verdicts: Mapping[str, str]  # "better" or "worse" than the baseline where that is significant, else ""


@dataclass(frozen=True)
class Page:
    """A board ready to be typeset. Columns that would say the same in every line are left to the notes."""

    columns: tuple[str, ...]  # metrics, then the gaps of those that have one
    sections: tuple[tuple[str, tuple[Line, ...]], ...]
    counts: tuple[str, ...]  # which of n and failed are shown
    notes: tuple[str, ...]

    @property
    def lines(self) -> list[Line]:
        return [line for _, lines in self.sections for line in lines]


def make_page(board: Board) -> Page:
    sections: dict[str, dict[str, dict[str, Row]]] = {}
    for row in board.rows:
        sections.setdefault(slice_title(row), {}).setdefault(row.agent, {})[row.metric] = row
    counts = {
        "n": len({row.n for row in board.rows if row.n}) > 1,
        "failed": any(row.failed for row in board.rows),
    }
    measured = {row.metric for row in board.rows if row.gap}
    return Page(
        columns=(*board.metrics, *(GAP + metric for metric in board.metrics if metric in measured)),
        sections=tuple(
            (title, tuple(_line(agent, rows, board.leading) for agent, rows in agents.items()))
            for title, agents in sections.items()
        ),
        counts=tuple(name for name, shown in counts.items() if shown),
        notes=tuple(_notes(board, counts)),
    )


def slice_title(row: Row) -> str:
    return ", ".join(f"{name}={registry.show(value)}" for name, value in row.slice.items())


def _line(agent: str, rows: Mapping[str, Row], leading: str) -> Line:
    seen = sorted({row.n for row in rows.values() if row.n}) or [0]  # a dash already says that a metric is missing
    return Line(
        agent=agent,
        tier=str(rows[leading].tier or "–"),
        n=f"{seen[0]}–{seen[-1]}" if len(seen) > 1 else str(seen[0]),
        failed=str(max(row.failed for row in rows.values())),
        cells={metric: quantity(row.mean, row.low, row.high) for metric, row in rows.items()}
        | {GAP + metric: quantity(row.gap.mean, row.gap.low, row.gap.high) for metric, row in rows.items() if row.gap},
        verdicts={metric: row.verdict for metric, row in rows.items()},
    )


def _notes(board: Board, counts: Mapping[str, bool]) -> Iterator[str]:
    over = "n" if counts["n"] else f"{max(row.n for row in board.rows)}"
    each = " in each section" if board.by else ""
    star = f"; * differs from {board.baseline} (paired, 5 %, each comparison by itself)" if board.baseline else ""
    yield f"95 % intervals over {over} environments{each}, stratified by setting{star}."
    yield f"Agents of one tier are not told apart from its best by {board.leading} (5 % over all pairs together)."
    measured = [row.gap.n for row in board.rows if row.gap]
    if measured:
        way = f"the way from {board.baseline} (0) to {board.floor} (1)"
        yield f"Gap closed: share of {way}, on the up to {max(measured)} environments where {board.floor} converged."
    yield "Failed cells are counted and never averaged." if counts["failed"] else "No cell failed."
    biased = [row for row in board.rows if abs(row.mc_bias) > (row.high - row.low) / 20]
    if biased:
        worst = {(row.agent, row.metric): row.mc_bias for row in sorted(biased, key=lambda row: abs(row.mc_bias))}
        named = ", ".join(f"{agent} {metric} {worst[agent, metric]:+.2g}" for agent, metric in [*worst][:-4:-1])
        more = f" and {len(worst) - 3} more" if len(worst) > 3 else ""
        yield f"Estimated Monte-Carlo bias above a tenth of the half-width, not taken off: {named}{more}."
    if board.others:
        yield f"Not averaged in: {', '.join(board.others)}. `--preset {board.others[0]}` shows it."


# --- people: console and LaTeX ----------------------------------------------------------------------


def _layout(page: Page, width: int) -> tuple[list[list[str]], int]:
    """Columns in as few blocks as fit, and the space between them: 2, or 1 where that saves a block."""
    wide, tight = (_blocks(page, width, space) for space in (2, 1))
    return (tight, 1) if len(tight) < len(wide) else (wide, 2)


def _blocks(page: Page, width: int, space: int) -> list[list[str]]:
    """Split the columns so that each block fits; agents' names may be folded, numbers may not."""
    names = [name for title, lines in page.sections for name in (title, *(line.agent for line in lines))]
    counts = [max(len(count), *(len(getattr(line, count)) for line in page.lines)) for count in page.counts]
    start = width - min(max(map(len, names)), 12) - sum(space + column for column in [len("tier"), *counts])
    blocks: list[list[str]] = []
    room = 0
    for column in page.columns:
        cells = [len(line.cells.get(column, "")) + 1 for line in page.lines]
        need = space + max(*cells, *map(len, _wrapped(column).split("\n")))
        if not blocks or need > room:
            blocks.append([])
            room = start
        blocks[-1].append(column)
        room -= need
    return blocks


def _block(page: Page, columns: Sequence[str], space: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    colours = {"better": "green", "worse": "red", "": ""}
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, space - 1, 0, 0))
    table.add_column("tier", justify="right", no_wrap=True)
    table.add_column("agent", overflow="fold")
    for column in columns:
        table.add_column(Text(_wrapped(column), justify="right"), justify="right", no_wrap=True)
    for count in page.counts:
        table.add_column(count, justify="right", no_wrap=True)
    for title, lines in page.sections:
        if title:
            table.add_section()
            table.add_row("", Text(title, style="bold"))
        for line in lines:
            cells = []
            for column in columns:
                verdict = line.verdicts.get(column, "")
                cells.append(Text(line.cells.get(column, "") + ("*" if verdict else " "), style=colours[verdict]))
            table.add_row(line.tier, Text(line.agent), *cells, *(getattr(line, count) for count in page.counts))
    return table


def column_heading(column: str) -> str:
    """A metric's own heading, or that of its gap, of which more is better."""
    if not column.startswith(GAP):
        return heading(column)
    return f"gap closed {heading(column.removeprefix(GAP)).rpartition(' ')[0]} ↑"


def _wrapped(column: str) -> str:
    """The heading on lines of up to 11 letters; the arrow stays with the last word."""
    name, _, arrow = column_heading(column).rpartition(" ")
    lines = textwrap.wrap(f"{name}\N{NO-BREAK SPACE}{arrow}", 11, break_long_words=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _text(page: Group, width: int) -> str:
    from rich.console import Console

    buffer = io.StringIO()
    Console(file=buffer, width=width, color_system=None, force_terminal=False, highlight=False).print(page)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _latex(board: Board) -> str:
    r"""A booktabs `tabular`; the notes stand below it as comments for the caption."""
    page = make_page(board)
    heads = ["tier", "agent", *map(column_heading, page.columns), *page.counts]
    body = [r"\begin{tabular}{rl" + "r" * (len(heads) - 2) + "}", r"\toprule", _tex_row(map(_escape, heads))]
    for title, lines in page.sections:
        body.append(r"\midrule")
        if title:
            body.append(rf"\multicolumn{{{len(heads)}}}{{l}}{{\textit{{{_escape(title)}}}}} \\")
        for line in lines:
            cells = [_tex_cell(line, column) for column in page.columns]
            counts = [_escape(getattr(line, count)) for count in page.counts]
            body.append(_tex_row([_escape(line.tier), _escape(line.agent), *cells, *counts]))
    return "\n".join([*body, r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in page.notes)]) + "\n"


def _tex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _tex_cell(line: Line, column: str) -> str:
    number = re.sub(r"e([+-]\d+)", r" \\times 10^{\1}", line.cells.get(column, "")).replace("±", r" \pm ")
    star = "^{*}" if line.verdicts.get(column) else ""
    return f"${number}{star}$" if any(map(str.isdigit, number)) else _escape(number)


def _escape(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "+": "{+}", "–": "--"}
    special |= {"τ": r"$\tau$", "↓": r"$\downarrow$", "↑": r"$\uparrow$"} | {sign: "\\" + sign for sign in "_&%$#{}"}
    return "".join(special.get(letter, letter) for letter in text)


# --- machines: CSV and Parquet ----------------------------------------------------------------------


def _long(board: Board) -> list[dict[str, Any]]:
    """One flat row per agent, metric and slice; what is not a number is None."""
    flat = []
    for row in board.to_json()["rows"]:
        where = {f"slice_{name}": value for name, value in row.pop("slice").items()}
        paired = {name: row.pop(name) or {} for name in ("difference", "ratio", "gap")}
        parts = {
            f"{name}_{key}": pair.get(key) for name, pair in paired.items() for key in ("mean", "low", "high", "n")
        }
        flat.append({"agent": row.pop("agent"), "metric": row.pop("metric")} | where | row | parts)
    return [{"suite": board.suite, "baseline": board.baseline, "floor": board.floor} | row for row in flat]


def _csv(board: Board) -> str:
    rows, buffer = _long(board), io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def _parquet(board: Board) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise CalibrantError("Parquet needs PyArrow: `pip install 'calibrant[parquet]'` brings it") from error
    rows = _long(board)
    texts, whole = ("suite", "baseline", "floor", "agent", "metric", "better"), ("n", "failed", "tier")

    def column(name: str) -> Any:  # types by name, so that a column without any value keeps its type
        if name.startswith("slice_"):
            return pyarrow.array([row[name] for row in rows])
        integer = name in whole or name.endswith("_n")
        kind = pyarrow.string() if name in texts else pyarrow.int64() if integer else pyarrow.float64()
        return pyarrow.array([row[name] for row in rows], type=kind)

    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({name: column(name) for name in rows[0]}), sink)
    return sink.getvalue()
