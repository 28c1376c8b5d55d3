"""The places that carry a dataset: the user's folder, packages, canonical addresses. Each gives bytes, or a reason.

Packages are fetched by the clients of this machine as they are configured (pip, npm, apt-get); which registry that
asks is none of our business. What arrives is compared with a pinned sha256 and read as an archive: wheels are never
installed, source distributions never built, scripts never run.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant.data.archives import BLOCK, LIMIT_BYTES, read_members, sha256_of
from calibrant.data.cards import Card, Derived, File, Package, Remote, bare
from calibrant.types import CalibrantError

CLIENT_SECONDS = 1800.0  # how long a package client may take
QUIET_SECONDS = 30.0  # how long an address may stay silent


@dataclass(frozen=True)
class Found:
    """The files of a dataset, and the reader that knows them."""

    reader: str
    blobs: tuple[bytes, ...]


def in_folder(card: Card, folder: Path) -> Found | None:
    """What the user has put there: an archive by its published name, the original files, or NAME.npz.

    Archives and NAME.npz may lie in the folder itself or in its subfolder of the dataset's name, original files only
    in the subfolder, because several datasets call them the same. Where no sha256 of the arrays is known, only an
    archive with the published sha256 is taken.
    """
    places = (folder / card.name, folder)
    for origin in card.origins:
        if isinstance(origin, Derived):
            continue
        for path in [place / origin.files[0].name for place in places if origin.files and origin.members]:
            if path.is_file():
                if not card.hashed:
                    _check_pinned(path, origin.files[0])
                return Found(origin.reader, read_members(path, origin.members))
        originals = [places[0] / bare(name) for name in origin.members or [file.name for file in origin.files]]
        if card.hashed and all(path.is_file() for path in originals):
            return Found(origin.reader, _read_files(originals))
    for path in [place / f"{card.name}.npz" for place in places if card.hashed]:
        if path.is_file():
            return Found("one_npz", _read_files([path]))
    return None


def installed(package: Package) -> Found | None:
    """The files of a package that is installed. It is located, not imported."""
    if package.client == "npm":
        return None
    if package.client == "apt":
        paths = [Path("/") / member for member in package.members]
    else:
        try:
            distribution = importlib.metadata.distribution(package.name)
        except importlib.metadata.PackageNotFoundError:
            return None
        paths = [Path(str(distribution.locate_file(member))) for member in package.members]
    return Found(package.reader, _read_files(paths)) if all(path.is_file() for path in paths) else None


def downloaded(package: Package, workspace: Path) -> Found:
    """The files of a package that its client fetches into the workspace, unless it is there already."""
    if package.archive is None:
        raise CalibrantError("not installed")
    path = workspace / package.archive.name
    if not path.is_file():
        _run(command(package), workspace)
    _check_pinned(path, package.archive)
    return Found(package.reader, read_members(path, package.members))


def fetched(remote: Remote, workspace: Path) -> Found:
    """The files at an address."""
    paths = [_fetch(remote.url + file.name, file, workspace) for file in remote.files]
    if remote.members:
        return Found(remote.reader, read_members(paths[0], remote.members))
    return Found(remote.reader, _read_files(paths))


def command(package: Package) -> list[str]:
    """What is run, in the folder that the archive is to land in."""
    if package.client == "npm":
        name = f"{package.name}@{package.version}"
        return [_program("npm"), "pack", name, "--ignore-scripts", "--loglevel=error", "--pack-destination=."]
    if package.client == "apt":
        return [_program("apt-get"), "download", "-q", f"{package.name}={package.version}"]
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else [_program("pip", "pip3")]
    plain = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    return [*pip, "download", *plain, "--dest", ".", f"{package.name}=={package.version}"]


# --- parts --------------------------------------------------------------------------------------


def _program(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    raise CalibrantError(f"{names[0]} is not on this machine")


def _run(words: Sequence[str], workspace: Path) -> None:
    try:
        done = subprocess.run(
            words, cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, timeout=CLIENT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CalibrantError(f"{Path(words[0]).name} did not run: {error}") from error
    if done.returncode:
        said = [line.strip() for line in done.stderr.decode(errors="replace").splitlines()]
        complaint = next((line for line in said if "error" in line.lower() or line.startswith("E:")), "")
        raise CalibrantError(f"{Path(words[0]).name} could not fetch it ({complaint[:160] or 'it did not say why'})")


def _fetch(url: str, file: File, workspace: Path) -> Path:
    """A file of known size and sha256; a longer answer is cut off, a wrong one removed."""
    path = workspace / f"{file.sha256[:16]}-{file.name}"
    if path.is_file():
        return path
    beside = path.with_suffix(".part")
    asked = urllib.request.Request(url, headers={"User-Agent": "calibrant"})
    seen, size = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(asked, timeout=QUIET_SECONDS) as answer, beside.open("wb") as stream:
            while (block := answer.read(BLOCK)) and size <= file.bytes:
                stream.write(block)
                seen.update(block)
                size += len(block)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise CalibrantError(f"could not be reached ({reason})") from error
    if seen.hexdigest() != file.sha256:
        beside.unlink()
        raise CalibrantError(f"'{file.name}' is not the published file: its size or sha256 differs")
    return beside.replace(path)


def _check_pinned(path: Path, file: File) -> None:
    if not path.is_file():
        raise CalibrantError(f"it brought no '{file.name}'")
    if path.stat().st_size != file.bytes or sha256_of(path) != file.sha256:
        raise CalibrantError(f"'{path.name}' is not the published file: its size or sha256 differs")


def _read_files(paths: Sequence[Path]) -> tuple[bytes, ...]:
    try:
        if sum(path.stat().st_size for path in paths) > LIMIT_BYTES:
            raise CalibrantError(f"'{paths[0].parent}' holds more than {LIMIT_BYTES} bytes of this dataset")
        return tuple(path.read_bytes() for path in paths)
    except OSError as error:
        raise CalibrantError(f"'{paths[0].parent}' cannot be read: {error.strerror or error}") from error
