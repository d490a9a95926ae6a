"""What an upgrade says of installs: who holds the symbol then, and whether there is something to replace."""

from __future__ import annotations

from pathlib import Path

import pytest

from afd_patchkit.api import RunOptions, check

from .world import World, codes

CORE = "def run(x):\n    return x + 1\n"
FRONT = "from acme.core import run\n"
HEAD = (
    "schema: 1\nmodule: set/core.py\nsummary: Copies.\npin: acme\nreason: a test\nentries:\n  - symbol: acme.core:run\n"
)


def world_of(tmp_path: Path, installs: str) -> World:
    world = World(tmp_path)
    world.release("1.0", {"core": CORE, "front": FRONT})
    world.write("manifests/set/core.yaml", f"{HEAD}installs:\n  - symbol: acme.core:run\n{installs}")
    world.regen()
    return world


@pytest.mark.parametrize(
    ("listed", "files", "status", "said"),
    [
        ("", {"front": FRONT, "later": FRONT}, "unchanged", set()),
        ("    aliases: [acme.front]\n", {"front": FRONT}, "unchanged", set()),
        ("    aliases: [acme.front]\n", {"front": FRONT, "later": FRONT}, "conflict", {"PK319"}),
        ("    aliases: [acme.front]\n", {"front": "", "later": FRONT}, "conflict", {"PK319", "PK320"}),
        ("    aliases: []\n    native: [acme.front]\n", {"front": ""}, "conflict", {"PK320"}),
    ],
)
def test_aliases_of_the_other_release(tmp_path, listed, files, status, said):
    world = world_of(tmp_path, listed)
    world.release("2.0", {"core": CORE, **files})
    before = world.state()
    result = world.upgrade(write=True)
    (entry,) = result.entries
    assert (entry.status, codes(entry)) == (status, said)
    if said:
        assert world.state() == before
        return
    options = world.offline({"acme": world.releases / "acme-2.0"})
    assert check(world.project, RunOptions(sources=options, full=True)).exit_code == 0
    text = (world.root / "generated/generated_acme/_installs.py").read_text()
    assert "Gate('acme', '2.0')" in text
    assert text.count("'acme.later'") == ("later" in files)
    if "later" in files:
        assert [place.file for place in result.aliases[0].added] == ["acme/later.py"]


def test_a_name_that_only_the_install_knows_is_gone(tmp_path):
    world = World(tmp_path)
    world.release("1.0", {"core": CORE, "front": FRONT})
    world.write("manifests/set/core.yaml", f"{HEAD}installs:\n  - {{symbol: 'acme.front:run', with: run}}\n")
    world.regen()
    world.release("2.0", {"core": CORE, "front": "from acme.core import run as go\n"})
    (entry,) = world.upgrade().entries
    assert (entry.status, codes(entry)) == ("conflict", {"PK336"})
