"""How results are printed: readable by default, JSON when asked."""

from __future__ import annotations

import dataclasses
import json as jsonlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.types import DEFAULT_STORE, CalibrantError, Scores

if TYPE_CHECKING:
    from calibrant.cli.listing import Entry
    from calibrant.engine.check import Finding
    from calibrant.engine.run import Outcome
    from calibrant.papers.receipts import Receipt
    from calibrant.report.board import Board
    from calibrant.report.correlation import Comparison, Series
    from calibrant.report.correlation_matrix import Matrix
    from calibrant.tune.show import Summary


def words(text: str) -> tuple[str, ...]:
    return tuple(word for word in (part.strip() for part in text.split(",")) if word)


def pairs(text: str) -> dict[str, str]:
    """`temp=0.1,train=10` as a mapping."""
    found: dict[str, str] = {}
    for word in words(text):
        field, equals, value = word.partition("=")
        if not (field and equals and value):
            raise CalibrantError(f"'{word}' is not of the form field=value, as in --where temp=0.1,train=10")
        if field in found:
            raise CalibrantError(f"'{field}' is given twice in --where; {field}={found[field]}|{value} means either")
        found[field] = value
    return found


def outcome(result: Outcome, suite: str, store: str, as_json: bool) -> None:
    if as_json:
        return _json(dataclasses.asdict(result) | {"exit_code": result.exit_code})
    text = f"{result.total} cells: {result.already} already there, {result.done} done"
    text += f", {result.failed} failed" if result.failed else ""
    _say(text)
    for reason in list(dict.fromkeys(result.reasons))[:5]:
        _say(f"  failed: {reason}")
    if result.interrupted:
        _say("interrupted; the same command continues from here")
    else:
        option = "" if store == DEFAULT_STORE else f" --store {store}"
        _say(f"see: calibrant board {suite}{option}   or: calibrant report {suite}{option}")


def exchanged(counts: Mapping[str, int | str], as_json: bool) -> None:
    if as_json:
        return _json(dict(counts))
    _say(", ".join(f"{what} {value}" for what, value in counts.items()))


def studies(
    found: Sequence[Summary], adopted: Mapping[str, Any] | None, file: Path, as_json: bool, interrupted: bool
) -> None:
    if as_json:
        kept = None if adopted is None else {name: str(one) if name == "date" else one for name, one in adopted.items()}
        return _json({"studies": [one.as_dict() for one in found], "adopted": kept, "interrupted": interrupted})
    from calibrant.tune.show import render

    _say("\n\n".join(render(one) for one in found))
    if adopted is not None:
        _say(f"wrote {file}: {found[0].study.agent} on {found[0].study.suite} is {adopted['spec']}")
    if interrupted:
        _say("interrupted; the same command continues from here")


def board(made: Board, format: str, out: Path | None) -> None:
    from calibrant.report.files import write_whole
    from calibrant.report.table import console_table, render

    if format == "table" and out is None and sys.stdout.isatty():
        from rich.console import Console

        console = Console()
        console.print(console_table(made, console.width))
        return
    if format == "parquet" and out is None:
        raise CalibrantError("parquet is not text: say where to write it with --out FILE")
    rendered = render(made, format)
    if out is None:
        _say(str(rendered).rstrip("\n"))
        return
    write_whole(out, rendered if isinstance(rendered, bytes) else rendered.encode())
    _say(f"wrote {out}")


def correlation(found: Comparison | Series | Matrix, out: Path | None, as_json: bool) -> None:
    from calibrant.report.correlation_view import plain
    from calibrant.report.figure import write_figure

    if out is not None:
        write_figure(out, found)
    if as_json:
        return _json(found.to_json() | ({"path": str(out)} if out else {}))
    _say(plain(found))
    if out is not None:
        _say(f"wrote {out}")


def receipt(made: Receipt, ran: Outcome, path: Path, as_json: bool) -> None:
    if as_json:
        return _json(made.to_json() | {"path": str(path), "ran": dataclasses.asdict(ran)})
    from calibrant.papers.writing import plain

    _say(plain(made))
    for reason in list(dict.fromkeys(ran.reasons))[:5]:
        _say(f"  failed: {reason}")
    _say(f"wrote {path}")


def scores(found: Mapping[str, Scores], as_json: bool) -> None:
    if as_json:
        return _json(
            {name: {k: v for k, v in dataclasses.asdict(one).items() if k != "items"} for name, one in found.items()}
        )
    _say(f"{'metric':26s} {'mean':>10s} {'std. error':>11s} {'MC bias':>9s} {'MC error':>9s} {'items':>7s}")
    for name, one in found.items():
        _say(f"{name:26s} {one.mean:10.5f} {one.se:11.5f} {one.mc_bias:9.5f} {one.mc_se:9.5f} {one.n:7d}")


def findings(found: Sequence[Finding], as_json: bool) -> None:
    if as_json:
        return _json([dataclasses.asdict(finding) for finding in found])
    for finding in found:
        _say(f"{'ok   ' if finding.ok else 'WRONG'}  {finding.name}: {finding.message}")
    wrong = sum(not finding.ok for finding in found)
    _say(f"{wrong} of {len(found)} checks failed" if wrong else f"all {len(found)} checks passed")


def listing(entries: Sequence[Entry], as_json: bool) -> None:
    if as_json:
        return _json([dataclasses.asdict(entry) for entry in entries])
    wide = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        _say(f"{entry.name:{wide}s}  {entry.summary}")
        for name, meaning in entry.parameters.items():
            _say(f"{'':{wide}s}    {name}={meaning}")


def written(path: Path, as_json: bool) -> None:
    if as_json:
        return _json({"path": str(path), "bytes": path.stat().st_size})
    _say(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")


def _json(value: Any) -> None:
    _say(jsonlib.dumps(value, indent=2, allow_nan=False))


def _say(text: str) -> None:
    """A reader that has seen enough, as in `| head`, is no failure."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
