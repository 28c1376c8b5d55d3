"""Bringing a dataset here: the order of places, what is wrong with each in one sentence, and never a substitute."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant.data import catalogue, sources
from calibrant.data.cards import Card, Derived, Expected, File, Package, Remote
from calibrant.data.get import get
from calibrant.data.noise import shot_noise
from calibrant.data.store import open_arrays
from calibrant.data.verify import digest
from calibrant.types import CalibrantError

X, Y = np.array([[1, 2], [3, 4]], np.int16), np.array([0, 1], np.uint8)
TEXT = b"1 2 1\n3 4 2\n"
PIN = File("toy-1.0.whl", hashlib.sha256(b"").hexdigest(), 0)
PACKAGE = Package("npm", "toy-data", "1.0", PIN, ("toy/toy.txt",), "german_table")
REMOTE = Remote("http://127.0.0.1:1/", (File("toy.txt", hashlib.sha256(TEXT).hexdigest(), len(TEXT)),), "german_table")
CARD = Card(
    "toy", "Toy", "structured", 2, 1, 1,
    (Expected("x", (2, 2), "int16", digest(X)), Expected("y", (2,), "uint8", digest(Y), (1, 1))),
    (PACKAGE, REMOTE), "nobody", "none",
)  # fmt: skip


class Asked(list[str]):
    """Puts stand-ins in place of packages and addresses, and notes the order in which they are asked."""

    def __init__(self, patch: pytest.MonkeyPatch, **answers: bytes) -> None:
        for place in ("installed", "downloaded", "fetched"):
            patch.setattr(sources, place, self._answer(place, answers.get(place)))

    def _answer(self, place: str, blob: bytes | None) -> Any:
        def answer(origin: Any, workspace: Path | None = None) -> sources.Found | None:
            self.append(place)
            if blob is None and place != "installed":
                raise CalibrantError("is away")
            return None if blob is None else sources.Found("german_table", (blob,))

        return answer


def check_kept(folder: Path) -> None:
    arrays = open_arrays(CARD, folder)
    assert arrays is not None
    np.testing.assert_array_equal(arrays["x"], X)


# --- order --------------------------------------------------------------------------------------


def test_the_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, downloaded=TEXT)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.txt").write_bytes(TEXT)
    assert get(CARD, tmp_path).source == f"the folder '{tmp_path}'"
    assert asked == []
    check_kept(tmp_path)


def test_then_installed_packages_then_downloaded_ones_then_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        asked = Asked(patch, installed=TEXT, downloaded=TEXT, fetched=TEXT)
        assert get(CARD, tmp_path / "a").source == "the npm package toy-data 1.0" and asked == ["installed"]
    with monkeypatch.context() as patch:
        asked = Asked(patch, downloaded=TEXT, fetched=TEXT)
        get(CARD, tmp_path / "b")
        assert asked == ["installed", "downloaded"]
    with monkeypatch.context() as patch:
        asked = Asked(patch, fetched=TEXT)
        assert get(CARD, tmp_path / "c").source == "http://127.0.0.1:1/toy.txt"
        assert asked == ["installed", "downloaded", "fetched"]
    for name in "abc":
        check_kept(tmp_path / name)


def test_what_is_kept_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, downloaded=TEXT)
    first = get(CARD, tmp_path)
    assert get(CARD, tmp_path) == first and asked == ["installed", "downloaded"]


def test_what_is_damaged_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Asked(monkeypatch, downloaded=TEXT)
    get(CARD, tmp_path)
    (tmp_path / "toy" / "x.npy").write_bytes(b"")
    said: list[str] = []
    get(CARD, tmp_path, say=said.append)
    check_kept(tmp_path)
    assert "is damaged" in said[0]


def test_a_wrong_package_gives_way_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, downloaded=b"9 9 1\n3 4 2\n", fetched=TEXT)
    assert get(CARD, tmp_path).source == "http://127.0.0.1:1/toy.txt"
    assert asked == ["installed", "downloaded", "fetched"]


# --- failing closed -----------------------------------------------------------------------------


def test_one_sentence_names_all_that_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Asked(monkeypatch, downloaded=b"9 9 1\n3 4 2\n")
    with pytest.raises(CalibrantError) as failed:
        get(CARD, tmp_path)
    sentence = str(failed.value)
    assert "\n" not in sentence
    for part in (f"the folder '{tmp_path}' has nothing", "the npm package toy-data 1.0: 'x' has sha256",
                 "http://127.0.0.1:1/toy.txt: is away"):  # fmt: skip
        assert part in sentence
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("content", "complaint"), [
    (b"1 2 1\n3 5 2\n", "sha256"), (b"1 2 1\n3 4 1\n", "label counts"), (b"1 2 1\n", "shape"), (b"junk", "numbers"),
])  # fmt: skip
def test_wrong_files_in_the_users_folder_are_said_to_be_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, complaint: str
) -> None:
    """They were put there on purpose, so no other place is asked instead."""
    asked = Asked(monkeypatch, downloaded=TEXT)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.txt").write_bytes(content)
    with pytest.raises(CalibrantError, match=f"holds of 'toy' is wrong: .*{complaint}"):
        get(CARD, tmp_path)
    assert asked == [] and open_arrays(CARD, tmp_path) is None


def test_offline_asks_only_what_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        asked = Asked(patch, downloaded=TEXT, fetched=TEXT)
        with pytest.raises(CalibrantError, match=r"not asked while offline; `calibrant data get toy` asks them"):
            get(CARD, tmp_path, offline=True)
        assert asked == ["installed"]
    Asked(monkeypatch, installed=TEXT)
    get(CARD, tmp_path, offline=True)
    check_kept(tmp_path)


def test_an_unreachable_address_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(CalibrantError, match="could not be reached"):
        get(dataclasses.replace(CARD, origins=(REMOTE,)), tmp_path)


# --- EMNIST, CMATERdb and derived data, in the true format --------------------------------------


def idx_gz(array: Any) -> bytes:
    return gzip.compress(struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes())


def test_emnist_from_its_archive(tmp_path: Path) -> None:
    """gzip.zip with idx.gz members of other parts beside ours; no array hash is known, so the archive's is needed."""
    rng = np.random.default_rng(0)
    arrays = {
        "train-images-idx3": rng.integers(0, 256, (52, 28, 28), np.uint8),
        "train-labels-idx1": np.arange(1, 27, dtype=np.uint8).repeat(2),
        "test-images-idx3": rng.integers(0, 256, (26, 28, 28), np.uint8),
        "test-labels-idx1": np.arange(1, 27, dtype=np.uint8),
    }
    path = tmp_path / "gzip.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gzip/emnist-letters-mapping.txt", "1 65 97\n")
        archive.writestr("gzip/emnist-digits-train-labels-idx1-ubyte.gz", b"another part")
        for name, array in arrays.items():
            archive.writestr(f"gzip/emnist-letters-{name}-ubyte.gz", idx_gz(array))
    true = catalogue.card("emnist_letters")
    remote = true.origins[0]
    assert isinstance(remote, Remote)
    content = path.read_bytes()
    small = dataclasses.replace(
        true,
        arrays=(
            Expected("train_x", (52, 28, 28), "uint8", None),
            Expected("train_y", (52,), "uint8", None, (0, *(2,) * 26, *(0,) * 10)),
            Expected("test_x", (26, 28, 28), "uint8", None),
            Expected("test_y", (26,), "uint8", None, (0, *(1,) * 26, *(0,) * 10)),
        ),
        origins=(dataclasses.replace(
            remote, files=(File("gzip.zip", hashlib.sha256(content).hexdigest(), len(content)),)),),
    )  # fmt: skip
    get(small, tmp_path, offline=True)
    kept = open_arrays(small, tmp_path)
    assert kept is not None
    for name, array in zip(("train_x", "train_y", "test_x", "test_y"), arrays.values(), strict=True):
        np.testing.assert_array_equal(kept[name], array)
    with pytest.raises(CalibrantError, match=r"'gzip.zip' is not the published file"):
        get(true, tmp_path, offline=True)  # ours is not the archive that NIST published


