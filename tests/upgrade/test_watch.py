"""`watch` on every kind of entry: what our code mirrors, and upstream changed, is a review."""

from __future__ import annotations

from pathlib import Path

import pytest

from .world import World, codes

ENGINE = """
class Batch:
    size: int

class Base:
    def run(self, x):
        return x

def f(x):
    return x

def mirrored(x):
    return x + 1
"""
HEAD = "schema: 1\nmodule: set/runner.py\nsummary: Copies.\npin: acme\nreason: a test\nentries:\n"
ENTRIES = {
    "copy": "  - symbol: acme.engine:f\n",
    "delegate": "  - symbol: acme.engine:f\n    kind: delegate\n    via: original\n    body: |\n      return __original__(...)\n",
    "member": "  - class:\n      name: K\n      bases: [acme.engine.Base]\n      members:\n        - symbol: acme.engine:Base.run\n",
    "owned": "  - kind: owned\n    part: parts/own.py\n",
}


@pytest.mark.parametrize("kind", ENTRIES)
@pytest.mark.parametrize(
    ("old", "new", "status"),
    [("x + 1", "x + 2", "review"), ("def mirrored", "def moved", "gone"), ("size: int", "size: str", "unchanged")],
)
def test_watch(tmp_path: Path, kind: str, old: str, new: str, status: str) -> None:
    world = World(tmp_path)
    world.release("1.0", {"engine": ENGINE})
    world.release("2.0", {"engine": ENGINE.replace(old, new)})
    entry = ENTRIES[kind]
    indent = " " * (10 if kind == "member" else 4)
    entry += f"{indent}watch: ['acme.engine:mirrored']\n"
    if kind == "member":
        entry = entry.replace("      bases: [acme.engine.Base]\n", "").replace(
            "name: K\n", "name: K\n      bases: [Base]\n"
        )
        world.write(
            "manifests/set/runner.yaml",
            HEAD.replace("entries:", "imports:\n  - from acme.engine import Base\nentries:") + entry,
        )
    else:
        world.write("manifests/set/runner.yaml", HEAD + entry)
    world.write("manifests/set/parts/own.py", '"""Ours."""\n\n\ndef own(x):\n    return x + 1\n')
    world.regen()
    (result,) = world.upgrade().entries
    if status == "gone":
        assert result.status in ("missing", "conflict")
        assert "PK205" in codes(result)
    else:
        assert (result.status, codes(result)) == (status, {"PK536"} if status == "review" else set())
