"""A board as Markdown, for pages that people read: the table with costs, the paired ratios, the tiers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from calibrant.report.board import COSTS, Board, Row, better
from calibrant.report.table import Page, column_heading, make_page, slice_title
from calibrant.report.wording import quantity

COST = "fit_cpu_seconds"  # the cost that is also shown as a multiple of the baseline's


def markdown(board: Board) -> str:
    """Sections one below the other; an agent's name is code, so that its signs stay as they are."""
    page = make_page(board)
    blocks = [block for title, _ in page.sections for block in _section(board, page, title)]
    notes = "\n".join(f"{note}  " for note in page.notes).rstrip().replace("*", "\\*")
    blocks += [notes, *_paired(board), *_tiers(board)]
    return "\n\n".join(blocks) + "\n"


def _section(board: Board, page: Page, wanted: str) -> Iterator[str]:
    if wanted:
        yield f"**{wanted}**"
    rows = {(row.agent, row.metric): row for row in board.rows if slice_title(row) == wanted}
    cost = [f"fit ÷ {board.baseline}"] if any(row.ratio for (_, metric), row in rows.items() if metric == COST) else []
    head = ["tier", "agent", *map(column_heading, page.columns), *cost, *page.counts]
    lines = next(lines for title, lines in page.sections if title == wanted)
    yield _table(
        head,
        [
            [
                line.tier,
                f"`{line.agent}`",
                *(line.cells.get(column, "") + "\\*" * bool(line.verdicts.get(column)) for column in page.columns),
                *([_multiple(rows.get((line.agent, COST)))] if cost else []),
                *(getattr(line, count) for count in page.counts),
            ]
            for line in lines
        ],
    )


def _paired(board: Board) -> Iterator[str]:
    """Ratios of losses over all environments; a ratio of scores of which more is better says little."""
    if board.baseline is None or board.by:
        return
    metrics = [metric for metric in board.metrics if better(metric) == "lower" and metric not in COSTS]
    rows = {(row.agent, row.metric): row for row in board.rows}
    agents = [agent for agent in board.agents if agent != board.baseline]
    if not agents or not metrics:
        return
    yield f"Ratio to `{board.baseline}` on shared environments, with Fieller's 95 % interval; below 1 is better:"
    body = [[f"`{agent}`", *(_ratio(rows.get((agent, metric))) for metric in metrics)] for agent in agents]
    yield _table(["agent", *map(column_heading, metrics)], body)


def _tiers(board: Board) -> Iterator[str]:
    yield "Tiers, best first (agents of one tier are not told apart from its best, 5 % over all pairs together):"
    yield "\n".join(
        f"- {column_heading(metric)}: " + " > ".join(", ".join(f"`{agent}`" for agent in tier) for tier in tiers)
        for metric, tiers in board.tiers.items()
        if metric not in COSTS
    )


def _multiple(row: Row | None) -> str:
    return "–" if row is None or row.ratio is None else f"{row.ratio.mean:.3g}"


def _ratio(row: Row | None) -> str:
    return "–" if row is None or row.ratio is None else quantity(row.ratio.mean, row.ratio.low, row.ratio.high)


def _table(head: Iterable[str], body: Iterable[list[str]]) -> str:
    heads = list(head)
    rule = ["---:" if name != "agent" else "---" for name in heads]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *body))
