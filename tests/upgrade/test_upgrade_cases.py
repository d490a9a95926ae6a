"""Table of upgrades: old text, new text, deltas, and what must be said. Each runs with and without the old text."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from afd_patchkit.upgrade.result import EntryResult

from .world import World, codes, notes


@dataclass(frozen=True)
class Case:
    """One upgrade of `acme.engine:f` (or another symbol).

    Attributes:
        base: the old module.
        new: the new module.
        deltas: of the entry.
        status: expected status of the entry.
        codes: expected codes, notes left out.
        has: lines that the result must hold, in this order.
        lacks: texts that it must not hold.
        digests: expected (status, codes) without the old text, where that can say less.
        notes: codes of notes that must be there.
    """

    base: str
    new: str
    deltas: str
    status: str
    codes: frozenset[str] = frozenset()
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    digests: tuple[str, frozenset[str]] | None = None
    notes: frozenset[str] = frozenset()
    symbol: str = "f"


def case(base: str, new: str, deltas: str, status: str, *found: str, **more: object) -> Case:
    return Case(base, new, deltas, status, frozenset(found), **more)  # type: ignore[arg-type]


PLAIN = """
def f(self, batch):
    self.check(batch)
    size = len(batch)
    out = self.run(batch, size)
    self.done(out)
    return out
"""

LATE = """
- name: log
  after: |
    self.done(...)
  insert: |
    self.log(out)
"""

TWO = """
def f(self, batch):
    self.warm(batch)
    self.capture(batch)
    return batch
"""

TWO_DELTAS = """
- name: warm halves
  replace: |
    self.warm(batch)
  with: |
    self.warm_halves(batch)
- name: capture halves
  replace: |
    self.capture(batch)
  with: |
    self.capture_halves(batch)
"""

EARLY = """
- name: early
  at: start
  insert: |
    if not batch:
        return None
"""

GUARD = """
def f(self, batch):
    if self.state == IDLE:
        self.first(batch)
        self.second(batch)
    return batch


