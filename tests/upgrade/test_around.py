"""What stands around a delta: clauses, bindings, exits, readers, writers, layout; and its code that can never run."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from afd_patchkit.api import RunOptions, regen

from .world import World, codes


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty project."""
    return World(tmp_path)


TRY = """
e = None

def f(self, n):
    try:
        value = self.load(n)
    except OSError as e:
        self.warn(e)
    else:
        self.note(value)
    finally:
        self.close()
    return n
"""
MATCH = """
found = None

def f(self, n):
    match n:
        case [one, two]:
            self.pair(one, two)
        case {"key": found}:
            self.look(found)
        case _:
            self.other(n)
    return n
"""
BEFORE_MATCH = MATCH.replace("    match n:", "    self.begin()\n    match n:")
LOOP = """
def f(self, batch):
    limit = self.limit
    for one in batch:
        self.step(one)
    else:
        self.done(batch)
    return batch
"""
PLAIN = """
n = None

def f(self, batch, n):
    self.check(batch)
    out = self.run(batch)
    return out
"""


def put(anchor: str, code: str) -> str:
    """A delta behind a statement."""
    return f"- name: ours\n  after: |\n    {anchor}\n  insert: |\n{textwrap.indent(code, '    ')}\n"


WARN, NOTE, CLOSE = (
    put("self.warn(e)", "self.ours(e)"),
    put("self.note(value)", "self.ours()"),
    put("self.close()", "self.ours()"),
)
OUT = put("out = self.run(batch)", "self.ours(out)")
CASES = {
    "B1 the caught type": (TRY, WARN, ("except OSError as e", "except Exception as e"), "review", {"PK511", "PK513"}),
    "B1 the caught type, nothing read": (TRY, put("self.warn(e)", "self.ours()"), ("except OSError", "except (OSError, ValueError)"), "review", {"PK511"}),
    "B1 not ours": (TRY, NOTE, ("except OSError as e", "except Exception as e"), "clean", set()),
    "B2 else became finally": (TRY, NOTE, ("    else:\n        self.note(value)\n    finally:\n        self.close()\n", "    finally:\n        self.note(value)\n"), "review", None),
    "B2 a pattern": (MATCH, put("self.look(found)", "self.ours()"), ('{"key": found}', '{"name": found}'), "review", {"PK511"}),
    "B2 a guard of a case": (MATCH, put("self.other(n)", "self.ours()"), ("case _:", "case _ if n:"), "review", {"PK511"}),
    "B2 the pattern of another case": (MATCH, put("self.look(found)", "self.ours()"), ("[one, two]", "[one, two, *_]"), "clean", set()),
    "B2 the pattern of the first case": (MATCH, put("self.pair(one, two)", "self.ours()"), ("[one, two]", "[one, *two]"), "review", {"PK511"}),
    "B2 the head of a match beside it": (BEFORE_MATCH, put("self.begin()", "self.ours()"), ("match n:", "match n.kind:"), "review", {"PK512"}),
    "B2 a later case beside it": (BEFORE_MATCH, put("self.begin()", "self.ours()"), ("self.look(found)", "self.look(found, n)"), "clean", set()),
    "B2 a loop's else": (LOOP, put("self.done(batch)", "self.ours()"), ("    else:\n        self.done(batch)\n", "        self.done(batch)\n"), "review", None),
    "B3 a handler's name": (TRY, put("self.warn(...)", "self.ours(e)"), ("OSError as e:\n        self.warn(e)", "OSError as err:\n        self.warn(err)"), "review", None),
    "B3 a capture": (MATCH, put("self.look(...)", "self.ours(found)"), ('"key": found}:\n            self.look(found)', '"key": other}:\n            self.look(other)'), "review", None),
    "B4 global": (PLAIN, put("self.check(batch)", "limit = 1\nself.ours(limit)"), ("    self.check", "    global limit\n    self.check"), "review", {"PK512", "PK513"}),
    "B5 a parameter became a global": (PLAIN, put("self.check(...)", "self.ours(n)"), ("(self, batch, n)", "(self, batch, m)"), "review", {"PK513"}),
    "B5 a parameter that ours does not read": (PLAIN, OUT, ("(self, batch, n)", "(self, batch, m)"), "clean", set()),
    "B6 return": (PLAIN, OUT, ("    self.check(batch)\n", "    if n < 0:\n        return n\n    self.check(batch)\n"), "review", {"PK551"}),
    "B6 raise": (PLAIN, OUT, ("    self.check(batch)\n", "    if n < 0:\n        raise ValueError(n)\n    self.check(batch)\n"), "review", {"PK551"}),
    "B6 continue": (LOOP, put("self.step(one)", "self.ours(one)"), ("        self.step", "        if not one:\n            continue\n        self.step"), "review", None),
    "B6 in a function of its own": (PLAIN, OUT, ("    self.check(batch)\n", "    def inner():\n        return n\n    self.check(batch)\n"), "clean", set()),
    "B6 another one": (PLAIN.replace("    self.check(batch)\n", "    if n:\n        return n\n    self.check(batch)\n"), OUT, ("        return n\n", "        return n + 1\n"), "clean", set()),
    "B6 in a loop of its own": (PLAIN, OUT, ("    self.check(batch)\n", "    for one in batch:\n        break\n    self.check(batch)\n"), "clean", set()),
    "B7 a reader": (PLAIN, put("self.check(batch)", "batch = [batch]"), ("    return out", "    self.send(batch)\n    return out"), "review", {"PK552"}),
    "B7 a reader of an attribute": (PLAIN, put("self.check(batch)", "self.mode = 1"), ("    return out", "    self.send(self.mode)\n    return out"), "review", {"PK552"}),
    "B7 a reader of something else": (PLAIN, put("self.check(batch)", "self.mode = 1"), ("    return out", "    self.send(self.modes)\n    return out"), "clean", set()),
    "B8 a writer": (PLAIN, put("out = self.run(batch)", "self.ours(self.state)"), ("    self.check(batch)\n", "    self.state = None\n    self.check(batch)\n"), "review", {"PK553"}),
    "B8 a writer below": (PLAIN, put("self.check(batch)", "self.ours(self.state)"), ("    return out", "    self.state = None\n    return out"), "clean", set()),
    "B9 two stars": (PLAIN, "- name: ours\n  call:\n    match: |\n      self.run(...)\n    set: {rank: '3'}\n", ("self.run(batch)", "self.run(batch, **self.opts)"), "review", None),
    "B9 a star": (PLAIN, "- name: ours\n  call:\n    match: |\n      self.run(...)\n    set: {rank: '3'}\n", ("self.run(batch)", "self.run(*batch)"), "review", None),
    "B11 quotes": (PLAIN.replace("self.check(batch)", "self.check('batch')"), put("self.check('batch')", "self.ours()"), ("'batch'", '"batch"'), "clean", set()),
    "B11 parentheses": (PLAIN, OUT, ("out = self.run(batch)", "out = (self.run(batch))"), "clean", set()),
    "B11 a formatter's commas": (PLAIN, OUT, ("self.run(batch)", "self.run(\n        batch,\n    )"), "clean", set()),
    "B12 rewritten, not gone": (
        "def f(self, config):\n    self.control = self._make(config)\n    return self\n", "- name: ours\n  remove: |\n    self.control = ...\n",
        ("self._make(config)", "make(config.p)"), "review", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_around(world: World, name: str) -> None:
    base, deltas, (old, new), status, expected = CASES[name]
    assert old in base
    world.release("1.0", {"engine": base})
    world.release("2.0", {"engine": base.replace(old, new)})
    world.deltas(deltas)
    world.regen()
    (entry,) = world.upgrade().entries
    assert entry.status == status, (codes(entry), entry.reasons, entry.deltas)
    if expected is not None:
        assert codes(entry) == expected


DEAD = {
    "at the end": ("def f(n):\n    return n\n", "- name: ours\n  at: end\n  insert: |\n    print(n)\n"),
    "after a return": ("def f(n):\n    return n\n", put("return n", "print(n)")),
    "after a raise": (
        "def f(n):\n    if n:\n        raise ValueError\n    return n\n",
        put("raise ValueError", "print(n)"),
    ),
    "behind branches": (
        "def f(n):\n    if n:\n        return 1\n    else:\n        return 2\n",
        "- name: ours\n  at: end\n  insert: |\n    print(n)\n",
    ),
    "behind an endless loop": (
        "def f(n):\n    while True:\n        n.go()\n",
        "- name: ours\n  at: end\n  insert: |\n    print(n)\n",
    ),
}
if sys.version_info >= (3, 11):
    DEAD["behind a handler of groups"] = (
        "def f(n):\n    try:\n        return n.x\n    except* AttributeError:\n        raise\n",
        "- name: ours\n  at: end\n  insert: |\n    print(n)\n",
    )
ALIVE = {
    "a loop that ends": (
        "def f(n):\n    while True:\n        break\n",
        "- name: ours\n  at: end\n  insert: |\n    print(n)\n",
    ),
    "a branch goes on": (
        "def f(n):\n    if n:\n        return 1\n",
        "- name: ours\n  at: end\n  insert: |\n    print(n)\n",
    ),
    "a handler goes on": (
        "def f(n):\n    try:\n        return n.x\n    except AttributeError:\n        pass\n",
        "- name: ours\n  at: end\n  insert: |\n    print(n)\n",
    ),
}


@pytest.mark.parametrize(
    ("text", "deltas", "expected"),
    [*((*c, {"PK225"}) for c in DEAD.values()), *((*c, set()) for c in ALIVE.values())],
    ids=[*DEAD, *ALIVE],
)
def test_b10_code_that_can_never_run(world: World, text: str, deltas: str, expected: set[str]) -> None:
    world.release("1.0", {"engine": text})
    world.deltas(deltas)
    report = regen(world.project, RunOptions(sources=world.options(acme="acme-1.0")))
    assert {f.code for f in report.findings if f.exit_code} == expected
    assert all(
        f.delta == "ours" and f.manifest is not None and f.manifest.line > 5 for f in report.findings if f.exit_code
    )
