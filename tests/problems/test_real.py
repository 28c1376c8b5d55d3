"""Real data as problems: splits, labels and dyads, on iris and on small files in MNIST's true format."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from calibrant import metrics, registry
from calibrant.data import catalogue, sources
from calibrant.data.cards import Card, Expected, File, Remote
from calibrant.data.load import load
from calibrant.data.verify import digest
from calibrant.problems.real import Real, distinct
from calibrant.seeds import Stream
from calibrant.types import Answers, CalibrantError, Instance

NAMES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
         "t10k-labels-idx1-ubyte.gz")  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, and no network."""
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    for place in ("downloaded", "fetched"):
        monkeypatch.setattr(sources, place, lambda *_: pytest.fail("the network was asked"))
    return tmp_path


@pytest.fixture
def digits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """40 + 20 pictures in MNIST's own format under a card of their own; the first pixel numbers them."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, rows, first in (("train", 40, 0), ("test", 20, 100)):
        arrays[f"{split}_x"] = rng.integers(0, 256, (rows, 28, 28), np.uint8)
        arrays[f"{split}_x"][:, 0, 0] = first + np.arange(rows)
        arrays[f"{split}_y"] = (np.arange(rows) % 10).astype(np.uint8)
    (folder / "mnist").mkdir()
    files = []
    for name, array in zip(NAMES, arrays.values(), strict=True):
        raw = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()
        (folder / "mnist" / name).write_bytes(gzip.compress(raw, mtime=0))
        files.append(File(name, "", 0))
    expected = tuple(
        Expected(name, array.shape, "uint8", digest(array), (len(array) // 10,) * 10 if name.endswith("y") else ())
        for name, array in arrays.items()
    )
    origin = Remote("http://127.0.0.1:1/", tuple(files), "four_idx")
    small = Card("mnist", "Digits", "image", 10, 40, 20, expected, (origin,), "nobody", "none")
    monkeypatch.setitem(catalogue.CATALOGUE, "mnist", small)
    return arrays


def drawn(spec: str, seed: int = 0) -> Instance:
    found: Instance = registry.resolve("problems", spec).sample(seed)
    return found


# --- specs --------------------------------------------------------------------------------------


def test_full_is_a_number() -> None:
    assert registry.canonical("problems", "real?data=mnist&train=full") == "real?data=mnist&train=60000"
    assert registry.canonical("problems", "real?data=iris&train=full") == "real?train=120"
    assert Real("mnist", "full") == Real("mnist", 60_000)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("real?train=121", "train=121 is more than the 120 training rows of iris"),
        ("real?data=irises", "'iris', 'wine_quality'"),
        ("real?train=all", "train=all"),
        ("real?kappa=31", "kappa=31 is more than the 30 test rows"),
        ("real?normalise=none", "'feature' or 'paper'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(spec: str, said: str) -> None:
    with pytest.raises(CalibrantError, match=said.replace("?", r"\?")):
        registry.resolve("problems", spec)


def test_a_dataset_that_is_not_here_names_its_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "installed", lambda _: None)
    for act in (Real("cifar10").require, lambda: Real("cifar10").sample(0)):
        with pytest.raises(CalibrantError, match=r"^run `calibrant data get cifar10` first: "):
            act()
    assert not list(folder.rglob("*.npy"))


# --- splits -------------------------------------------------------------------------------------


def test_tables_are_divided_anew_by_every_seed(folder: Path) -> None:
    """Every flower once, 120 + 30, with its own label; every seed has a split of its own."""
    whole = load("iris")
    flowers = [np.concatenate([whole.train_x, whole.test_x]), np.concatenate([whole.train_y, whole.test_y])]
    problem, tests = Real("iris", "full"), []
    for seed in (0, 1):
        train_x, train_y, test_x, test_y = problem.rows(seed)
        assert len(train_x) == 120 and len(test_x) == 30
        drawn = [np.concatenate([train_x, test_x]), np.concatenate([train_y, test_y])]
        assert sorted(np.column_stack(drawn).tolist()) == sorted(np.column_stack(flowers).tolist())
        tests.append(sorted(test_x.tolist()))
        found = problem.sample(seed)
        np.testing.assert_allclose(found.train.x, (train_x - train_x.mean(0)) / train_x.std(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.question.x, (test_x - train_x.mean(0)) / train_x.std(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(found.truth.labels, test_y)
    assert tests[0] != tests[1]


def test_fewer_rows_are_told_by_their_own_statistics(folder: Path) -> None:
    train_x, _, test_x, _ = Real("iris", 10).rows(3)
    found = drawn("real", 3)
    assert train_x.shape == (10, 4)
    np.testing.assert_allclose(found.question.x, (test_x - train_x.mean(0)) / train_x.std(0), rtol=1e-4, atol=1e-5)


def test_official_splits_stay_apart(digits: dict[str, Any]) -> None:
    """Training rows come from the training part, asked rows from the test part, each at most once."""
    problem = Real("mnist", 15, test=12)
    for seed in range(3):
        train_x, train_y, test_x, test_y = problem.rows(seed)
        for x, y, split, first in ((train_x, train_y, "train", 0), (test_x, test_y, "test", 100)):
            rows = x[:, 0, 0].astype(int) - first  # the first pixel numbers the pictures
            assert len(set(rows)) == len(rows) == {"train": 15, "test": 12}[split]
            np.testing.assert_array_equal(x, digits[f"{split}_x"][rows])
            np.testing.assert_array_equal(y, digits[f"{split}_y"][rows])


def test_seeds_are_reproducible_and_differ(digits: dict[str, Any]) -> None:
    spec = "real?data=mnist&train=10&test=8"
    first, again, other = drawn(spec), drawn(spec), drawn(spec, 1)
    np.testing.assert_array_equal(first.train.x, again.train.x)
    np.testing.assert_array_equal(first.question.tuples[0].anchors, again.question.tuples[0].anchors)
    assert not np.array_equal(first.train.y, other.train.y) or not np.array_equal(first.train.x, other.train.x)
    assert not np.array_equal(first.question.tuples[0].repeats, other.question.tuples[0].repeats)


def test_the_draw_is_the_same_everywhere(folder: Path) -> None:
    """Golden: a change here changes every number on real data and must raise `Real.version`."""
    found = drawn("real")
    assert found.train.y.tolist() == [1, 2, 2, 0, 2, 0, 0, 1, 2, 2]
    assert found.question.tuples[0].anchors[:3].tolist() == [[0, 4], [23, 29], [24, 16]]


# --- facts and question ---------------------------------------------------------------------------


def test_facts_and_question(digits: dict[str, Any]) -> None:
    found = drawn("real?data=mnist&train=full&test=15&tuples=50&tau=2x10&worlds=30")
    facts, question = found.facts, found.question
    assert (facts.inputs, facts.classes, facts.train_size, facts.temperature) == (784, 10, 40, 0.01)
    assert facts.hidden == (50, 50) and facts.law == "data" and facts.environment is None
    assert found.train.x.shape == (40, 784) and found.train.y.dtype == np.int32
    assert question.x.shape == (15, 784) and question.marginal.tolist() == [[i] for i in range(15)]
    assert question.worlds == 30 and found.truth.logp is None and found.environment is None
    assert [(family.name, family.tau) for family in question.tuples] == [("dyadic", 2), ("dyadic", 10)]
    for family in question.tuples:
        assert family.anchors.shape == (50, 2) and (family.repeats.sum(1) == family.tau).all()
        assert (family.anchors[:, 0] != family.anchors[:, 1]).all() and family.anchors.max() < 15


def test_anchors_are_uniform_over_pairs() -> None:
    """All 12 ordered pairs of 4 rows: chi-squared with 11 degrees of freedom, 1 in 10^4 false alarms (seed fixed)."""
    pairs = distinct(Stream("test", "pairs"), 12_000, 2, 4)
    counts = np.bincount(pairs[:, 0] * 4 + pairs[:, 1], minlength=16).reshape(4, 4)
    assert (np.diag(counts) == 0).all()
    seen = counts[~np.eye(4, dtype=bool)]
    assert ((seen - 1000) ** 2 / 1000).sum() < 37.4
    all_of_them = distinct(Stream("test", "all"), 50, 5, 5)
    assert (np.sort(all_of_them, axis=1) == np.arange(5)).all()


def test_observed_joint_nll_by_hand(folder: Path) -> None:
    """-log mean over worlds of p(y1|x1)^r1 p(y2|x2)^r2, and the NLL of mean probabilities, computed tuple by tuple."""
    found = drawn("real?train=20&tuples=40")
    rng = np.random.default_rng(1)
    logp = log_softmax(3 * rng.normal(size=(7, 30, 3)), axis=2)
    scores = metrics.score(Answers(logp, None, exact=True), found.question, found.truth)
    family, labels = found.question.tuples[0], found.truth.labels
    joint = [
        -logsumexp([sum(r * world[a, labels[a]] for a, r in zip(at, times, strict=True)) for world in logp])
        + np.log(len(logp))
        for at, times in zip(family.anchors, family.repeats, strict=True)
    ]
    single = [-np.log(np.exp(logp[:, row, labels[row]]).mean()) for row in range(30)]
    assert scores["joint_nll_tau10_dyadic"].mean == pytest.approx(np.mean(joint), rel=1e-6)
    assert scores["nll"].mean == pytest.approx(np.mean(single), rel=1e-6)
    right = np.exp(logp).mean(0).argmax(1) == labels
    assert scores["accuracy"].mean == pytest.approx(right.mean())
    assert not [name for name in scores if name.startswith("kl_")]


def test_a_missing_dataset_shares_no_program_with_others() -> None:
    kinds: list[Callable[[], Any]] = [Real("mnist").shape, Real("emnist_digits").shape, Real("mnist", 100).shape]
    mnist, letters, more = (shape() for shape in kinds)
    assert mnist != letters and mnist == more
