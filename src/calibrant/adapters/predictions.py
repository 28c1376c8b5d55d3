"""Saved predictions: score a model that is not here, from one `.npz` file.

| array | shape | meaning |
|---|---|---|
| `logits`, or `logp`, or `probs` | [worlds, items, classes] | what every world says about every item |
| `labels` | [items] integers | what was observed |
| `weights` | [worlds], optional | probabilities of the worlds; equal when absent |
| `truth` | [items, classes], optional | true probabilities, where they are known; scores are then KL instead of NLL |
| `tuples` | [n, tau] integers, optional | the items that are asked together, as row numbers |

A point prediction is one world. Several worlds are taken for draws from a larger belief, and the Monte-Carlo error of
that is estimated, unless `weights` are given: these make them the whole belief. Save equal weights to say so of an
ensemble.

Without `tuples`, items are shuffled by a fixed seed and split into disjoint i.i.d. tuples of order 10 and into disjoint
pairs, each asked 10 times in all (dyadic), wherever that gives at least two tuples. The same number of items always
gives the same tuples.

Numbers have to be finite. A probability that was saved as 0 cannot be told from one that underflowed, and is read as
the smallest normal single-precision number, 1.2e-38. Pickled objects are never read.
"""

from __future__ import annotations

import dataclasses
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.special import log_softmax

from calibrant import registry
from calibrant.adapters.answers import check_weights
from calibrant.problems.tuples import iid_tuples, polyadic_tuples
from calibrant.seeds import Stream
from calibrant.types import Answers, Array, CalibrantError, Question, Truth, Tuples

ANSWERS = ("logits", "logp", "probs")
KNOWN = (*ANSWERS, "labels", "weights", "truth", "tuples")
TAU = 10  # the order of the tuples that are formed when none are given
CLOSE = 1e-3  # how far probabilities may sum from 1: half precision is good enough
LIMIT_BYTES = 8 * 2**30  # more is refused before anything is unpacked
TINY = float(np.finfo(np.float32).tiny)


def load_predictions(path: str | Path) -> tuple[Answers, Question, Truth]:
    """Read and check a file of predictions; every defect is one sentence."""
    return read_predictions(_load(Path(path)))


def read_predictions(arrays: Mapping[str, Any]) -> tuple[Answers, Question, Truth]:
    """The same for arrays in memory.

    >>> answers, question, truth = read_predictions({"probs": np.full((1, 20, 2), 0.5), "labels": np.zeros(20, int)})
    >>> answers.exact, [(family.name, family.tau, len(family.anchors)) for family in question.tuples]
    (True, [('', 10, 2), ('dyadic', 10, 10)])
    """
    name = _answers_name(arrays)
    logp = _log_probabilities(name, _real(name, arrays[name], "worlds, items, classes"))
    worlds, items, classes = logp.shape
    labels = _labels(arrays, items, classes)
    weights = check_weights(arrays.get("weights"), worlds)
    tuples = _given_tuples(arrays["tuples"], items) if "tuples" in arrays else _formed_tuples(items)
    question = Question(np.empty((items, 0), np.float32), tuples, np.arange(items)[:, None], worlds)
    truth = Truth(labels, _truth(arrays["truth"], items, classes) if "truth" in arrays else None)
    return Answers(logp, weights, exact=worlds == 1 or weights is not None), question, truth


# --- the arrays ---------------------------------------------------------------------------------


def _answers_name(arrays: Mapping[str, Any]) -> str:
    for name in arrays:
        if name not in KNOWN:
            hint = registry.nearest(name, KNOWN)
            raise CalibrantError(f"unknown array '{name}'{hint}; predictions hold {', '.join(KNOWN)}")
    found = [name for name in ANSWERS if name in arrays]
    if len(found) != 1:
        held = f"holds {' and '.join(found)}" if found else f"holds none of {', '.join(ANSWERS)}"
        raise CalibrantError(f"the file {held}; expected exactly one of them, of shape [worlds, items, classes]")
    return found[0]


def _log_probabilities(name: str, values: Array) -> Array:
    """float32 log-probabilities [..., items, classes], made world by world to stay small."""
    if values.shape[-1] < 2:
        raise CalibrantError(f"'{name}' has {values.shape[-1]} class; expected at least 2 (binary: one column each)")
    logp = np.empty(values.shape, np.float32)
    for world, given in enumerate(values):
        row = given.astype(np.float64)
        if name != "logits":
            row = _normalised(name, row, f" of world {world}")
        logp[world] = log_softmax(row, axis=-1)
    return logp


def _normalised(name: str, row: Array, where: str) -> Array:
    """The log of probabilities, or of the exponentials of `logp`, after checking that they are probabilities."""
    p = np.exp(np.minimum(row, 1.0)) if name == "logp" else row
    if (p < 0).any():
        raise CalibrantError(f"'{name}'{where} holds negative probabilities")
    total = p.sum(axis=-1)
    wrong = np.flatnonzero(np.abs(total - 1) > CLOSE)
    if len(wrong):
        item = int(wrong[0])
        what = "probabilities" if name != "logp" else "exponentials"
        raise CalibrantError(f"the {what} in '{name}'{where} sum to {total[item]:.4g} at item {item}; expected 1")
    return row if name == "logp" else np.log(np.maximum(row, TINY))