IDLE = 0
BUSY = 1
"""

CASES: dict[str, Case] = {
    # ---- upstream changes what no delta is about
    "changed elsewhere": case(
        PLAIN,
        PLAIN.replace("len(batch)", "len(batch) + 1"),
        LATE,
        "clean",
        has=("size = len(batch) + 1", "self.log(out)", "return out"),
    ),
    "one operator far away": case(
        "def f(a, b):\n    if a < b:\n        a = b\n    c = a\n    d = c\n    e = d\n    return e\n",
        "def f(a, b):\n    if a <= b:\n        a = b\n    c = a\n    d = c\n    e = d\n    return e\n",
        "- {name: log, before: 'return e', insert: 'print(e)'}",
        "clean",
        has=("if a <= b:", "print(e)"),
    ),
    "reformatted": case(
        PLAIN,
        PLAIN.replace("self.run(batch, size)", "self.run(\n        batch,\n        size,\n    )").replace("self.done(out)", "self.done( out )"),
        LATE,
        "clean",
        has=("self.done( out )", "self.log(out)"),
    ),
    "docstring": case(
        PLAIN.replace("    self.check", '    """Old."""\n    self.check'),
        PLAIN.replace("    self.check", '    """New words."""\n    self.check'),
        LATE,
        "clean",
        has=('"""New words."""', "self.log(out)"),
    ),
    "moved inside the file": case(PLAIN, "X = 1\n\n\n" + PLAIN, LATE, "unchanged"),
    "marker words in upstream": case(
        PLAIN,
        PLAIN.replace("    size =", "    # ### PATCH START: theirs\n    size =").replace("len(batch)", "len(batch) - 1"),
        LATE,
        "conflict",
        "PK223",
    ),
    # ---- what a delta touches, stands in, stands beside, reads
    "touched text": case(
        PLAIN,
        PLAIN.replace("self.run(batch, size)", "self.run(batch, size, fast=True)"),
        "- {name: own, replace: 'out = self.run(...)', with: 'out = self.halves(batch)'}",
        "review",
        "PK510",
    ),
    "touched comment": case(
        PLAIN.replace("    out =", "    # one\n    out =").replace("size)\n", "size)  # eager\n"),
        PLAIN.replace("    out =", "    # one\n    out =").replace("size)\n", "size)  # graph\n"),
        "- {name: own, replace: 'out = self.run(...)', with: 'out = self.halves(batch)'}",
        "clean",
        notes=frozenset({"PK652"}),
        digests=("review", frozenset({"PK520"})),
    ),
    "touched operator": case(
        PLAIN.replace("len(batch)", "len(batch) + 1"),
        PLAIN.replace("len(batch)", "len(batch) - 1"),
        "- {name: own, replace: 'size = ...', with: 'size = 2'}",
        "review",
        "PK510",
    ),
    "operator beside a changed expression": case(
        "def f(a, b):\n    if a and b:\n        a = b\n    return a\n",
        "def f(a, b):\n    if a or b:\n        a = b\n    return a\n",
        "- {name: flip, within: 'if ...: ...', expr: 'b', nth: 1, with: 'not __upstream__'}",
        "review",
        "PK510",
    ),
    "header": case(
        GUARD,
        GUARD.replace("self.state == IDLE", "self.state != BUSY"),
        "- {name: log, after: 'self.first(batch)', insert: 'self.log(batch)'}",
        "review",
        "PK511",
        has=("if self.state != BUSY:", "self.log(batch)"),
    ),
    "loop condition": case(
        "def f(self):\n    while self.q:\n        r = self.q.pop()\n        self.go(r)\n    return 1\n",
        "def f(self):\n    while self.q or self.skipped:\n        r = self.q.pop()\n        self.go(r)\n    return 1\n",
        "- name: stop\n  after: 'r = ...'\n  insert: |\n    if r is None:\n        break",
        "review",
        "PK511",
        has=("while self.q or self.skipped:", "break"),
    ),
    "neighbour": case(
        PLAIN,
        PLAIN.replace("    return out\n", "    self.free(out)\n    return out\n"),
        LATE,
        "review",
        "PK512",
        has=("self.log(out)", "self.free(out)"),
    ),
    "binding": case(
        PLAIN,
        PLAIN.replace("size = len(batch)", "size = len(batch) * 2"),
        "- {name: log, after: 'self.done(...)', insert: 'self.log(size)'}",
        "review",
        "PK513",
    ),
    # ---- nothing lost
    "between two deltas": case(
        TWO,
        TWO.replace("    self.capture", "    self.sync()\n    self.capture"),
        TWO_DELTAS,
        "review",
        "PK515",
        has=("self.warm_halves(batch)", "self.sync()", "self.capture_halves(batch)"),
    ),
    "below an early return": case(
        PLAIN,
        PLAIN.replace("    return out\n", "    self.warm()\n    return out\n"),
        EARLY,
        "review",
        "PK514",
        has=("return None", "self.warm()"),
    ),
    "changed below an early return": case(
        PLAIN,
        PLAIN.replace("self.done(out)", "self.done(out, size)"),
        EARLY,
        "clean",
        digests=("review", frozenset({"PK514"})),
    ),
    "renamed name": case(
        PLAIN,
        PLAIN.replace("    return out\n", "    x = 0\n    self.measure(out)\n    return x\n"),
        """
        - name: renamed
          call:
            match: |
              out = self.run(...)
            targets: "parts"
        - name: done with parts
          replace: |
            self.done(out)
          with: |
            self.done(parts)
        - name: return parts
          replace: |
            return ...
          with: |
            return parts
        """,
        "conflict",
        "PK510",
        "PK515",
        "PK517",
        "PK232",
        "PK301",
    ),
    "removed binding": case(
        "def f(self):\n    a = self.a()\n    b = self.b()\n    c = self.c()\n    return c\n",
        "def f(self):\n    a = self.a()\n    b = self.b()\n    c = self.c()\n    self.use(a)\n    return c\n",
        "- {name: no a, remove: 'a = ...'}",
        "conflict",
        "PK517",
        "PK232",
        "PK301",
    ),
    "redirected call": case(
        PLAIN,
        PLAIN.replace("self.run(batch, size)", "self.run(batch, size, lora=None)"),
        "- name: halves\n  call: {match: 'self.run(...)', callee: self.run_halves}",
        "review",
        "PK519",
        has=("self.run_halves(batch, size, lora=None)",),
    ),
    "kept call gains an argument": case(
        PLAIN,
        PLAIN.replace("self.run(batch, size)", "self.run(batch, size, lora=None)"),
        "- name: rank\n  call: {match: 'self.run(...)', set: {rank: '0'}}",
        "clean",
        has=("self.run(batch, size, lora=None, rank=0)",),
        digests=("review", frozenset({"PK520"})),
    ),
    # ---- gone, ambiguous, absorbed
    "anchor gone": case(
        PLAIN, PLAIN.replace("self.done(out)", "self.finish(out)"), LATE, "conflict", "PK521"
    ),
    "anchor twice": case(
        PLAIN, PLAIN.replace("    return out\n", "    self.done(size)\n    return out\n"), LATE, "conflict", "PK521"
    ),
    "both sides change the same key": case(
        "def f(self, g):\n    key = (g.a, g.b)\n    return self.table[key]\n",
        "def f(self, g):\n    key = (g.a + g.b, g.c)\n    return self.table[key]\n",
        "- {name: key, replace: 'key = (g.a, g.b)', with: 'key = tuple(g)'}",
        "conflict",
        "PK521",
    ),
    "absorbed": case(
        PLAIN,
        PLAIN.replace("    return out\n", "    self.log(out)\n    return out\n"),
        LATE,
        "absorbed",
        "PK522",
    ),
    "absorbed replacement": case(
        PLAIN,
        PLAIN.replace("out = self.run(batch, size)", "out = self.halves(batch)"),
        "- {name: own, replace: 'out = self.run(...)', with: 'out = self.halves(batch)'}",
        "absorbed",
        "PK522",
    ),
    "absorbed in part": case(
        PLAIN,
        PLAIN.replace("    return out\n", "    self.log(out)\n    return out\n"),
        """
        - name: log
          after: |
            self.done(...)
          insert: |
            self.log(out)
            self.count(out)
        """,
        "review",
        "PK512",
        "PK523",
    ),
    # ---- signatures
    "parameter dropped, body equal": case(
        "def f(batch, size, unused):\n    x = batch\n    return run(x, size)\n\n\ndef run(*a, **k): ...\n",
        "def f(batch, size):\n    x = batch\n    return run(x, size)\n\n\ndef run(*a, **k): ...\n",
        "- name: rank\n  call: {match: 'run(...)', set: {rank: '0'}}",
        "clean",
        has=("def f(batch, size):", "run(x, size, rank=0)"),
        notes=frozenset({"PK651"}),
    ),
    "parameter added": case(
        "def f(batch):\n    x = batch\n    y = x\n    return y\n",
        "def f(batch, *, front=False):\n    x = batch\n    y = x\n    return y\n",
        "- {name: log, before: 'return y', insert: 'print(y)'}",
        "clean",
        notes=frozenset({"PK651"}),
    ),
    "parameters reordered": case(
        "def f(a, b):\n    x = a\n    return x\n",
        "def f(b, a):\n    x = a\n    return x\n",
        "- {name: log, before: 'return x', insert: 'print(x)'}",
        "review",
        "PK531",
    ),
    "default changed": case(
        "def f(a, b=1):\n    x = a\n    return x\n",
        "def f(a, b=2):\n    x = a\n    return x\n",
        "- {name: log, before: 'return x', insert: 'print(x)'}",
        "review",
        "PK531",
    ),
    "kind changed": case(
        "def f(a, b=1):\n    x = a\n    return x\n",
        "def f(a, *, b=1):\n    x = a\n    return x\n",
        "- {name: log, before: 'return x', insert: 'print(x)'}",
        "review",
        "PK531",
    ),
    "annotation changed": case(
        "def f(a: int):\n    x = a\n    return x\n",
        "def f(a: float):\n    x = a\n    return x\n",
        "- {name: log, before: 'return x', insert: 'print(x)'}",
        "clean",
        notes=frozenset({"PK651"}),
        digests=("review", frozenset({"PK531"})),
    ),
    "both add the same parameter": case(
        "def f(a):\n    return a\n",
        "def f(a, rank=None):\n    return a\n",
        "- {name: rank, parameter: {add: 'rank: int = 0'}}",
        "conflict",
        "PK518",
    ),
    "both add a parameter": case(
        "def f(a):\n    return a\n",
        "def f(a, size=None):\n    return a\n",
        "- {name: rank, parameter: {add: 'rank: int = 0'}}",
        "review",
        "PK510",
        has=("def f(a, size=None, rank: int = 0):",),
    ),
    "decorator added": case(
        "def g(x): return x\n\n\ndef f(a):\n    x = a\n    return x\n",
        "def g(x): return x\n\n\n@g\ndef f(a):\n    x = a\n    return x\n",
        "- {name: log, before: 'return x', insert: 'print(x)'}",
        "review",
        "PK530",
        has=("@g", "print(x)"),
    ),
    "yields one object, not a tuple": case(
        "def f(a):\n    x = a\n    y = x\n    yield a, x\n",
        "class Launch: ...\n\n\ndef f(a):\n    x = a\n    y = x\n    yield Launch(a, x)\n",
        "- {name: log, after: 'x = a', insert: 'print(x)'}",
        "review",
        "PK532",
    ),
    "new attribute of a parameter": case(
        "def f(pool):\n    x = pool.size\n    y = x\n    z = y\n    return z\n",
        "def f(pool):\n    x = pool.size + pool.hash_size\n    y = x\n    z = y\n    return z\n",
        "- {name: log, before: 'return z', insert: 'print(z)'}",
        "clean",
        notes=frozenset({"PK653"}),
    ),
}  # fmt: skip


def upgraded(world: World, item: Case, *, text: bool) -> EntryResult:
    world.release("1.0", {"engine": item.base})
    world.release("2.0", {"engine": item.new})
    world.deltas(item.deltas, item.symbol)
    world.regen()
    before = world.state()
    result = world.upgrade(old="1.0" if text else None)
    assert world.state() == before, "an upgrade without --write writes nothing"
    assert result.base_available is text
    assert not [f for f in result.findings if f.exit_code], result.findings
    (entry,) = result.entries
    return entry


@pytest.mark.parametrize("text", [True, False], ids=["text", "digests"])
@pytest.mark.parametrize("name", CASES)
def test_case(tmp_path: Path, name: str, text: bool) -> None:
    item = CASES[name]
    entry = upgraded(World(tmp_path), item, text=text)
    status, expected = (item.status, item.codes) if text or item.digests is None else item.digests
    told = [(d.name, d.status, [f"{f.code} {f.message} {f.details}" for f in d.reasons]) for d in entry.deltas]
    found = codes(entry)
    if not text and "PK520" not in expected:
        found -= {"PK520"}  # without the old text, a changed line may be another statement
    assert (entry.status, found) == (status, expected), (told, entry.reasons)
    if text:
        assert item.notes <= notes(entry)
        assert entry.base == textwrap.dedent(entry.base or "")
    else:
        assert entry.base is None
    if item.has:
        assert entry.ours_new is not None
        at = 0
        for line in item.has:
            found = entry.ours_new.find(line, at)
            assert found >= 0, (line, entry.ours_new)
            at = found + 1
