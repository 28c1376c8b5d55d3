"""The suite `real`: ten datasets, every size that they have, written in the one canonical way."""

from __future__ import annotations

from calibrant import registry
from calibrant.data.catalogue import CATALOGUE
from calibrant.suites.base import Suite

SUITE: Suite = registry.load("suites", "real")


def test_the_paper_preset_is_table_2_at_four_sizes() -> None:
    """Iris and the credit data have fewer than 1000 rows, so three sizes each: 38 settings."""
    built = [registry.resolve("problems", problem) for problem in SUITE.preset("paper").problems]
    assert len(built) == 38
    for name, card in CATALOGUE.items():
        sizes = [one.train for one in built if one.data == name]
        assert sizes == [size for size in (10, 100, 1000) if size < card.train] + [card.train]


def test_specs_are_canonical_and_quick_is_part_of_paper() -> None:
    for preset in SUITE.presets.values():
        assert len(set(preset.problems)) == len(preset.problems)
        for problem in preset.problems:
            assert registry.canonical("problems", problem) == problem
        for agent in preset.agents:
            assert registry.canonical("agents", agent) == agent
    assert set(SUITE.preset("quick").problems) <= set(SUITE.preset("paper").problems)
