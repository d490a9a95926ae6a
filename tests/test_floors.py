"""Imports run down the floors of the engine, those for type checkers and those inside functions counted; no module imports itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENGINE = "afd_patchkit"
# from the roof to the ground; rooms on one floor know nothing of each other
FLOORS = (
    ("__main__",),
    ("cli.commands",),
    ("cli",),
    ("api",),
    ("adopt",),
    ("queries", "building"),
    ("reports.upgrade",),
    ("reports", "copies"),
    ("upgrade",),
    ("run",),
    ("assemble",),
    ("references",),
    ("names", "delta", "manifest"),
    ("patterns", "upstream"),
    ("source", "model", "project"),
    ("findings", "operations", "__init__"),
    ("digests", "fence", "files", "git", "header", "refs", "runtime", "version"),
)
LEVEL = {room: level for level, rooms in enumerate(reversed(FLOORS)) for room in rooms}


def modules() -> dict[str, Path]:
    """Every module of the engine by its name below the package; a package under its own name."""
    found = {}
    for path in sorted((ROOT / ENGINE).rglob("*.py")):
        parts = path.relative_to(ROOT / ENGINE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


def room(module: str) -> str:
    """The room that a module stands in: the longest that FLOORS names."""
    parts = module.split(".")
    return next(name for n in range(len(parts), 0, -1) if (name := ".".join(parts[:n])) in LEVEL)


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the engine that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.partition(".")[0] != ENGINE:
                continue
            parts = name.split(".")[1:]
            yield next((m for n in range(len(parts), 0, -1) if (m := ".".join(parts[:n])) in known), "__init__")


def test_imports_run_down_the_floors() -> None:
    known = modules()
    arrows = {name: {other for other in imports(path, known) if other != name} for name, path in known.items()}
    wrong = [
        f"{name} -> {other}"
        for name, others in arrows.items()
        for other in sorted(others)
        if room(name) != room(other) and LEVEL[room(name)] <= LEVEL[room(other)]
    ]
    assert not wrong, "imports that run up, or across a floor:\n" + "\n".join(wrong)
    TopologicalSorter(arrows).prepare()  # CycleError names the modules of a circle


def test_every_room_is_there() -> None:
    assert {room(name) for name in modules()} == set(LEVEL)


def test_no_two_public_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for name, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
