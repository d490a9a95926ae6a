"""What is wrong with a delta's code is said at the delta, at the line and column of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.upgrade.world import World

ENGINE = """
from acme import tools

def helper(x): return x

class K:
    def m(self, a):
        y = self.q(a)
        return y

    def q(self, a): return a

def f(x, *, k=1):
    y = helper(x)
    if y:
        y = helper(y)
    return y
"""
FIRST = "- name: first\n  before: |\n    return y\n  insert: |\n    print(y)\n"
CASES = {
    "self where there is none": ("f", FIRST + "- name: ours\n  before: |\n    return y\n  insert: |\n    y = 1; @self.x = y\n", "PK232"),
    "a name": ("f", FIRST + "- name: ours\n  before: |\n    return y\n  insert: |\n    print(@gone)\n", "PK232"),
    "an attribute of self": ("K.m", "- name: ours\n  before: |\n    return y\n  insert: |\n    @self.gone(y)\n", "PK330"),
    "an attribute of a module": ("f", FIRST + "- name: ours\n  at: start\n  insert: |\n    x = @tools.gone(x)\n", "PK330"),
    "what a name is rebound to": ("f", "- name: ours\n  rebind: {helper: '@gone'}\n", "PK232"),
    "a name that is not free": ("f", FIRST + "- @name: ours\n  rebind: {helpers: 'len'}\n", "PK315"),
    "a default": ("f", "- name: ours\n  parameter: {add: 'z=@gone'}\n", "PK232"),
    "a decorator": ("f", "- name: ours\n  decorator: {add: '@gone'}\n", "PK232"),
    "an annotation": ("f", "- name: ours\n  returns: '@Gone'\n", "PK232"),
    "an argument": ("f", "- name: ours\n  call: {match: 'helper(x)', set: {z: '@gone'}}\n", "PK232"),
    "a callee": ("f", "- name: ours\n  call: {match: 'helper(x)', callee: @gone}\n", "PK232"),
    "a binding of what upstream reads": ("f", "- name: ours\n  at: start\n  insert: |\n    @helper = 3\n", "PK303"),
    "an import": ("f", FIRST + "- name: ours\n  at: start\n  insert: |\n    @from .. import tools\n", "PK314"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_finding_points_at_the_code(tmp_path: Path, name: str) -> None:
    symbol, deltas, code = CASES[name]
    world = World(tmp_path)
    world.release("1.0", {"engine": ENGINE, "tools": "x = 1\n"})
    world.deltas(deltas.replace("@", ""), symbol=symbol)
    path = "manifests/set/runner.yaml"
    text = (world.root / path).read_text()
    world.deltas(deltas, symbol=symbol)
    marked = (world.root / path).read_text()
    world.write(path, text)
    before = marked[: marked.index("@")]
    report = world.run({"acme": world.releases / "acme-1.0"})
    found = next(f for f in report.findings if f.code == code)
    assert found.manifest is not None
    assert (found.delta, found.manifest.file) == ("ours", path)
    assert (found.manifest.line, found.manifest.column) == (
        before.count("\n") + 1, len(before) - before.rfind("\n")
    ), found  # fmt: skip


HEAD = """
schema: 1
module: set/runner.py
summary: s
pin: acme
reason: r
imports:
  - from acme.engine import helper
entries:
  - class:
      name: L
      bases: [K]
      decorators: ["helper"]
      fields: |
        size: int = 3
        twice = size * 2
      members:
        - symbol: acme.engine:K.m
""".lstrip("\n")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("bases: [K]", "bases: [object, @Gone]", "PK232"),
        ("bases: [K]", "bases: ['@acme.engine:Gone']", "PK330"),
        ("bases: [K]", "bases: ['@acme.gone:K']", "PK330"),
        ('decorators: ["helper"]', 'decorators: ["helper", "@gone(1)"]', "PK232"),
        ("twice = size * 2", "twice = size * @gone", "PK232"),
    ],
)
def test_a_finding_points_at_the_head_of_a_class(tmp_path: Path, old: str, new: str, code: str) -> None:
    world = World(tmp_path)
    world.release("1.0", {"engine": ENGINE, "tools": "x = 1\n"})
    text = HEAD.replace("from acme.engine import helper", "from acme.engine import helper, K").replace(old, new)
    before = text[: text.index("@")]
    world.write("manifests/set/runner.yaml", text.replace("@", ""))
    report = world.run({"acme": world.releases / "acme-1.0"})
    found = next(f for f in report.findings if f.code == code)
    assert found.manifest is not None
    place = (found.manifest.file, found.manifest.line, found.manifest.column)
    assert place == ("manifests/set/runner.yaml", before.count("\n") + 1, len(before) - before.rfind("\n")), found


@pytest.mark.parametrize(
    ("name", "base", "imported"),
    [
        ("L", "acme.engine:K", "from acme.engine import K, helper"),
        ("L", "'acme.engine:K'", "from acme.engine import K, helper"),
        ("L", "acme.engine:K.Inner", "from acme.engine import K, helper"),
        ("K", "acme.engine:K", "import acme.engine"),
    ],
)
def test_a_base_may_be_a_symbol(tmp_path: Path, name: str, base: str, imported: str) -> None:
    world = World(tmp_path)
    inner = ENGINE.replace("class K:\n", "class K:\n    class Inner: pass\n\n")
    world.release("1.0", {"engine": inner, "tools": "x = 1\n"})
    world.write(
        "manifests/set/runner.yaml", HEAD.replace("bases: [K]", f"bases: [{base}]").replace("name: L", f"name: {name}")
    )
    report = world.regen()
    assert [m.status for m in report.modules] == ["written"]
    text = next(world.root.glob("generated/*/set/runner.py")).read_text()
    shown = base.strip("'").partition(":")[2] if name == "L" else "acme.engine.K"
    assert f"class {name}({shown}):\n" in text
    assert f"{imported}\n" in text
    assert world.run({"acme": world.releases / "acme-1.0"}, only_check=True).exit_code == 0