def test_cmaterdb_from_its_two_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (20, 32, 32, 3), np.uint8), np.arange(10).repeat(2)
    place = tmp_path / "cmaterdb"
    place.mkdir()
    np.savez_compressed(place / "training-images.npz", images=images, labels=labels)
    np.savez_compressed(place / "testing-images.npz", images=images[::2], labels=labels[::2])
    small = dataclasses.replace(catalogue.card("cmaterdb"), arrays=(
        Expected("train_x", (20, 32, 32, 3), "uint8", digest(images)),
        Expected("train_y", (20,), "uint8", digest(labels.astype(np.uint8)), (2,) * 10),
        Expected("test_x", (10, 32, 32, 3), "uint8", digest(images[::2])),
        Expected("test_y", (10,), "uint8", digest(labels[::2].astype(np.uint8)), (1,) * 10),
    ))  # fmt: skip
    get(small, tmp_path, offline=True)
    kept = open_arrays(small, tmp_path)
    assert kept is not None
    np.testing.assert_array_equal(kept["train_x"], images)
    with pytest.raises(CalibrantError, match=r"cmaterdb.* is wrong: 'train_x' has shape \[20, 32, 32, 3\]"):
        get("cmaterdb", tmp_path, offline=True)


def test_noise_is_made_of_its_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "train_x": rng.integers(0, 256, (6, 28, 28), np.uint8),
        "train_y": np.array([0, 1] * 3, np.uint8),
        "test_x": rng.integers(0, 256, (2, 28, 28), np.uint8),
        "test_y": np.array([0, 1], np.uint8),
    }
    noisy = {
        name: shot_noise(array, "data", "noisy", name[:-2]) if name.endswith("x") else array
        for name, array in arrays.items()
    }

    def described(name: str, of: dict[str, Any], origin: Any) -> Card:
        counts = {"train_y": (3, 3), "test_y": (1, 1)}
        expected = tuple(Expected(k, a.shape, "uint8", digest(a), counts.get(k, ())) for k, a in of.items())
        return Card(name, name, "image", 2, 6, 2, expected, (origin,), "nobody", "none")

    clean, derived = described("clean", arrays, PACKAGE), described("noisy", noisy, Derived("clean"))
    monkeypatch.setitem(catalogue.CATALOGUE, "clean", clean)
    with pytest.raises(CalibrantError, match=r"'noisy' could not be obtained: .*noise on clean: 'clean' could not be"):
        get(derived, tmp_path, offline=True)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    (tmp_path / "clean.npz").write_bytes(stream.getvalue())
    assert get(derived, tmp_path, offline=True).source == "noise on clean"
    kept = open_arrays(derived, tmp_path)
    assert kept is not None and open_arrays(clean, tmp_path) is not None
    np.testing.assert_array_equal(kept["train_x"], noisy["train_x"])
    assert (kept["train_x"] != arrays["train_x"]).any()
