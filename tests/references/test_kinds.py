"""Every kind of own text keeps the contracts of what it refers to in the lock, and is compared on an upgrade, with the old release and without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.upgrade.world import World

TOOLS = """
def helper(x, fast=False):
    return x

def wrap(function):
    return function

class Lost(ValueError):
    pass

class Batch:
    def __init__(self, size, rows=1):
        self.size = size

class Base:
    def close(self, now):
        return now

LIMIT = 3
"""
ENGINE = """
from acme import tools

class Core(tools.Base):
    def run(self, n):
        out = n
        return out

def f(n):
    out = g(n)
    return out

def g(n):
    return n

def h(n, m=1):
    return n
"""
FILES = {"engine": ENGINE, "tools": TOOLS}
UP = "imports:\n  - import acme.tools as up\n"


def delta(text: str, symbol: str = "f") -> str:
    """An entry with one delta."""
    return f"  - symbol: acme.engine:{symbol}\n    reason: a test\n    deltas:\n      - name: ours\n{text}"


def inserted(code: str) -> str:
    """An entry whose delta adds code."""
    lines = "".join(f"            {line}\n" for line in code.split("\n"))
    return delta(f"        at: start\n        insert: |\n{lines}")


PART = "  - part: parts/ours.py\n    kind: owned\n    reason: a test\n  - {symbol: acme.engine:g, reason: a test}\n"
KINDS: dict[str, tuple[str, str, str]] = {
    "insert": (inserted("up.helper(1)"), UP, ""),
    "replace": (delta("        replace: |\n          out = g(n)\n        with: |\n          out = up.helper(n)\n"), UP, ""),
    "a wrapping": (delta("        replace: |\n          out = g(n)\n        with: |\n          if up.helper(n):\n              __upstream__\n"), UP, ""),
    "expr": (delta("        expr: |\n          g(n)\n        with: |\n          up.helper(__upstream__)\n"), UP, ""),
    "the callee of a call": (delta("        call:\n          match: |\n            g(n)\n          callee: up.helper\n"), UP, ""),
    "an argument of a call": (delta('        call:\n          match: |\n            g(n)\n          set: {0: "up.helper(n)"}\n'), UP, ""),
    "a parameter's default": (delta('        parameter: {add: "m=up.helper(1)"}\n'), UP, ""),
    "a decorator": (delta('        decorator: {add: "up.helper"}\n'), UP, ""),
    "a decorator that is called": (delta('        decorator: {add: "up.helper(1)"}\n'), UP, ""),
    "a rebinding": (delta('        rebind: {g: "up.helper"}\n'), UP, ""),
    "an import of the manifest": (inserted("helper(1)"), "imports:\n  - from acme.tools import helper\n", ""),
    "an import in the code": (inserted("from acme.tools import helper\nhelper(1)"), "", ""),
    "a delegate's body": (
        "  - symbol: acme.engine:f\n    kind: delegate\n    via: original\n    reason: a test\n    body: |\n      up.helper(1)\n      return __original__(...)\n",
        UP, "",
    ),
    "a part": (PART, "", "from acme.tools import helper\n\n\ndef ours(n):\n    return helper(n)\n"),
    "a part's default": (PART, "", "from acme.tools import helper\n\n\ndef ours(n=helper(1)):\n    return n\n"),
    "a part's decorator": (PART, "", "from acme.tools import helper\n\n\n@helper\ndef ours(n):\n    return n\n"),
    "an exception caught": (inserted("try:\n    pass\nexcept up.Lost:\n    raise"), UP, ""),
    "an exception raised": (inserted("if not n:\n    raise up.Lost(1)"), UP, ""),
    "an instance made": (inserted("up.Batch(1)"), UP, ""),
    "a method of one made": (inserted("up.Base().close(1)"), UP, ""),
    "a constant": (inserted("print(up.LIMIT)"), UP, ""),
    "a base": (
        "  - class:\n      name: Ours\n      bases: [Base]\n      members:\n        - {symbol: acme.engine:Core.run, reason: a test}\n",
        "imports:\n  - from acme.tools import Base\n", "",
    ),
    "a base of a part": (PART, "", "from acme.tools import Base\n\n\nclass Ours(Base):\n    pass\n"),
    "a member of a base": (
        (
        "  - class:\n      name: Ours\n      bases: [Core]\n      members:\n        - symbol: acme.engine:Core.run\n          reason: a test\n          deltas:\n"
        "            - name: ours\n              at: start\n              insert: |\n                self.close(1)\n"
        ),
        "imports:\n  - from acme.engine import Core\n", "",
    ),
    "a clause": (delta("        clause:\n          of: |\n            if n: ...\n          add: |\n            else:\n                up.helper(n)\n", "k"), UP, ""),
    "the head of a clause": (delta("        clause:\n          of: |\n            if n: ...\n          add: |\n            elif up.helper(n):\n                pass\n", "k"), UP, ""),
    "a field": (delta('        field: {add: "more: int = up.helper(1)"}\n', "D"), UP, ""),
    "a member": (delta("        member:\n          add: |\n            def more(self):\n                return up.helper(1)\n", "D"), UP, ""),
}  # fmt: skip
MORE = """
from dataclasses import dataclass

