"""The house has floors: cli -> papers -> tune -> report, engine -> suites -> problems, agents -> train -> types.

A room imports rooms of its own floor and below, never above; rooms of one floor do not import each other in circles.
Every import statement counts, also those inside functions and those for type checking only.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import calibrant

ROOT = Path(calibrant.__file__).parent
FLOORS = (
    ("types", "protocols", "seeds", "registry"),
    ("rules", "metrics", "stats", "train", "nets"),
    ("problems", "agents", "adapters", "data", "play", "control", "deploy"),
    ("suites",),
    ("report", "engine"),
    ("tune",),
    ("papers",),
    ("cli", "api", "calibrant"),  # the package itself offers what api offers
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
NOUNS = {"types": set(), "protocols": {"types"}, "seeds": {"types"}, "registry": {"types"}}
FILES = sorted(ROOT.rglob("*.py"))
ROOMS = {path.stem if path.is_file() else path.name for path in ROOT.iterdir() if not path.name.startswith("__")}


def room_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return "calibrant" if first == "__init__.py" else first.removesuffix(".py")


def imported_rooms(path: Path) -> Iterator[tuple[str, int]]:
    """The rooms that a file names in import statements, wherever they stand, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively; say where from"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "calibrant":
                yield (parts[1] if len(parts) > 1 and parts[1] in ROOMS else "calibrant"), node.lineno


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_imports_what_stands_above_it(path: Path) -> None:
    room = room_of(path)
    for other, line in imported_rooms(path):
        if (room, other) == ("cli", "calibrant"):
            continue  # the version
        assert FLOOR[other] <= FLOOR[room], f"{path.relative_to(ROOT)}:{line}: {room} stands below {other}"


def test_every_room_has_a_floor() -> None:
    assert {room_of(path) for path in FILES} <= FLOOR.keys()


@pytest.mark.parametrize("noun", sorted(NOUNS))
def test_the_nouns_import_next_to_nothing(noun: str) -> None:
    """Types import nothing of ours; the registry names everything else only in strings."""
    assert {room for room, _ in imported_rooms(ROOT / f"{noun}.py")} <= NOUNS[noun]


def test_data_knows_only_the_nouns() -> None:
    """It stands beside the problems, which may use it; it must work without any of them."""
    imported = {room for path in FILES if room_of(path) == "data" for room, _ in imported_rooms(path)}
    assert imported <= {"data", "types", "seeds", "registry"}


def test_rooms_do_not_import_in_circles() -> None:
    graph: dict[str, set[str]] = {}
    for path in FILES:
        room = room_of(path)
        graph.setdefault(room, set()).update(other for other, _ in imported_rooms(path) if other != room)
    graph["cli"].discard("calibrant")  # the version
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError and names the circle


def test_the_reader_of_imports_sees_through_functions(tmp_path: Path) -> None:
    source = tmp_path / "sample.py"
    source.write_text(
        "import calibrant.engine.run\n"
        "def f():\n    from calibrant import registry, api\n"
        "if TYPE_CHECKING:\n    from calibrant.report.board import Board\n"
        "from calibrant import __version__\nimport numpy\n"
    )
    assert sorted(imported_rooms(source)) == [
        ("api", 3),
        ("calibrant", 6),
        ("engine", 1),
        ("registry", 3),
        ("report", 5),
    ]
