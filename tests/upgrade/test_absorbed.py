"""Absorbed is what upstream has: never what it rewrote, and never while the operation still finds something to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from .world import World

BASE = """
from acme.tools import cache

@cache(size=3)
def f(self, config, rank: int = 0, *, depth: int = 0, fast=False) -> int:
    self.control = self._make(config)
    if self.control and config.open:
        self.begin(config, rank=rank)
    elif config.late_start > 3:
        self.late(config)
    size = len(config.items)
    return self.run(config, size)
"""


def delta(text: str) -> str:
    return f"- name: ours\n{text}"


DROP = delta("  remove: |\n    self.control = self._make(config)\n")
SWAP = delta("  replace: |\n    self.control = self._make(config)\n  with: |\n    self.control = config.control()\n")
EXPR = delta("  expr: |\n    self.control and config.open\n  with: |\n    self.control\n")
CALL = delta("  call:\n    match: |\n      self.begin(config, rank=rank)\n    drop: [rank]\n")
CLAUSE = delta(
    '  clause:\n    of: |\n      if self.control and config.open: ...\n    remove: "elif config.late_start > 3"\n'
)
UNCACHED = delta("  decorator:\n    remove: 'cache(size=3)'\n")
RANKLESS = delta("  parameter:\n    remove: depth\n")
RETYPED = delta("  parameter:\n    replace: rank\n  with: 'rank: float = 0.0'\n")
MORE = delta("  parameter:\n    add: 'width: int = 0'\n")
LINE = delta("  after: |\n    size = len(config.items)\n  insert: |\n    self.note(size)\n")

CASES = {
    # ---- upstream has it
    "dropped": (DROP, "    self.control = self._make(config)\n", "", "absorbed"),
    "replaced alike": (SWAP, "self._make(config)", "config.control()", "absorbed"),
    "a statement more": (LINE, "    return", "    self.note(size)\n    return", "absorbed"),
    "a parameter more": (MORE, "fast=False)", "fast=False, width: int = 0)", "absorbed"),
    "a parameter replaced alike": (RETYPED, "rank: int = 0", "rank: float = 0.0", "absorbed"),
    "an expression alike": (EXPR, "self.control and config.open", "self.control", "absorbed"),
    "an argument dropped": (CALL, "config, rank=rank", "config", "absorbed"),
    "a clause dropped": (CLAUSE, "    elif config.late_start > 3:\n        self.late(config)\n", "", "absorbed"),
    "a parameter dropped": (RANKLESS, "depth: int = 0, ", "", "absorbed"),
    "a decorator dropped": (UNCACHED, "@cache(size=3)\n", "", "absorbed"),
    # ---- upstream rewrote it
    "a removed statement": (DROP, "self._make(config)", "make(config.p)", "conflict"),
    "a removed statement moved behind a condition": (DROP, "    self.control = self._make(config)\n", "    if config.p:\n        self.control = make(config.p)\n", "conflict"),
    "a replaced statement": (SWAP, "self._make(config)", "make(config.p)", "conflict"),
    "an expression": (EXPR, "config.open", "config.opened()", "conflict"),
    "an argument": (CALL, "rank=rank", "ranks=[rank]", "conflict"),
    "a clause": (CLAUSE, "config.late_start > 3", "config.late_start >= 3", "conflict"),
    "a decorator": (UNCACHED, "@cache(size=3)\n", "@cache(size=4)\n", "conflict"),
    "a removed parameter": (RANKLESS, "depth: int = 0", "deep: int = 0", "conflict"),
    "a removed parameter, retyped": (RANKLESS, "depth: int = 0", "depth: float = 0", "review"),
    "a parameter": (RETYPED, "rank: int = 0", "rank_id: int = 0", "conflict"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("old", ["1.0", None])
def test_absorbed(tmp_path: Path, name: str, old: str | None) -> None:
    world = World(tmp_path)
    deltas, was, now, status = CASES[name]
    assert was in BASE
    tools = "def cache(size):\n    return lambda f: f\n"
    world.release("1.0", {"engine": BASE, "tools": tools})
    world.release("2.0", {"engine": BASE.replace(was, now), "tools": tools})
    world.deltas(deltas)
    report = world.run({"acme": world.releases / "acme-1.0"})
    assert not [f for f in report.findings if f.severity.value == "error"], report.findings
    ((result,),) = (entry.deltas for entry in world.upgrade(old=old).entries)
    if old is None and status == "absorbed":  # digests alone show less
        assert result.status in ("absorbed", "conflict", "review")
    else:
        assert result.status == status, [(f.code, f.message) for f in result.reasons]