def k(n):
    if n:
        return n

@dataclass
class D:
    size: int = 1
"""
HELPER = ("def helper(x, fast=False)", "def helper(x, must, fast=False)")
BREAKS: dict[str, tuple[str, str]] = {
    "an exception caught": ("class Lost(ValueError):\n    pass", "def Lost(x):\n    return x"),
    "an exception raised": ("class Lost(ValueError)", "class Gone(ValueError)"),
    "an instance made": ("def __init__(self, size, rows=1)", "def __init__(self, size, must, rows=1)"),
    "a method of one made": ("def close(self, now)", "def close(self, now, how)"),
    "a member of a base": ("def close(self, now)", "def close(self, now, how)"),
    "a constant": ("LIMIT = 3", "BOUND = 3"),
    "a base": ("class Base:\n    def close(self, now):\n        return now", "def Base(x):\n    return x"),
    "a base of a part": ("class Base:\n    def close(self, now):\n        return now", "def Base(x):\n    return x"),
}
"""What breaks those that do not call the helper."""
DIFFERS: dict[str, tuple[str, str]] = {
    "an exception caught": ("class Lost(ValueError):\n    pass", "from acme.other import Lost"),
    "an exception raised": ("class Lost(ValueError):\n    pass", "from acme.other import Lost"),
    "an instance made": ("rows=1", "rows=2"),
    "a method of one made": ("def close", "async def close"),
    "a member of a base": ("def close", "async def close"),
    "a constant": ("LIMIT = 3", "LIMIT = 'x'"),
    "a base": ("class Base:", "class Base(ValueError):"),
    "a base of a part": ("class Base:", "class Base(ValueError):"),
}
HARMLESS = ("    return x\n", "    print(x)\n    return x\n")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty project."""
    return World(tmp_path)


def upgraded(world: World, name: str, change: tuple[str, str], old: str | None) -> set[str]:
    """The statuses of the entries on a release with a change."""
    entries, imports, part = KINDS[name]
    files = {**FILES, "engine": ENGINE + MORE, "other": "class Lost(Exception):\n    other = 1\n"}
    world.release("1.0", files)
    assert change[0] in TOOLS
    world.release("2.0", {**files, "tools": TOOLS.replace(*change)})
    if part:
        world.write("manifests/set/parts/ours.py", '"""Ours."""\n\n' + part)
    head = "schema: 1\nmodule: set/runner.py\nsummary: Own text.\npin: acme\n"
    world.write("manifests/set/runner.yaml", f"{head}{imports}entries:\n{entries}")
    world.regen()
    return {e.status for e in world.upgrade(old=old).entries}


@pytest.mark.parametrize("old", ["1.0", None], ids=["with the old release", "from the lock"])
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_own_text_is_compared(world: World, name: str, old: str | None) -> None:
    breaks = upgraded(world, name, BREAKS.get(name, HELPER), old)
    differs = upgraded(world, name, DIFFERS.get(name, ("def helper", "async def helper")), old)
    same = upgraded(world, name, HARMLESS, old)
    told = {"conflict", "review"}
    assert breaks & told, breaks
    assert differs & told, differs
    assert same <= {"unchanged", "clean"}, same


@pytest.mark.parametrize("name", KINDS)
def test_the_lock_has_a_contract_of_it(world: World, name: str) -> None:
    upgraded(world, name, HARMLESS, "1.0")
    lock = json.loads((world.root / "generated/patchkit.lock").read_text())
    records = [e.get("references", {}) for m in lock["modules"].values() for e in m["entries"].values()]
    found = {key: r["contract"] for record in records for key, r in record.items()}
    assert any(
        key.startswith(("acme.tools", "acme.engine:Core", "acme.engine:tools")) and c["kind"] != "module"
        for key, c in found.items()
    ), found