def _labels(arrays: Mapping[str, Any], items: int, classes: int) -> Array:
    if "labels" not in arrays:
        raise CalibrantError("the file has no array 'labels'; expected the observed classes, integers of shape [items]")
    labels = _integers("labels", arrays["labels"], "items")
    if len(labels) != items:
        raise CalibrantError(f"'labels' has {len(labels)} items and the predictions have {items}; expected as many")
    _within("labels", labels, classes, "classes")
    return labels.astype(np.int32)


def _truth(given: Any, items: int, classes: int) -> Array:
    truth = _real("truth", given, "items, classes")
    if truth.shape != (items, classes):
        raise CalibrantError(
            f"'truth' has shape {list(truth.shape)}; expected [{items}, {classes}] like the predictions"
        )
    return log_softmax(_normalised("truth", truth.astype(np.float64), ""), axis=-1)


# --- tuples -------------------------------------------------------------------------------------


def _given_tuples(given: Any, items: int) -> tuple[Tuples, ...]:
    rows = _integers("tuples", given, "n, tau")
    _within("tuples", rows, items, "items")
    tau = rows.shape[1]
    if tau < 2:
        raise CalibrantError(
            "'tuples' has one column; expected [n, tau] with tau at least 2, as single items are judged anyway"
        )
    anchors = np.sort(rows.astype(np.int64), axis=1)
    first = np.diff(anchors, axis=1, prepend=-1) > 0  # an item asked twice is one anchor with two repeats
    repeats = sum((anchors == anchors[:, [place]]).astype(np.int64) for place in range(tau)) * first
    return (Tuples("given", tau, anchors, repeats),)


def _formed_tuples(items: int) -> tuple[Tuples, ...]:
    order = np.argsort(Stream("predictions", "order").uniform(items), kind="stable")
    families = [
        iid_tuples(items // TAU, TAU, TAU),
        polyadic_tuples(Stream("predictions", "places"), items // 2, TAU, 2),
    ]
    enough = [family for family in families if len(family.anchors) >= 2]
    return tuple(dataclasses.replace(family, anchors=order[family.anchors]) for family in enough)


# --- checks -------------------------------------------------------------------------------------


def _real(name: str, given: Any, axes: str) -> Array:
    array = _ranked(name, given, axes)
    if array.dtype.kind not in "fiu":
        raise CalibrantError(f"'{name}' holds {array.dtype}; expected real numbers")
    if not np.isfinite(array).all():
        what = "NaN" if np.isnan(array).any() else "infinite numbers"
        raise CalibrantError(f"'{name}' holds {what}; expected finite numbers")
    return array


def _integers(name: str, given: Any, axes: str) -> Array:
    array = _ranked(name, given, axes)
    if array.dtype.kind not in "iu":
        raise CalibrantError(f"'{name}' holds {array.dtype}; expected integers of shape [{axes}]")
    return array


def _ranked(name: str, given: Any, axes: str) -> Array:
    array = np.asarray(given)
    if array.ndim != axes.count(",") + 1:
        raise CalibrantError(f"'{name}' has shape {list(array.shape)}; expected [{axes}]")
    if not array.size:
        raise CalibrantError(f"'{name}' is empty: its shape is {list(array.shape)}; expected [{axes}]")
    return array


def _within(name: str, array: Array, size: int, what: str) -> None:
    if array.min() < 0 or array.max() >= size:
        low, high = array.min(), array.max()
        raise CalibrantError(
            f"'{name}' runs from {low} to {high}; expected 0 to {size - 1}, as there are {size} {what}"
        )


# --- the file -----------------------------------------------------------------------------------


def _load(path: Path) -> dict[str, Array]:
    """Every array of an archive; sizes are compared with what the headers announce before memory is taken."""
    if not path.is_file():
        raise CalibrantError(f"no file '{path}'")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
            size = sum(entry.file_size for entry in entries)
            if size > LIMIT_BYTES:
                raise CalibrantError(f"'{path}' unpacks to {size / 2**30:.1f} GiB; expected at most 8 GiB")
            return {entry.filename.removesuffix(".npy"): _member(archive, entry, path) for entry in entries}
    except zipfile.BadZipFile as error:
        reason = "is damaged or cut short" if _starts_as_zip(path) else "is not an .npz archive"
        raise CalibrantError(f"'{path}' {reason}; expected a file written by numpy.savez") from error
    except (EOFError, OSError, ValueError, RuntimeError, NotImplementedError, zlib.error) as error:
        raise CalibrantError(f"'{path}' cannot be read as an .npz archive: {error}") from error


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> Array:
    with archive.open(entry) as stream:
        shape, dtype = _header(stream)
        if dtype.hasobject:
            raise CalibrantError(f"'{entry.filename}' in '{path}' holds pickled objects, which are never read")
        if stream.tell() + math.prod(shape) * dtype.itemsize != entry.file_size:
            raise CalibrantError(f"'{entry.filename}' in '{path}' is not as long as its header says: it is damaged")
    with archive.open(entry) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def _starts_as_zip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"PK\x03\x04"
