"""Dataclasses as trees: what is traced, what is fixed, and that a class is not taken for another."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import pytest

from calibrant import registry
from calibrant.nets.trees import static, tree


@tree
@dataclass(frozen=True)
class Parent:
    number: float = 1.0
    word: str = static("a")

    def value(self) -> float:
        return self.number


@tree
@dataclass(frozen=True)
class Child(Parent):
    def value(self) -> float:
        return -self.number


def test_numbers_are_leaves_and_words_are_structure() -> None:
    assert jax.tree.leaves(Parent(3.0, "b")) == [3.0]
    assert jax.tree.structure(Parent(3.0)) == jax.tree.structure(Parent(4.0))
    assert jax.tree.structure(Parent(word="a")) != jax.tree.structure(Parent(word="b"))
    assert jax.tree.map(lambda leaf: leaf + 1, Parent(3.0, "b")) == Parent(4.0, "b")
    ((path, leaf),) = jax.tree_util.tree_leaves_with_path(Parent(3.0))
    assert (jax.tree_util.keystr(path), leaf) == (".number", 3.0)


def test_a_subclass_with_the_same_fields_is_another_structure() -> None:
    assert jax.tree.structure(Parent()) != jax.tree.structure(Child())
    ensemble = registry.resolve("agents", "ensemble+")
    tangent = replace(registry.resolve("agents", "ntk_ensemble+"), prior_scale=ensemble.prior_scale)
    assert jax.tree.structure(ensemble) != jax.tree.structure(tangent)


@pytest.mark.parametrize("transform", [jax.jit, lambda f: jax.jit(jax.vmap(f))], ids=["jit", "vmap"])
def test_programs_tell_them_apart(transform: object) -> None:
    program = transform(lambda one: one.value())  # type: ignore[operator]
    for number in (1.0, 2.0):
        many = jnp.full(3, number)
        assert (program(Parent(many)) == number).all() and (program(Child(many)) == -number).all()
