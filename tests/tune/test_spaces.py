"""Spaces are read, printed and derived; every known grid fits its agent and holds what the paper tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrant import registry
from calibrant.tune.grids import SEARCHED
from calibrant.tune.spaces import (
    Choice,
    Range,
    derived,
    grid_points,
    known_space,
    parse_space,
    point_of,
    print_space,
    spec_at,
)
from calibrant.types import CalibrantError

OWN_AGENT = """
from dataclasses import dataclass
from typing import Annotated, Literal
from annotated_types import Ge, Gt, Le, Lt

@dataclass(frozen=True)
class Agent:
    strength: Annotated[float, Gt(0)] = 2.0
    share: Annotated[float, Ge(0), Lt(1)] = 0.5
    count: Annotated[int, Ge(1)] = 3
    shift: Annotated[float, Le(5)] = 0.0
    form: Literal["round", "square"] = "round"
    free: float = 1.0

    def fit(self, seed, train, facts): ...

class Plain:
    def fit(self, seed, train, facts): ...
"""

# Configurations that differ in the original's sweep, and how many stand here, the agent as given included.
DIFFERENT = {
    "mlp": (14, 14),
    "logistic": (14, 14),
    "ensemble": (18, 18),
    "ensemble+": (11, 16),  # five more with the fixed weight decay
    "dropout": (26, 26),
    "bbb": (23, 33),  # nine true mixtures and the fixed ratio more
    "hypermodel": (20, 25),  # five with the fixed weight decay more
    "epinet": (0, 18),
    "sgmcmc": (12, 24),  # plain SGLD is another method here
    "deep_kernel": (30, 31),
    "knn": (12, 13),
    "random_forest": (6, 6),
}


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(OWN_AGENT)
    return f"{tmp_path}/own.py"


# --- reading and printing -------------------------------------------------------------------------


def test_a_space_is_read_and_printed_in_one_way() -> None:
    space = parse_space(" l2=0.10|1e1|10 ,lr=1e-4..0.01:log, size=1..30, hidden=50x50|8", "ensemble")
    assert space == {
        "l2": Choice(("0.1", "10")),
        "lr": Range(0.0001, 0.01, log=True),
        "size": Range(1, 30, whole=True),
        "hidden": Choice(("50x50", "8")),
    }
    assert print_space(space) == "l2=0.1|10,lr=0.0001..0.01:log,size=1..30,hidden=50x50|8"
    assert parse_space(print_space(space), "ensemble") == space


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the space is empty"),
        ("l2", "'l2' in the space should be name=A"),
        ("l2=", "'l2=' in the space should be name=A"),
        ("l2=1||2", "'l2=1||2' in the space has an empty value"),
        ("l2=1,l2=2", "'l2' stands twice"),
        ("l2=a..b", "with two numbers"),
        ("l2=1..inf", "with two numbers"),
        ("l2=1..nan", "with two numbers"),
        ("l2=1..2:exp", "and :log if wanted"),
        ("l2=2..1", "lower end first"),
        ("l2=1..1", "lower end first"),
        ("l2=0..1:log", "starts above 0"),
        ("l2=-1|1", "l2=-1 in 'ensemble.*greater than or equal to 0"),
        ("l2=-1..1", "l2=-1 in 'ensemble.*greater than or equal to 0"),
        ("l3=1|2", "unknown parameter 'l3'.*did you mean"),
        ("l2_form=adaptive|none", "l2_form=none .*'adaptive' or 'fixed'"),
        ("size=2..8", "'size' is both fixed in 'ensemble.size=4' and searched"),
    ],
)
def test_whatever_is_wrong_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(CalibrantError, match=sentence) as caught:
        parse_space(text, "ensemble?size=4")
    assert "\n" not in str(caught.value)


def test_drawn_numbers_are_readable_and_stay_inside() -> None:
    assert Range(0.1, 10, log=True).word(0.123456789) == "0.1235"
    assert Range(0.12344, 10).word(0.12344) == "0.12344"  # rounded to 0.1234 it would fall out
    assert Range(1, 100, whole=True).word(3.7) == "4"
    assert Range(0, 1).holds("1") and not Range(0, 1).holds("1.01") and not Range(0, 1).holds("None")


def test_points_and_specs_belong_to_each_other() -> None:
    assert spec_at("mlp", {}) == "mlp"
    assert spec_at("mlp?steps=20", {"l2": "3", "lr": "0.001"}) == "mlp?l2=3&steps=20"
    assert point_of("mlp?l2=3", ["l2", "lr", "nothing"]) == {"l2": "3", "lr": "0.001"}


def test_a_grid_is_the_union_of_its_blocks() -> None:
    blocks = [parse_space("l2=1|2,lr=0.1|0.2", "mlp"), parse_space("steps=5", "mlp")]
    points = grid_points(blocks)
    assert len(points) == 5 and points[1] == {"l2": "1", "lr": "0.2"} and points[-1] == {"steps": "5"}
    with pytest.raises(CalibrantError, match=r"a grid needs listed values, but lr=0.1\.\.1 is a range"):
        grid_points([parse_space("l2=1|2,lr=0.1..1", "mlp")])


# --- what is known --------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", SEARCHED)
def test_every_known_grid_is_whole_and_fits_its_agent(agent: str) -> None:
    blocks = [parse_space(text, agent) for text in known_space(agent, "grid")]
    specs = {agent, *(spec_at(agent, point) for point in grid_points(blocks))}
    listed, here = DIFFERENT[agent]
    assert listed <= SEARCHED[agent].entries or not SEARCHED[agent].entries
    assert len(specs) == here
    assert (listed == SEARCHED[agent].entries) or SEARCHED[agent].note  # what differs is explained


@pytest.mark.parametrize("agent", SEARCHED)
def test_known_ranges_hold_the_default_and_one_program(agent: str) -> None:
    (text,) = known_space(agent, "tpe")
    space = parse_space(text, agent)
    assert len(space) >= 2  # enough for CMA-ES
    for name, word in point_of(agent, space).items():
        assert space[name].holds(word), f"{agent}: {name}={word}"
    if getattr(registry.load("agents", agent), "native", False):
        import jax

        ends = [
            registry.resolve("agents", spec_at(agent, {name: one.word(end)}))
            for name, one in space.items()
            if isinstance(one, Range)
            for end in (one.low, one.high)
        ]
        assert {jax.tree.structure(end) for end in ends} == {jax.tree.structure(registry.resolve("agents", agent))}


def test_what_the_spec_fixes_is_not_searched() -> None:
    assert known_space("ensemble+?size=10&l2=3", "grid") == (
        "bootstrap=bernoulli|exponential",
        "l2_form=adaptive|fixed",
    )
    assert known_space("ensemble+?size=10&l2=3", "tpe") == ("prior_scale=0.3..30:log",)
    with pytest.raises(CalibrantError, match="says of no parameter what it may be: say it with --space"):
        known_space("logistic?l2=3&l2_form=fixed&lr=0.01", "random")


def test_an_unknown_agent_is_searched_within_its_bounds(own: str) -> None:
    found = derived(f"{own}:Agent")
    assert found.grid == (
        "strength=0.2|0.6|2|6|20",
        "share=0.1|0.3|0.5|0.7|0.9",
        "count=1|3|9|30",
        "form=round|square",
    )
    assert found.ranges == "strength=0.2..20:log,share=0.01..0.99,count=1..30:log"
    assert known_space(f"{own}:Agent?share=0.2", "tpe") == ("strength=0.2..20:log,count=1..30:log",)
    for text in known_space(f"{own}:Agent", "grid"):
        parse_space(text, f"{own}:Agent")


@pytest.mark.parametrize("agent", ["oracle", "uniform", "own:Plain"])
def test_an_agent_without_bounds_needs_a_space(own: str, agent: str) -> None:
    with pytest.raises(CalibrantError, match="says of no parameter what it may be"):
        known_space(agent.replace("own:", f"{own}:"), "grid")
