"""`tools/adopt_counts`: each copy counts once, a crash is told, and nothing is written."""

from __future__ import annotations

from typing import Any

from tests.copies.test_adopt import DISPATCH, HEAD, fenced
from tests.copies.world import World, write
from tools import adoption
from tools.adoption import main

CHANGED = fenced("    results = []\n", "    results = [rank]\n")
UNBOUND = fenced("    results = []\n", "    results = unheard_of\n")
FOREIGN = """
import acme
import elsewhere.engine as other


# Upstream source: elsewhere/engine.py, turn
def turn(batch):
    return batch


other.turn = turn
"""


def counted(world: World, capsys: Any, files: dict[str, str]) -> tuple[int, dict[str, list[str]], str, str]:
    """Exit code, rows of both tables by their first cell, and both streams."""
    write(world.plugin, files)
    before = {p: p.read_bytes() for p in world.folder.rglob("*") if p.is_file()}
    code = main([str(world.plugin), "--pin", "acme=1.0", "--source", f"acme={world.upstream}", "--offline"])
    assert {p: p.read_bytes() for p in world.folder.rglob("*") if p.is_file()} == before
    out, err = capsys.readouterr()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in out.splitlines() if line.startswith("|")]
    return code, {row[0]: row[1:] for row in cells}, out, err


def test_each_copy_counts_once_and_refusals_have_a_reason(world, capsys):
    plain = HEAD + DISPATCH.replace("results = []", "results = [rank]")
    files = {"a.py": CHANGED, "b.py": UNBOUND, "c.py": FOREIGN, "d.py": plain, "e.py": "import acme\n"}
    code, rows, out, err = counted(world, capsys, files)
    assert code == 0, out
    assert rows["copies found"] == ["2", "2", "4"]
    assert rows["of another distribution (PK670)"] == ["0", "1", "1"]
    assert rows["paired"] == ["2", "1", "3"]
    assert rows["adopted, round trip proved"] == ["1", "1", "2"]
    assert rows["of these with a change that nothing explains (PK233)"] == ["0", "1", "1"]
    assert rows["refused (PK718)"] == ["1", "0", "1"]
    assert rows["nothing in sight binds …"] == ["PK718", "1"]
    assert "b.py:4: dispatch: PK718: nothing in sight binds unheard_of" in err
    assert "Files that crashed: 0." in out
    assert out.rstrip().splitlines()[-1].startswith("5 files, ")


def test_a_crash_and_a_file_that_cannot_be_read_are_counted_and_told(world, capsys, monkeypatch):
    adopt_read = adoption.adopt_read

    def crashing(read: Any, *more: Any) -> Any:
        if read.files[0].path.name == "b.py":
            raise KeyError("invented")
        return adopt_read(read, *more)

    monkeypatch.setattr(adoption, "adopt_read", crashing)
    code, rows, out, _ = counted(world, capsys, {"a.py": CHANGED, "b.py": CHANGED, "c.py": "def f(:\n"})
    assert code == 1
    assert rows["paired"] == ["2", "0", "2"]
    assert rows["adopted, round trip proved"] == ["1", "0", "1"]
    assert rows["in a file at which the tool crashed"] == ["1", "0", "1"]
    assert "Files that crashed: 1.\n" in out
    assert "b.py: KeyError: 'invented' (crashing, line" in out
    assert "Files that could not be read: 1.\n  PK701: " in out
