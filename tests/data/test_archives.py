"""Archives are read, not unpacked: only the named members, only in memory, only up to a limit."""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from calibrant.data import archives
from calibrant.data.archives import read_members, sha256_of
from calibrant.types import CalibrantError

FILES = {"package/a.bin": b"first", "package/b.bin": b"second", "../../escaped": b"evil", "/absolute": b"evil"}


def as_zip(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def as_tar(files: Mapping[str, bytes], mode: str = "w:gz", prefix: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            entry = tarfile.TarInfo(prefix + name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def as_deb(files: Mapping[str, bytes]) -> bytes:
    """`ar` members are padded to an even length; the control part here is odd."""
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": lzma.compress(b"x") + b"!"}
    if len(parts["control.tar.xz"]) % 2 == 0:
        parts["control.tar.xz"] += b"!"
    parts["data.tar.xz"] = as_tar(files, "w:xz", prefix="./")
    made = b"!<arch>\n"
    for name, content in parts.items():
        made += f"{name:16s}{0:<12d}{0:<6d}{0:<6d}{'100644':8s}{len(content):<10d}`\n".encode()
        made += content + b"\n" * (len(content) % 2)
    return made


KINDS: dict[str, Callable[[Mapping[str, bytes]], bytes]] = {"a.whl": as_zip, "a.tgz": as_tar, "a.deb": as_deb}


@pytest.fixture(params=list(KINDS))
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "in" / str(request.param)
    path.parent.mkdir()
    path.write_bytes(KINDS[request.param](FILES))
    return path


def test_members_come_in_the_order_asked(archive: Path) -> None:
    assert read_members(archive, ["package/b.bin", "package/a.bin"]) == (b"second", b"first")


def test_nothing_is_written_and_climbing_names_are_refused(archive: Path, tmp_path: Path) -> None:
    read_members(archive, ["package/a.bin"])
    for name in ("../../escaped", "/absolute", "package/../../escaped", "..\\escaped"):
        with pytest.raises(CalibrantError, match="no path inside an archive"):
            read_members(archive, [name])
    assert sorted(tmp_path.rglob("*")) == [archive.parent, archive]


def test_a_missing_member_is_named(archive: Path) -> None:
    with pytest.raises(CalibrantError, match=r"holds no 'package/c.bin'"):
        read_members(archive, ["package/a.bin", "package/c.bin"])


def test_members_beyond_the_limit_are_refused(archive: Path) -> None:
    assert read_members(archive, ["package/a.bin", "package/b.bin"], limit=11) == (b"first", b"second")
    with pytest.raises(CalibrantError, match="at most 10"):
        read_members(archive, ["package/a.bin", "package/b.bin"], limit=10)


def test_a_cut_archive_is_refused(archive: Path) -> None:
    whole = archive.read_bytes()
    for cut in (0, 5, 70, len(whole) // 2):
        archive.write_bytes(whole[:cut])
        with pytest.raises(CalibrantError, match=archive.name):
            read_members(archive, ["package/b.bin"])


def test_links_are_not_followed(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for kind, name in ((tarfile.SYMTYPE, "soft"), (tarfile.LNKTYPE, "hard")):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            tar.addfile(entry)
    path = tmp_path / "a.tgz"
    path.write_bytes(stream.getvalue())
    for name in ("soft", "hard"):
        with pytest.raises(CalibrantError, match="not a plain file"):
            read_members(path, [name])


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for content in (b"one", b"two"):
            entry = tarfile.TarInfo("a.bin")
            entry.size = 3
            tar.addfile(entry, io.BytesIO(content))
    path = tmp_path / "a.tgz"
    path.write_bytes(stream.getvalue())
    with pytest.raises(CalibrantError, match="twice"):
        read_members(path, ["a.bin"])


def test_a_tar_is_not_searched_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "PASSED_BYTES", 100_000)
    path = tmp_path / "a.tgz"
    path.write_bytes(as_tar({"zeros": bytes(200_000), "a.bin": b"late"}))
    with pytest.raises(CalibrantError, match="at most 100000"):
        read_members(path, ["a.bin"])


def test_other_files_are_no_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"something else")
    with pytest.raises(CalibrantError, match=r"no zip, tar.gz or deb"):
        read_members(path, ["a"])


def test_sha256(tmp_path: Path) -> None:
    path = tmp_path / "abc"
    path.write_bytes(b"abc")
    assert sha256_of(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
