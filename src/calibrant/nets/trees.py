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
    """Register a frozen dataclass: fields made by `static` are part of the program, the others are its data.

    The class itself is part of the structure. `jax.tree_util.register_dataclass` leaves it out of the comparison of
    structures (jax 0.10): a subclass with the same fields then equals its parent, and about once in a hundred
    processes `jax.jit` answers a call with one by the program of the other.
    """
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    meta = [field.name for field in fields if field.metadata.get("static")]
    data = [field.name for field in fields if field.name not in meta]
    keys = [jax.tree_util.GetAttrKey(name) for name in data]

    def program(one: T) -> tuple[Any, ...]:
        return (cls, *(getattr(one, name) for name in meta))

    def flatten(one: T) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(one, name) for name in data), program(one)

    def flatten_with_keys(one: T) -> tuple[tuple[tuple[Any, Any], ...], tuple[Any, ...]]:
        return tuple((key, getattr(one, name)) for key, name in zip(keys, data, strict=True)), program(one)

    def unflatten(aux: tuple[Any, ...], leaves: Any) -> T:
        return cls(**dict(zip(data, leaves, strict=True)), **dict(zip(meta, aux[1:], strict=True)))

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls
