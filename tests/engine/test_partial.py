"""A run that generates one module of several says of it what a run of all says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from afd_patchkit.assemble.result import ModuleResult
from afd_patchkit.run import modules
from tests.upgrade.world import World

RELEASE = {
    "bases": """
        class Base:
            def close(self):
                return None
        """,
    "engine": """
        from acme.bases import Base

        class U(Base):
            def run(self):
                return 1

        def f(u: U):
            return u

        def g(u: U):
            return u
        """,
    "kinds": """
        from acme.engine import U

        class Kind(U):
            def mark(self):
                return 2
        """,
}
READS = """
- name: ours
  before: "return u"
  insert: "print(u.mark)"
"""
SETS = """
- name: ours
  before: "return u"
  insert: "u.mark = 1"
"""
EXTENDS = """
schema: 1
module: set/other.py
summary: A class of ours that has the attribute.
pin: acme
imports: [from acme.kinds import Kind]
entries:
  - kind: owned
    part: parts/other.py
    reason: a test
"""
LEANS = """
schema: 1
module: set/runner.py
summary: Leans on a module that may retire.
pin: acme
entries:
  - kind: owned
    part: parts/runner.py
    reason: a test
"""
RETIRES = """
schema: 1
module: set/other.py
summary: Retires when upstream has f.
pin: acme
remove_when: [{defines: "acme.engine:U.run"}]
entries:
  - symbol: acme.engine:g
    reason: a test
"""


LEANING = """
def use():
    from generated_acme.set.other import g

    return g
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A project of one entry that reads an attribute which upstream's class has not."""
    made = World(tmp_path)
    made.release("1.0", dict(RELEASE))
    made.deltas(READS, name="runner")
    return made


def same_as_full(world: World, *modules: str) -> None:
    """Generate `modules` alone, after a change of a comment; then everything: nothing may differ."""
    for name in modules:
        path = world.root / f"manifests/set/{name}.yaml"
        path.write_text(f"{path.read_text(encoding='utf-8')}# changed\n", encoding="utf-8")
    world.regen()
    partial = world.state()
    world.regen(full=True)
    assert world.state() == partial
    assert world.run({"acme": world.releases / "acme-1.0"}, only_check=True, full=True).exit_code == 0


@pytest.mark.parametrize("changed", ["runner", "other"])
def test_what_another_module_sets(world: World, changed: str) -> None:
    """`u.mark` is there because the other module sets it, whether that one is generated now or not."""
    world.deltas(SETS, symbol="g", name="other")
    world.regen(full=True)
    same_as_full(world, changed)


@pytest.mark.parametrize("changed", ["runner", "other"])
def test_what_a_class_of_another_module_has(world: World, changed: str) -> None:
    world.write("manifests/set/other.yaml", EXTENDS)
    world.write("manifests/set/parts/other.py", "class Ours(Kind):\n    pass\n")
    world.regen(full=True)
    same_as_full(world, changed)
    files = world.project.lock.read_text(encoding="utf-8")
    assert "acme/kinds.py" in files


@pytest.mark.parametrize("left", ["an entry", "another delta", "no module", "a part", "another base"])
def test_what_excused_a_module_is_taken_away(world: World, left: str) -> None:
    """`u.mark` was there because another module sets it, or makes a class that has it; the one that reads it did not change."""
    if left in ("a part", "another base"):
        world.write("manifests/set/other.yaml", EXTENDS)
        world.write("manifests/set/parts/other.py", "class Ours(Kind):\n    pass\n")
    else:
        world.deltas(SETS, symbol="g", name="other")
    world.regen(full=True)
    if left == "an entry":
        world.edit("manifests/set/other.yaml", "u.mark = 1", "u.other = 1")
    elif left == "another delta":
        world.deltas(SETS.replace("u.mark = 1", "print(u)"), symbol="g", name="other")
    elif left == "no module":
        (world.root / "manifests/set/other.yaml").unlink()
    else:
        text = "Ours = Kind\n" if left == "a part" else "class Ours(list):\n    pass\n"
        world.write("manifests/set/parts/other.py", text)
    sources = {"acme": world.releases / "acme-1.0"}
    before = world.state()
    assert [f.code for f in world.run(sources).findings if f.exit_code] == ["PK330"]
    assert [f.code for f in world.run(sources, full=True).findings if f.exit_code] == ["PK330"]
    assert world.state() == before


def test_a_module_that_nothing_excuses_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.deltas(SETS, symbol="g", name="other")
    world.regen(full=True)
    world.edit("manifests/set/other.yaml", "u.mark = 1", "u.mark = 1; u.other = 2")
    made: list[str] = []
    real = modules.make_module

    def noted(*args: Any, **more: Any) -> ModuleResult:
        made.append(args[2].module)
        return real(*args, **more)

    monkeypatch.setattr(modules, "make_module", noted)
    world.regen()
    assert made == ["set/other.py", "set/runner.py"]
    made.clear()
    world.edit("manifests/set/runner.yaml", "print(u.mark)", "print(u)")
    world.regen()
    world.edit("manifests/set/other.yaml", "u.other = 2", "u.other = 3")
    made.clear()
    world.regen()
    assert made == ["set/other.py"]


