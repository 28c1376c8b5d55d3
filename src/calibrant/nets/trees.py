"""Frozen dataclasses as JAX trees: which fields are numbers that may be traced, which are fixed by compilation."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import jax

T = TypeVar("T")
STATIC = {"static": True}


def static(default: Any = dataclasses.MISSING) -> Any:
    """A dataclass field that shapes the compiled program: a size, a word, a function."""
    return dataclasses.field(default=default, metadata=STATIC)


def tree(cls: type[T]) -> type[T]:
    """Register a frozen dataclass: fields made by `static` are part of the program, the others are its data."""
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    meta = [field.name for field in fields if field.metadata.get("static")]
    data = [field.name for field in fields if field.name not in meta]
    return jax.tree_util.register_dataclass(cls, data_fields=data, meta_fields=meta)
