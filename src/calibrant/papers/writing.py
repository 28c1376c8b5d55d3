"""A receipt as people read it: a table on the terminal, a Markdown page for `docs/results`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from calibrant.papers.receipts import Estimate, Receipt, Row
from calibrant.report.files import write_whole
from calibrant.types import CalibrantError

RESULTS = Path("docs/results")
NONE = "–"

Column = tuple[str, str, Callable[[Row], str]]  # headings on a page and on a terminal, and what stands under them
COLUMNS: tuple[Column, ...] = (
    ("claim", "claim", lambda row: row.label),
    ("our agent", "our agent", lambda row: row.agent),
    ("metric", "metric", lambda row: row.metric),
    ("published", "published", lambda row: _published(row)),
    ("ours [95 % interval]", "ours [95 %]", lambda row: _interval(row.ours)),
    ("std. error", "error", lambda row: _number(row.ours.se, row.ours.se) if row.ours else NONE),
    ("z, our error alone", "z", lambda row: _z(row.ours.z if row.ours else None)),
    ("z, if theirs is as large", "z alike", lambda row: _z(row.ours.z_alike if row.ours else None)),
    ("ours by the published estimator", "by their estimator", lambda row: _interval(row.as_published)),
    ("its z, our error alone", "its z", lambda row: _z(row.as_published.z if row.as_published else None)),
    ("verdict", "verdict", lambda row: row.verdict),
    ("environments", "n", lambda row: f"{row.n}" if row.n >= row.of else f"{row.n} of {row.of}"),
    ("agent's CPU s", "CPU s", lambda row: f"{row.cpu_seconds:.0f}" if row.n else NONE),
)


def summary(receipt: Receipt) -> str:
    """The verdict in a line, and whatever makes it less than the whole item."""
    count, words = receipt.verdicts, receipt.paper.items[receipt.item]
    parts = [f"{count['agrees']} of {len(receipt.rows)} claims agree"]
    parts += [f"{count['differs']} {'differs' if count['differs'] == 1 else 'differ'}"]
    parts += [f"{count[name]} {name}" for name in ("undecided", "not run") if count[name]]
    text = ", ".join(parts) + "."
    if not receipt.whole:
        lacks = [f"{receipt.seeds} of {words.plan.seeds} seeds"] * (receipt.seeds < words.plan.seeds)
        lacks += [f"only {', '.join(receipt.agents)}"] * bool(receipt.agents)
        lacks += [f"{receipt.missing} of {receipt.cells} cells have no record"] * bool(receipt.missing)
        lacks += [f"not in this installation: {', '.join(receipt.absent)}"] * bool(receipt.absent)
        text += f" Partial: {'; '.join(lacks)}."
    if receipt.failed:
        text += f" {receipt.failed} of {receipt.cells} cells failed and are left out."
    if receipt.tuned:
        text += " Our tuned hyperparameters stand for the paper's."
    return text + f" Cost: {receipt.cpu_seconds:.0f} CPU s."


def plain(receipt: Receipt) -> str:
    """For a terminal: aligned columns, then the verdict line."""
    grid = table(receipt, heading=1)
    wide = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=True)) for line in grid]
    title = f"{receipt.paper.items[receipt.item].title} ({receipt.paper.citation})"
    note = "z: by our error alone, which the verdict goes by; z alike: if the paper's own error is as large as ours"
    notes = [note] if any(row.expected == "value" for row in receipt.rows) else []
    return "\n".join([title, "", *(line.rstrip() for line in lines), "", *notes, summary(receipt)])


def markdown(receipt: Receipt) -> str:
    """A page that says what was compared, how, and how to make it again."""
    item = receipt.paper.items[receipt.item]
    head, *body = ([cell.replace("|", "\\|") for cell in line] for line in table(receipt, heading=0))
    rows = [_bar(head), _bar(["---"] * len(head)), *map(_bar, body)]
    claims = [f"{trend.measure}: {trend.claim}." for trend in item.trends]
    return "\n".join(
        [
            f"# {item.title}",
            "",
            f"{receipt.paper.title}; {receipt.paper.citation}. Made by",
            "",
            "```sh",
            command(receipt),
            "```",
            "",
            f"**{summary(receipt)}**",
            "",
            *rows,
            "",
            *_section("How to read it", _reading(receipt)),
            *_section("What is claimed", claims),
            *_section("What the source says", item.facts),
            *_section("What is known to differ", item.differences),
        ]
    )


def table(receipt: Receipt, heading: Literal[0, 1]) -> list[list[str]]:
    """The headings and a line per claim; columns in which no row has anything are left out."""
    columns = [[column[heading], *(column[2](row) for row in receipt.rows)] for column in COLUMNS]
    filled = [column for column in columns if any(cell != NONE for cell in column[1:])]
    return [list(line) for line in zip(*filled, strict=True)]


def write(receipt: Receipt, out: Path | None = None) -> Path:
    """Write the page to a file or into a folder, `docs/results` where there is one by default.

    A receipt of less than the whole item never takes the place of the whole one's page.
    """
    folder = out if out is not None else RESULTS if RESULTS.is_dir() else Path()
    path = folder / f"{page_name(receipt)}.md" if out is None or out.is_dir() else out
    if not path.parent.is_dir():
        raise CalibrantError(f"cannot write '{path}': there is no folder '{path.parent}'")
    write_whole(path, markdown(receipt).encode())
    return path


def page_name(receipt: Receipt) -> str:
    parts = [receipt.paper.name, receipt.item, *["tuned"] * receipt.tuned, *["partial"] * (not receipt.whole)]
    return "-".join(parts)


def command(receipt: Receipt) -> str:
    more = [f' --agents "{",".join(receipt.agents)}"'] * bool(receipt.agents)
    more += [f" --seeds {receipt.seeds}"] * (receipt.seeds != receipt.paper.items[receipt.item].plan.seeds)
    return f"calibrant reproduce {receipt.paper.name}:{receipt.item}{''.join(more)}{' --tuned' * receipt.tuned}"


# --- pieces -----------------------------------------------------------------------------------------


def _reading(receipt: Receipt) -> Iterable[str]:
    if any(row.expected == "value" for row in receipt.rows):
        yield (
            "z = (ours - published) / error. *Our error alone* takes the published value as exact but for rounding; "
            "the verdict is by it, and `agrees` means |z| < 2. If the paper's error is as large as ours, 16 % of the "
            "entries of a faithful reproduction lie beyond that. *If theirs is as large* divides by √2 times our error."
        )
    if any(row.error is not None for row in receipt.rows):
        yield "Where a standard error was published it is part of the first z, and the second is not needed."
    if any(row.expected != "value" for row in receipt.rows):
        yield (
            "A claim about a direction agrees when the 95 % interval lies above 0, differs when it lies below, and is "
            "undecided when it holds 0; `about 0` agrees then. Everything in such a row is paired by environment."
        )
    biased = [row for row in receipt.rows if row.ours and abs(row.ours.mc_bias) > row.ours.se / 10]
    if biased:
        listed = ", ".join(f"`{r.agent}` {r.metric} {r.ours.mc_bias:+.3f}" for r in biased if r.ours)
        yield f"Estimated bias of ours from asking finitely many worlds, not taken off: {listed}."
    yield "CPU seconds are those of the records used, compilation included, whenever they were made."


def _section(title: str, lines: Iterable[str]) -> list[str]:
    listed = [f"- {line}" for line in lines]
    return [f"## {title}", "", *listed, ""] if listed else []


def _bar(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _published(row: Row) -> str:
    if row.published is None:
        return "above 0" if row.expected == "above" else "about 0"
    value = f"{row.published:.3f}" if row.kind == "ratio" else f"{row.published:g}"
    return value if row.error is None else f"{value} ± {row.error:g}"


def _interval(found: Estimate | None) -> str:
    if found is None:
        return NONE
    low, high = _number(found.low, found.se), _number(found.high, found.se)
    return _number(found.mean, found.se) + (f" [{low}, {high}]" if low != NONE and high != NONE else "")


def _number(value: float, error: float) -> str:
    """To two digits of the error; three decimals without one."""
    if not math.isfinite(value):
        return NONE
    decimals = 1 - math.floor(math.log10(error)) if math.isfinite(error) and error > 0 else 3
    return f"{value:z.{min(max(decimals, 0), 6)}f}"


def _z(value: float | None) -> str:
    return NONE if value is None or math.isnan(value) else f"{value:+.1f}"
