"""Specs: read, checked, printed back as themselves; objects in files pinned by their digest."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import registry
from calibrant.types import CalibrantError

FILE = """
from dataclasses import dataclass, field
class Thing: ...
@dataclass(frozen=True)
class Agent:
    scale: float = 1.0
    sizes: tuple[int, ...] | None = None
    names: list[str] = field(default_factory=list)
    thing: Thing | None = None
    loud: bool = False
    def fit(self, key, train, facts): ...
@dataclass(frozen=True)
class Needy:
    scale: float
    def __post_init__(self):
        if self.scale > 9: raise ValueError("scale is beyond measure")
class Plain:
    def __init__(self, scale="1"): self.scale = scale
def function(key, train, facts): ...
BUILT = Agent(2.0)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "at@home" / "agent.py"
    path.parent.mkdir()
    path.write_text(FILE)
    return path


# --- the grammar -----------------------------------------------------------------------------------------

numbers = st.floats(0, 1e6, exclude_min=True)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "size": st.integers(1, 10_000),
    "l2": numbers,
    "l2_form": st.sampled_from(["adaptive", "fixed"]),
    "prior_scale": st.floats(0, 1e300),
    "bootstrap": st.sampled_from(["none", "bernoulli", "exponential"]),
    "lr": numbers,
    "hidden": st.lists(st.integers(1, 500), min_size=1, max_size=4).map(tuple),
}


@settings(max_examples=150, deadline=None)
@given(st.fixed_dictionaries({}, optional=FIELDS), st.randoms(use_true_random=False))
def test_round_trip(values: dict[str, Any], random: Any) -> None:
    """Written in any order, a spec builds what it says, and prints in the one canonical way."""
    items = list(values.items())
    random.shuffle(items)
    spec = "ensemble+" + ("?" if items else "") + "&".join(f"{key}={registry.show(value)}" for key, value in items)
    built = registry.resolve("agents", spec)
    assert {key: getattr(built, key) for key in values} == values
    canonical = registry.canonical("agents", spec)
    assert registry.canonical("agents", canonical) == canonical
    assert registry.resolve("agents", canonical) == built
    default = type(built)()
    printed = registry.parse_query(canonical, canonical.partition("?")[2])
    assert list(printed) == [
        f.name for f in dataclasses.fields(built) if getattr(built, f.name) != getattr(default, f.name)
    ]


@pytest.mark.parametrize(("kind", "spec", "canonical"), [
    ("agents", "mlp", "mlp"),
    ("agents", " mlp ?", "mlp"),
    ("agents", "mlp?steps=1000&l2=3.0", "mlp?l2=3"),
    ("agents", "mlp?lr=1e-2&l2=0.50", "mlp?l2=0.5&lr=0.01"),
    ("agents", "mlp?hidden=20", "mlp?hidden=20"),
    ("agents", "ensemble?hidden=50x50", "ensemble?hidden=50x50"),  # said, though it is what the facts name by default
    ("problems", "testbed?temp=0.10&train=10", "testbed"),
    ("problems", "testbed?kappa=2x3&dim=10", "testbed?dim=10&kappa=2x3"),
    ("problems", "testbed?temp=1", "testbed?temp=1"),
])  # fmt: skip
def test_canonical(kind: str, spec: str, canonical: str) -> None:
    assert registry.canonical(kind, spec) == canonical


@pytest.mark.parametrize(("value", "text"), [
    (0.1, "0.1"), (3.0, "3"), (1e-05, "1e-05"), (1e16, "1e+16"), (30, "30"), ("relu", "relu"), ((50, 50), "50x50"),
    (True, "true"), ([1.5, 2], "1.5x2"),
])  # fmt: skip
def test_show(value: object, text: str) -> None:
    assert registry.show(value) == text


def test_every_name_of_ours_builds_and_prints_as_itself() -> None:
    for kind in ("agents", "problems"):
        for name in registry.BUILTIN[kind]:
            assert registry.canonical(kind, name) == name
            assert registry.identity(kind, name)["name"] == name
    assert registry.load("suites", "testbed").name == "testbed"


def test_identity_says_everything() -> None:
    plain, other = (registry.identity("agents", spec) for spec in ("mlp", "mlp?l2=2"))
    assert plain["l2"] == "1"
    assert plain["steps"] == "1000"
    assert {key for key in plain if plain[key] != other[key]} == {"l2", "spec"}


