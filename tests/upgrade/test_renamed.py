"""A new name in text that a delta drops is a note; whatever is more than a name is a review."""

from __future__ import annotations

from pathlib import Path

import pytest

from .world import World, codes, notes

ENGINE = """
def helper(x):
    return x + 1

class C:
    def _make(self, x):
        return x

def f(self, batch):
    size: int = batch.size
    self.check(batch)
    out = self._make(helper(size), rank=size)
    if out:
        self.send(out)
    return out
"""
MAKE = "- name: ours\n  replace: |\n    out = self.{}(...)\n  with: |\n    out = batch\n"
BOTH = "- name: ours\n  replace:\n    from: |\n      ...: int = ...\n    to: |\n      out = ...\n  with: |\n    out = batch\n"
EXPR = "- name: ours\n  expr: |\n    helper(...)\n  with: |\n    batch\n"
KEPT = "- name: ours\n  replace: |\n    out = ...\n  with: |\n    if batch:\n        __upstream__\n    else:\n        out = 0\n"
WIDE = MAKE.replace("self.{}(...)", "...")

CASES = {
    "a local": (BOTH, [("size: int", "count: int"), ("(size)", "(count)"), ("=size)", "=count)")], "clean"),
    "a function": (WIDE, [("helper", "assist")], "clean"),
    "a method": (WIDE, [("_make", "_build")], "clean"),
    "a function that does something else now": (WIDE, [("helper", "assist"), ("x + 1", "x + 2")], "review"),
    "a function that is still there": (WIDE, [("helper(size)", "assist(size)"), ("class C", "def assist(x):\n    return x + 1\n\nclass C")], "review"),
    "an attribute of something unknown": (BOTH, [("batch.size", "batch.count")], "review"),
    "a keyword": (WIDE, [("rank=", "ranks=")], "review"),
    "two names became one": (BOTH, [("(size)", "(out)"), ("size: int", "out: int"), ("=size", "=out")], "review"),
    "a local, and more": (BOTH, [("size: int = batch.size", "count: int = len(batch)"), ("(size)", "(count)"), ("=size)", "=count)")], "review"),
    "text that is kept": (KEPT, [("_make", "_build")], "review"),
    "in an expression": (EXPR, [("size: int", "count: int"), ("(size)", "(count)"), ("=size)", "=count)")], "clean"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_renamed(tmp_path: Path, name: str) -> None:
    world = World(tmp_path)
    deltas, changes, status = CASES[name]
    new = ENGINE
    for old, text in changes:
        assert old in new
        new = new.replace(old, text)
    world.release("1.0", {"engine": ENGINE})
    world.release("2.0", {"engine": new})
    world.deltas(deltas)
    world.regen()
    (entry,) = world.upgrade().entries
    assert entry.status == status, [(f.code, f.message, f.details) for d in entry.deltas for f in d.reasons]
    assert ("PK652" in notes(entry)) == (status == "clean")
    assert ("PK510" in codes(entry)) == (status != "clean")