def test_files_follow_from_the_module_alone(world: World) -> None:
    """What is read in search of a class that has the attribute is no file of the module that reads it."""
    import json

    world.write("manifests/set/other.yaml", EXTENDS)
    world.write("manifests/set/parts/other.py", "class Ours(Kind):\n    pass\n")
    world.regen(full=True)
    found = json.loads(world.project.lock.read_text(encoding="utf-8"))["modules"]["set/runner.py"]["files"]["acme"]
    assert found == ["acme/bases.py", "acme/engine.py"]


def test_what_a_module_was_before_it_retired_is_no_module(world: World) -> None:
    world.write("manifests/set/runner.yaml", LEANS)
    world.write("manifests/set/parts/runner.py", LEANING)
    world.write("manifests/set/other.yaml", RETIRES.replace("U.run", "U.gone"))
    world.regen(full=True)
    assert (world.root / "generated/generated_acme/set/other.py").exists()
    world.write("manifests/set/other.yaml", RETIRES)
    found = world.run({"acme": world.releases / "acme-1.0"}, full=True)
    assert "PK330" in {f.code for f in found.findings if f.exit_code}


OURS = """
schema: 1
module: set/other.py
summary: A class of ours.
pin: acme
imports: [from acme.bases import Base, from acme.engine import U]
entries:
  - kind: owned
    part: parts/other.py
    reason: a test
"""
BETWEEN = """
schema: 1
module: set/between.py
summary: Leads on to it.
pin: acme
entries:
  - kind: owned
    part: parts/between.py
    reason: a test
"""
WAYS = {
    "imported": "from generated_acme.set.other import Ours\n",
    "of several": "from generated_acme.set.other import (\n    Ours,\n)\n",
    "as a module": "from generated_acme.set import other\n\nOurs = other.Ours\n",
    "by its whole name": "import generated_acme.set.other\n\nOurs = generated_acme.set.other.Ours\n",
    "by another module": "from generated_acme.set.between import Ours\n",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("base", ["U", "object"])
def test_what_a_module_leans_on_changes(world: World, way: str, base: str) -> None:
    """A module that did not change is judged anew where another one of ours has."""
    world.write("manifests/set/runner.yaml", LEANS)
    world.write("manifests/set/parts/runner.py", f"{WAYS[way]}\n\ndef use():\n    return Ours().close(), Ours.close\n")
    world.write("manifests/set/between.yaml", BETWEEN)
    world.write("manifests/set/parts/between.py", "from generated_acme.set.other import Ours\n")
    world.write("manifests/set/other.yaml", OURS)
    part = "manifests/set/parts/other.py"
    world.write(part, "class Ours(Base):\n    pass\n")
    world.regen(full=True)
    world.edit(part, "(Base)", f"({base})")
    sources = {"acme": world.releases / "acme-1.0"}
    found = world.run(sources)
    partial = world.state()
    full = world.run(sources, full=True)
    assert found.exit_code == full.exit_code == 0, (found.findings, full.findings)
    assert world.state() == partial


def test_what_a_module_leans_on_is_taken_away(world: World) -> None:
    world.write("manifests/set/runner.yaml", LEANS)
    world.write("manifests/set/parts/runner.py", LEANING.replace("g", "Ours").replace("Oursenerated", "generated"))
    world.write("manifests/set/other.yaml", OURS)
    part = "manifests/set/parts/other.py"
    world.write(part, "class Ours(Base):\n    pass\n")
    world.regen(full=True)
    world.edit(part, "Ours", "Other")
    sources = {"acme": world.releases / "acme-1.0"}
    before = world.state()
    assert [f.code for f in world.run(sources).findings if f.exit_code] == ["PK330"]
    assert world.state() == before
    (world.root / "manifests/set/other.yaml").unlink()
    (world.root / part).unlink()
    assert [f.code for f in world.run(sources).findings if f.exit_code] == ["PK330"]


def test_what_a_module_takes_of_upstream_is_replaced_by_another(world: World) -> None:
    """PK335 is about the module that takes it, which did not change."""
    world.release("1.0", {**RELEASE, "user": "from acme.engine import g\n\ndef use(x):\n    return g(x)\n"})
    world.write("manifests/set/runner.yaml", RETIRES.partition("remove_when")[0].replace("other", "runner") + USES)
    world.regen(full=True)
    world.write("manifests/set/other.yaml", RETIRES.replace('remove_when: [{defines: "acme.engine:U.run"}]\n', ""))
    sources = {"acme": world.releases / "acme-1.0"}
    found = {f.code for f in world.run(sources).findings if f.exit_code}
    partial = world.state()
    assert {f.code for f in world.run(sources, full=True).findings if f.exit_code} == found == {"PK335"}
    assert world.state() == partial


USES = """entries:
  - symbol: acme.user:use
    reason: a test
"""
