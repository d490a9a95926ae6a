"""Removal conditions of a new release: what matched at the pin must be dropped there, not moved, renamed or rewritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from afd_patchkit.api import accept
from afd_patchkit.upgrade.result import EntryResult

from .world import World, codes

ENGINE = """
def f(batch):
    return batch

def watched(self, batch, log):
    \"\"\"Words.\"\"\"
    self.check(batch)
    for size in [1, 2, 4]:
        self.warm(size)
        log.info("warm %d", size)
    self.flush(batch)
    if batch.open and not self.closed:
        self.close()
    return self.run(batch)

def other(self, batch):
    return batch

class Overlap:
    def start(self, n):
        self.n = n
        return n + 1
"""
MANIFEST = """
schema: 1
module: set/runner.py
summary: Copies.
pin: acme
entries:
  - symbol: acme.engine:f
    reason: a test
    remove_when:
{}
"""
LOOP = """\
      - absent:
          in: acme.engine:watched
          pattern: |
            for size in [1, 2, 4]: ...
"""
FLUSH = "      - absent: {in: 'acme.engine:watched', pattern: 'self.flush(...)'}\n"
CLOSED = "      - absent: {in: 'acme.engine:watched', pattern: 'not self.closed'}\n"
MODULE = "      - absent: {in: acme.engine, pattern: 'self.flush(...)'}\n"
GONE = "      - missing: acme.engine:Overlap\n"
NO_MODULE = "      - missing: acme.old\n"
HEAD = "    for size in [1, 2, 4]:\n"
BODY = '        self.warm(size)\n        log.info("warm %d", size)\n'
CLASS = ENGINE[ENGINE.index("class Overlap") :]

CASES = {
    # ---- dropped
    "a loop is dropped": (LOOP, (HEAD + BODY, ""), "retire"),
    "a call is dropped": (FLUSH, ("    self.flush(batch)\n", ""), "retire"),
    "a conjunct is dropped": (CLOSED, (" and not self.closed", ""), "retire"),
    "the statement around it is dropped": (CLOSED, ("    if batch.open and not self.closed:\n        self.close()\n", ""), "retire"),
    "a module drops it": (MODULE, ("    self.flush(batch)\n", ""), "retire"),
    "a class is dropped": (GONE, (CLASS, ""), "retire"),
    "dropped, and something changes elsewhere": (FLUSH, ("    self.flush(batch)\n", ""), ("self.check(batch)", "self.check(batch, 1)"), "retire"),
    # ---- rewritten
    "a list became a name": (LOOP, ("[1, 2, 4]", "SIZES"), "review"),
    "an argument more in the pattern's place": ("      - absent: {in: 'acme.engine:watched', pattern: 'self.flush(batch)'}\n", ("self.flush(batch)", "self.flush(batch, wait=True)"), "review"),
    "a loop became a while": (LOOP, (HEAD, "    sizes = iter([1, 2, 4])\n    while (size := next(sizes, 0)):\n"), "review"),
    "written in other words": (FLUSH, ("self.flush(batch)", "drain(self.buffers)"), "review"),
    "a module rewrites it": (MODULE, ("self.flush(batch)", "self.flush_all(batch)"), "review"),
    # ---- renamed
    "a method has another name": (FLUSH, ("self.flush(batch)", "self.sync(batch)"), "review"),
    "a conjunct has another name": (CLOSED, ("self.closed", "self.is_closed"), "review"),
    "a class has another name": (GONE, ("class Overlap", "class Overlapping"), "review"),
    # ---- moved
    "moved to another function": (FLUSH, ("    self.flush(batch)\n", ""), ("    return batch\n\nclass", "    self.flush(batch)\n    return batch\n\nclass"), "review"),
    "moved into a helper": (LOOP, (HEAD + BODY, "    warm_all(self, log)\n"), ("class Overlap", "def warm_all(self, log):\n" + HEAD + BODY + "\nclass Overlap"), "review"),
    # ---- several conditions
    "one is rewritten, the other holds": (LOOP + "      - defines: acme.engine:g\n", ("[1, 2, 4]", "SIZES"), ("class Overlap", "def g(): ...\n\nclass Overlap"), "retire"),
    "any": ("      - any: [{absent: {in: 'acme.engine:watched', pattern: 'self.flush(...)'}}, {defines: 'acme.engine:g'}]\n", ("self.flush(batch)", "self.sync(batch)"), "review"),
    "all": ("      - all: [{absent: {in: 'acme.engine:watched', pattern: 'self.flush(...)'}}, {defines: 'acme.engine:g'}]\n", ("self.flush(batch)", "self.sync(batch)"), ("class Overlap", "def g(): ...\n\nclass Overlap"), "review"),
    "does not hold": (FLUSH, ("self.check(batch)", "self.check(batch, 1)"), "unchanged"),
}  # fmt: skip


def upgraded(world: World, condition: str, changes: list[tuple[str, str]], **more: str | None) -> EntryResult:
    new = ENGINE
    for old, text in changes:
        assert old in new
        new = new.replace(old, text)
    world.release("1.0", {"engine": ENGINE})
    world.release("2.0", {"engine": new})
    world.write("manifests/set/runner.yaml", MANIFEST.format(condition))
    world.regen()
    (entry,) = world.upgrade(**more).entries
    return entry


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_what_matched_must_be_dropped(world: World, name: str) -> None:
    condition, *changes, status = CASES[name]
    entry = upgraded(world, condition, changes)
    assert entry.status == status, [(f.code, f.message) for f in entry.reasons]
    assert codes(entry) == {"retire": {"PK540"}, "review": {"PK544"}, "unchanged": set()}[status]


def test_it_shows_what_it_became(world: World) -> None:
    entry = upgraded(world, LOOP, [("[1, 2, 4]", "SIZES")])
    (reason,) = [f for f in entry.reasons if f.code == "PK544"]
    assert reason.manifest is not None
    assert reason.upstream is not None
    assert (reason.manifest.line, reason.upstream.line) == (12, 7)
    assert reason.details == ("was: for size in [1, 2, 4]: ...", "now: for size in SIZES: ...")


def test_a_module_elsewhere_has_it_now(world: World) -> None:
    world.release("1.0", {"engine": ENGINE, "old": "def g():\n    a = 1\n    b = 2\n    return a + b\n"})
    world.release("2.0", {"engine": ENGINE, "new": "def g():\n    a = 1\n    b = 2\n    return a + b\n"})
    world.write("manifests/set/runner.yaml", MANIFEST.format(NO_MODULE))
    world.regen()
    (entry,) = world.upgrade().entries
    assert (entry.status, codes(entry)) == ("review", {"PK544"})
    assert "acme.new" in str(entry.reasons)


def test_without_the_old_text_nobody_knows(world: World) -> None:
    entry = upgraded(world, FLUSH, [("    self.flush(batch)\n", "")], old=None)
    assert (entry.status, codes(entry)) == ("review", {"PK544"})
    assert "not at hand" in str(entry.reasons)


def test_a_person_may_say_that_it_is_superfluous(world: World) -> None:
    upgraded(world, FLUSH, [("self.flush(batch)", "self.sync(batch)")])
    result = world.upgrade()
    assert (result.deletions, result.retired_modules, result.stays) == ((), (), ())
    options = world.options(**{"acme@1.0": "acme-1.0", "acme@2.0": "acme-2.0"})
    done = accept(world.project, "f", "sync does the same", pin_overrides={"acme": "2.0"}, options=options)
    assert [a.code for a in done.recorded] == ["PK544"]
    result = world.upgrade(write=True)
    assert result.entries[0].accepted
    assert result.written
    assert result.deletions
    assert not (world.root / "generated/generated_acme/set/runner.py").exists()


# ---- at the pin ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (FLUSH, False),
        ("      - defines: acme.engine\n", True),
        ("      - defines: acme.engine:Overlap\n", True),
        ("      - missing: acme.gone\n", True),
        ("      - missing: acme.engine\n", False),
        ("      - contains: {in: acme.engine, pattern: 'self.warm(...)'}\n", True),
        ("      - absent: {in: acme.engine, pattern: 'self.cool(...)'}\n", True),
        ("      - any: [{defines: 'acme.engine:g'}, {missing: 'acme.engine:g'}]\n", True),
        ("      - all: [{defines: 'acme.engine:g'}, {missing: 'acme.engine:h'}]\n", False),
    ],
)
def test_a_condition_that_holds_at_the_pin_is_a_warning(world: World, condition: str, holds: bool) -> None:
    world.release("1.0", {"engine": ENGINE})
    world.write("manifests/set/runner.yaml", MANIFEST.format(condition))
    for only_check in (False, True):
        report = world.run({"acme": world.releases / "acme-1.0"}, only_check=only_check)
        found = [(f.code, f.severity.value, f.manifest.line if f.manifest else 0) for f in report.findings]
        assert found == ([("PK548", "warning", 9)] if holds else [])
        assert report.modules[0].retired == (("set/runner.py::f",) if holds else ())


def test_a_probe_that_looks_into_a_module_that_is_gone(world: World) -> None:
    world.release("1.0", {"engine": ENGINE})
    world.release("2.0", {"other": ENGINE, "engine": "from acme.other import *\n\ndef f(batch):\n    return batch\n"})
    world.write("manifests/set/runner.yaml", MANIFEST.format("      - absent: {in: acme.tools, pattern: 'x'}\n"))
    report = world.run({"acme": world.releases / "acme-1.0"})
    assert [f.code for f in report.findings] == ["PK543"]
