"""Code that is a deep tree: handled, or a finding that says so; never a bug report."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.upgrade.world import World

ELIFS = (
    "def f(x):\n    if x == 0:\n        y = 0\n"
    + "".join(f"    elif x == {n}:\n        y = {n}\n" for n in range(1, 600))
    + "    return y\n"
)
SUM = "def f(x):\n    y = " + " + ".join(["x"] * 1200) + "\n    return y\n"
CALLS = "def f(x):\n    y = x" + "".join(f".a{n}()" for n in range(500)) + "\n    return y\n"
DELTA = "- name: look\n  before: |\n    return y\n  insert: |\n    print(y)\n"


@pytest.mark.parametrize("text", [ELIFS, SUM, CALLS], ids=["elif", "sum", "calls"])
def test_deep_code_is_handled(tmp_path: Path, text: str) -> None:
    world, limit = World(tmp_path), sys.getrecursionlimit()
    world.release("1.0", {"engine": text})
    world.release("2.0", {"engine": text.replace("def f(x):\n", "def f(x):\n    x = int(x)\n")})
    world.deltas(DELTA)
    assert [f.code for f in world.regen(full=True).findings] == []
    (entry,) = world.upgrade().entries
    assert entry.status in ("clean", "review")
    assert {f.code for d in entry.deltas for f in d.reasons} <= {"PK513"}
    assert sys.getrecursionlimit() == limit


def test_what_is_too_deep_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afd_patchkit.source.deep.FRAMES", 0)
    world = World(tmp_path)
    world.release("1.0", {"engine": ELIFS + "\ndef g(x):\n    return x\n"})
    world.deltas(DELTA)
    report = world.run({"acme": world.releases / "acme-1.0"})
    assert [(f.code, f.entry, f.manifest and f.manifest.line) for f in report.findings] == [
        ("PK229", "set/runner.py::f", 6)
    ]
