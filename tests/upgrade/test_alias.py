"""Entries for a name that a module only imports: its definition is taken, and what becomes of the name is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from .world import World, codes

FILES = {
    "tools": "LIMIT = 3\n\ndef helper(x):\n    return x + LIMIT\n\nclass Box:\n    def open(self):\n        return LIMIT\n",
    "middle": "from acme.tools import helper as assist, Box\n",
    "worker": "from acme.middle import assist as helper, Box\n\ndef own(x):\n    return helper(x)\n",
}
HEAD = "schema: 1\nmodule: set/runner.py\nsummary: Copies.\npin: acme\nreason: a test\nentries:\n"
DELTA = "    deltas:\n      - name: more\n        expr: |\n          x + LIMIT\n        with: |\n          __upstream__ + 1\n"


def project(world: World, alias: str = "acme.worker:helper", deltas: str = DELTA) -> None:
    world.release("1.0", dict(FILES))
    world.write("manifests/set/runner.yaml", f"{HEAD}  - alias: {alias}\n{deltas}")


def test_the_definition_is_taken(tmp_path: Path) -> None:
    world = World(tmp_path)
    project(world)
    assert world.regen(full=True).findings == ()
    text = (world.root / "generated/generated_acme/set/runner.py").read_text()
    assert "# Upstream source: acme/tools.py, helper; acme 1.0" in text
    assert "from acme.tools import LIMIT\n" in text
    assert "    return x + LIMIT + 1\n" in text


def test_a_member_of_what_is_imported(tmp_path: Path) -> None:
    world = World(tmp_path)
    project(
        world,
        "acme.worker:Box.open",
        "    kind: delegate\n    via: original\n    body: |\n      return __original__(...)\n",
    )
    assert world.regen(full=True).findings == ()


@pytest.mark.parametrize(
    ("alias", "message"),
    [
        ("acme.worker:own", "acme.worker defines own, it does not import it"),
        ("acme.worker:gone", "acme.worker imports no gone of its own project"),
    ],
)
def test_refused(tmp_path: Path, alias: str, message: str) -> None:
    world = World(tmp_path)
    project(world, alias, "")
    report = world.run({"acme": world.releases / "acme-1.0"})
    (found,) = report.findings
    assert (found.code, found.message, found.manifest and found.manifest.line) == ("PK205", message, 7)


@pytest.mark.parametrize(
    ("module", "old", "new", "status", "expected"),
    [
        ("worker", "return helper(x)", "return helper(x) + 1", "unchanged", set()),
        ("tools", "def helper(x):", "def helper(x, y=0):", "clean", None),
        ("middle", "from acme.tools import helper as assist", "from acme.other import helper as assist", "review", {"PK550"}),
        ("worker", "assist as helper, ", "", "missing", {"PK538"}),
        ("worker", "assist as helper, Box\n", "Box\n\ndef helper(x):\n    return x\n", "missing", {"PK538"}),
    ],
)  # fmt: skip
def test_upgrades(tmp_path: Path, module: str, old: str, new: str, status: str, expected: set[str] | None) -> None:
    world = World(tmp_path)
    project(world)
    assert old in FILES[module]
    world.release("2.0", {**FILES, "other": FILES["tools"], module: FILES[module].replace(old, new)})
    world.regen()
    (entry,) = world.upgrade().entries
    assert (entry.status, codes(entry) if expected is not None else None) == (status, expected), entry.reasons