# --- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spec", "sentence"), [
    ("mpl", "unknown agent 'mpl', did you mean 'mlp'?"),
    ("", "unknown agent ''"),
    ("?l2=1", "unknown agent ''"),
    ("mlp?stepz=3", "unknown parameter 'stepz' in 'mlp?stepz=3', did you mean 'steps'?; it takes l2,"),
    ("uniform?size=3", "unknown parameter 'size' in 'uniform?size=3'; it takes none"),
    ("mlp?native=1", "unknown parameter 'native'"),
    ("mlp?l2=-1", "l2=-1 in 'mlp?l2=-1': it should be greater than or equal to 0"),
    ("mlp?lr=0", "lr=0 in 'mlp?lr=0': it should be greater than 0"),
    ("mlp?steps=0", "it should be greater than or equal to 1"),
    ("mlp?l2=nan", "it should be a finite number"),
    ("mlp?l2=inf", "it should be a finite number"),
    ("mlp?l2=1e400", "it should be a finite number"),
    ("mlp?l2=big", "it should be a valid number"),
    ("mlp?steps=2.5", "it should be a valid integer"),
    ("mlp?hidden=5x0", "hidden=5x0 in 'mlp?hidden=5x0': it should be greater than or equal to 1"),
    ("mlp?hidden=5x", "it should be a valid integer"),
    ("mlp?l2_form=odd", "it should be 'adaptive' or 'fixed'"),
    ("mlp?l2=1&l2=1", "'l2' is given twice"),
    ("mlp?l2", "'l2' in 'mlp?l2' is not of the form name=value"),
    ("mlp?l2=", "is not of the form name=value"),
    ("mlp?=3", "is not of the form name=value"),
    ("mlp?l2=__import__('os')", "it should be a valid number"),
    ("nowhere.py:Agent", "no file 'nowhere.py'"),
    ("no_such_module:Agent", "module 'no_such_module' cannot be imported"),
    ("..:Agent", "module '..' cannot be imported"),
    ("json:", "'json:' should be FILE.py:NAME or module:NAME"),
    ("json:1x", "should be FILE.py:NAME or module:NAME"),
])  # fmt: skip
def test_bad_specs_get_one_sentence(spec: str, sentence: str) -> None:
    for function in (registry.resolve, registry.canonical):
        with pytest.raises(CalibrantError) as raised:
            function("agents", spec)
        assert sentence in str(raised.value)
        assert "\n" not in str(raised.value)


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.characters(codec="utf-8"), max_size=30), st.sampled_from(["", "mlp?", "testbed?temp=", "ensemble?size="])
)
def test_no_text_makes_it_stumble(text: str, start: str) -> None:
    """Any text is a spec or gets a sentence; `:` would name files and modules, which is tested by itself."""
    kind = "problems" if start.startswith("testbed") else "agents"
    try:
        canonical = registry.canonical(kind, start + text.replace(":", ";"))
    except CalibrantError:
        return
    assert registry.canonical(kind, canonical) == canonical


# --- objects in files ------------------------------------------------------------------------------------


def test_file_agents_carry_their_digest(file: Path) -> None:
    spec = f"{file}:Agent?scale=2&sizes=3x4&names=axb&loud=true"
    canonical = registry.canonical("agents", spec)
    digest = registry.source_digest(f"{file}:Agent")
    assert canonical == f"{file}:Agent@{digest}?scale=2&sizes=3x4&names=axb&loud=true"
    assert registry.canonical("agents", canonical) == canonical
    built = registry.resolve("agents", canonical)
    assert (built.scale, built.sizes, built.names, built.loud) == (2.0, (3, 4), ["a", "b"], True)
    assert registry.canonical("agents", f"{file}:Agent") == f"{file}:Agent@{digest}"


def test_a_changed_file_is_refused(file: Path) -> None:
    pinned = registry.canonical("agents", f"{file}:Agent")
    file.write_text(FILE + "\n# edited\n")
    with pytest.raises(CalibrantError, match="has changed since it was named"):
        registry.resolve("agents", pinned)
    assert registry.canonical("agents", f"{file}:Agent") != pinned  # an edited agent is another agent
    file.write_text(FILE)
    assert registry.canonical("agents", f"{file}:Agent") == pinned


def test_an_edited_file_is_read_again(file: Path) -> None:
    assert registry.resolve("agents", f"{file}:Agent").scale == 1
    file.write_text(FILE.replace("scale: float = 1.0", "scale: float = 5.0"))
    assert registry.resolve("agents", f"{file}:Agent").scale == 5


def test_plain_classes_functions_and_objects(file: Path) -> None:
    assert registry.resolve("agents", f"{file}:Plain?scale=7").scale == "7"
    assert registry.resolve("agents", f"{file}:function").__name__ == "function"
    assert registry.resolve("agents", f"{file}:BUILT").scale == 2
    for name in ("Plain", "function", "BUILT"):
        canonical = registry.canonical("agents", f"{file}:{name}")
        assert canonical == f"{file}:{name}@{registry.source_digest(f'{file}:{name}')}"


@pytest.mark.parametrize(("name", "sentence"), [
    ("Agnet", "has no 'Agnet', did you mean 'Agent'?"),
    ("Agent?scale=loud", "it should be a valid number"),
    ("Agent?thing=3", "it should be an instance of Thing"),
    ("Needy", "missing 1 required positional argument: 'scale'"),
    ("Needy?scale=10", "could not be built: scale is beyond measure"),
    ("Plain?size=3", "unexpected keyword argument 'size'"),
    ("BUILT?scale=3", "names an object that is already built; it takes no parameters"),
])  # fmt: skip
def test_bad_references(file: Path, name: str, sentence: str) -> None:
    with pytest.raises(CalibrantError) as raised:
        registry.resolve("agents", f"{file}:{name}")
    assert sentence in str(raised.value)


def test_a_file_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0\n")
    for _ in range(2):
        with pytest.raises(CalibrantError, match="cannot be imported: ZeroDivisionError: division by zero"):
            registry.resolve("agents", f"{path}:Agent")


def test_modules_are_references_too() -> None:
    assert registry.canonical("agents", "calibrant.agents.mlp:Mlp?l2=2").endswith("?l2=2")
    assert registry.resolve("agents", "calibrant.agents.mlp:Mlp?l2=2") == registry.resolve("agents", "mlp?l2=2")
