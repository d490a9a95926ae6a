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
OF_CLASS = """
n = None

class f(object):
    def first(self, n):
        self.state = n
        return n

    def run(self, batch, n):
        self.check(batch)
        self.begin(1)
        out = self.run(batch)
        return out

    def last(self, n):
        self.end(n)
        return n
"""
NESTED = """
def f(self, batch, n):
    limit = 1
    def inner(k):
        self.zero(k)
        self.one(k)
        self.two(k)
        return k
    def other(k):
        self.nine(k)
        return k
    self.go(inner)
    return limit
"""
LONG = """
def f(self, batch, n):
    self.check(batch)
    self.begin(1)
    self.mid(1)
    try:
        self.three(1)
    except ValueError:
        self.four(1)
    match self.kind:
        case 1:
            self.five(1)
        case 2:
            self.six(1)
    for i in self.all:
        self.seven(i)
    with self.lock:
        self.eight(1)
    self.near(1)
    self.last(1)
    return batch
"""
CHECK, READS, SETS = (
    "    self.check(batch)\n",
    put("out = self.run(batch)", "self.ours(n)"),
    put("self.check(batch)", "n = [n]"),
)
IN_CLASS = put("out = self.run(batch)", "self.ours(n, self.state)")
LAST = put("self.last(1)", "self.ours(self.state, batch)")
BEGIN = put("self.begin(1)", "n = [n]")
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

BOUND = {
    "with": "with self.x() as (n, m):\n    pass", "for": "for a, *n in self.x():\n    pass", "import": "import n.b", "from": "from acme import x as n",
    "walrus": "if (n := self.x()):\n    pass", "walrus in a comprehension": "self.y([[n := i for i in b] for b in batch])",
    "handler": "try:\n    self.x()\nexcept ValueError as n:\n    pass", "case": "match batch:\n    case [int(real=n)] | {'k': n}:\n        pass",
    "rest of a case": "match batch:\n    case {**n}:\n        pass", "guard": "match batch:\n    case str() if (n := 1):\n        pass",
    "def": "def n():\n    pass", "class": "class n:\n    pass", "del": "del n", "augmented": "n += 1", "annotated": "n: int = 1",
    "chain": "m = [n, k] = self.x()", "nonlocal": "def g():\n    def h():\n        nonlocal n\n        n = 1\n    h()\ng()",
}  # fmt: skip
NOT_BOUND = {
    "a function's own": "def g():\n    n = 1\n    return n", "a parameter": "def g(n):\n    return n", "a lambda's": "self.y(lambda n: n)",
    "a comprehension's": "self.y([n for n in batch])", "a class's": "class G:\n    n = 1", "an attribute": "self.n = 1", "a keyword": "self.y(n=1)",
}  # fmt: skip
READ = {
    "f-string": "self.y(f'{batch:{n}}')", "star": "self.y(**n)", "augmented": "n.x += 1", "deleted": "del n[0]", "case": "match batch:\n    case n.x:\n        pass",
    "class in a case": "match batch:\n    case n():\n        pass", "guard": "match batch:\n    case str() if n:\n        pass", "caught": "try:\n    self.x()\nexcept n:\n    pass",
    "closure": "def g():\n    def h():\n        return n\n    return h", "lambda": "self.y(lambda: n)", "default": "def g(*, a=n):\n    pass", "decorator": "@n\ndef g():\n    pass",
    "base": "class G(metaclass=n):\n    pass", "comprehension": "self.y({i: n for i in batch})", "all locals": "self.y(locals())", "set again": "n = self.x()",
}  # fmt: skip
SET = {
    "tuple": "*self.state, b = 1, 2", "for": "for self.state in batch:\n    pass", "with": "with self.x() as self.state:\n    pass", "element": "self.state[0] = 1",
    "part": "self.state.x.y = 1", "setattr": "setattr(self, 'state', 1)", "delattr": "delattr(self, 'state')", "in a lambda": "g = lambda: setattr(self, 'state', 1)",
    "in a function": "def g():\n    self.state = 1\ng()", "deleted": "del self.state",
}  # fmt: skip
LEFT = {
    "in a handler": "try:\n    self.x()\nexcept ValueError:\n    raise", "in finally": "try:\n    self.x()\nfinally:\n    if n:\n        return n", "in elif": "if n:\n    pass\nelif self.x:\n    return n",
    "in a loop": "while n:\n    return n", "in a case": "match n:\n    case 1:\n        return n", "a loop's else": "for i in batch:\n    pass\nelse:\n    return n", "exit": "if n:\n    exit()", "never true": "if n:\n    assert False",
}  # fmt: skip


def above(code: str) -> tuple[str, str]:
    """A change of `PLAIN`: some code more, not beside the delta."""
    return CHECK, textwrap.indent(code, "    ") + "\n" + CHECK


def below(code: str) -> tuple[str, str]:
    """The same behind the delta."""
    return "    return out\n", textwrap.indent(code, "    ") + "\n    return out\n"


CASES |= {
    **{f"B5 bound by {name}": (PLAIN, READS, above(code), "review", None) for name, code in BOUND.items()},
    **{f"B5 not bound by {name}": (PLAIN, READS, above(code), "clean", set()) for name, code in NOT_BOUND.items()},
    **{f"B7 read by {name}": (PLAIN, SETS, below(code), "review", None) for name, code in READ.items()},
    **{f"B7 not read by {name}": (PLAIN, SETS, below(code), "clean", set()) for name, code in NOT_BOUND.items()},
    **{f"B8 set by {name}": (PLAIN, put("out = self.run(batch)", "self.ours(self.state)"), above(code), "review", {"PK553"}) for name, code in SET.items()},
    **{f"B6 left {name}": (PLAIN, OUT, above(code), "review", None) for name, code in LEFT.items()},
    "B5 bound behind it in its loop": (LOOP, put("self.step(one)", "self.ours(limit)"), ("        self.step(one)\n", "        self.step(one)\n        self.more()\n        limit = 1\n"), "review", None),
    "B5 bound behind its loop": (LOOP, put("self.step(one)", "self.ours(limit)"), ("    return batch\n", "    limit = 1\n    return batch\n"), "clean", set()),
    "B5 in a class": (OF_CLASS, IN_CLASS, ("        self.check(batch)\n", "        with self.x() as n:\n            pass\n        self.check(batch)\n"), "review", {"PK513"}),
    "B5 in another method": (OF_CLASS, IN_CLASS, ("        self.state = n\n", "        n = 2\n        self.state = n\n"), "clean", set()),
    "B4 in a class": (OF_CLASS, put("self.begin(1)", "limit = 1\nself.ours(limit)"), ("        self.check(batch)\n", "        global limit\n        self.check(batch)\n"), "review", None),
    "B4 nonlocal": (NESTED, put("self.one(k)", "limit = 2\nself.ours(limit)"), ("        self.zero(k)\n", "        nonlocal limit\n        self.zero(k)\n"), "review", None),
    "B4 nonlocal elsewhere": (NESTED, put("self.one(k)", "limit = 2\nself.ours(limit)"), ("        self.nine(k)\n", "        nonlocal limit\n        self.nine(k)\n"), "clean", set()),
    "B5 of the function around, below": (NESTED, put("self.one(k)", "self.ours(limit)"), ("    self.go(inner)\n", "    limit = 2\n    self.go(inner)\n"), "review", {"PK513"}),
    "B5 of the function around, set beside": (NESTED, put("self.one(k)", "self.ours(limit)"), ("        self.nine(k)\n", "        nonlocal limit\n        limit = 2\n        self.nine(k)\n"), "review", {"PK513"}),
    "B5 of a function beside": (NESTED, put("self.one(k)", "self.ours(limit)"), ("        self.nine(k)\n", "        limit = 2\n        self.nine(k)\n"), "clean", set()),
    "B6 the condition of an exit": (PLAIN.replace(CHECK, f"    if n:\n        return n\n{CHECK}"), OUT, ("    if n:\n", "    if n or batch:\n"), "review", {"PK551"}),
    "B6 one exit for another": (PLAIN.replace(CHECK, f"    if n:\n        return n\n{CHECK}"), OUT, ("    if n:\n        return n\n", "    while batch:\n        raise OSError\n"), "review", {"PK551"}),
    "B6 a later round": (LOOP, put("self.step(one)", "self.ours(one)"), ("        self.step(one)\n", "        self.step(one)\n        self.more()\n        if not one:\n            break\n"), "review", None),
    "B6 the else of an inner loop": (LOOP.replace("        self.step", "        self.begin(one)\n        self.step"), put("self.step(one)", "self.ours(one)"), ("        self.begin(one)\n", "        for two in one:\n            pass\n        else:\n            break\n        self.begin(one)\n"), "review", {"PK551"}),
    "B6 a break keeps from the else": (LOOP, put("self.done(batch)", "self.ours()"), ("        self.step(one)\n", "        self.step(one)\n        if not one:\n            break\n"), "review", {"PK551"}),
    "B6 in another method": (OF_CLASS, IN_CLASS, ("        self.state = n\n", "        if not n:\n            return 1\n        self.state = n\n"), "clean", set()),
    "B7 a statement that changed": (LONG, BEGIN, ("self.near(1)", "self.near(n)"), "review", {"PK552"}),
    "B7 a type that is caught now": (LONG, BEGIN, ("except ValueError", "except n"), "review", {"PK552"}),
    "B7 a handler more": (LONG, BEGIN, ("    except ValueError", "    except n:\n        pass\n    except ValueError"), "review", {"PK552"}),
    "B7 a guard": (LONG, BEGIN, ("case 2:", "case 2 if n:"), "review", {"PK552"}),
    "B7 a subject": (LONG, BEGIN, ("match self.kind", "match n"), "review", {"PK552"}),
    "B7 a loop": (LONG, BEGIN, ("in self.all", "in n"), "review", {"PK552"}),
    "B7 a context manager": (LONG, BEGIN, ("with self.lock:", "with self.lock, n:"), "review", {"PK552"}),
    "B7 moved behind the delta": (LONG.replace(CHECK, f"    self.send(n)\n{CHECK}"), BEGIN, (f"    self.send(n)\n{CHECK}    self.begin(1)\n    self.mid(1)\n", f"{CHECK}    self.begin(1)\n    self.mid(1)\n    self.send(n)\n"), "review", {"PK552"}),
    "B7 in another method": (OF_CLASS, put("self.check(batch)", "n = [n]"), ("        self.end(n)\n", "        self.end(n)\n        self.send(n)\n"), "clean", set()),
    "B7 a part of the whole that is passed on": (LONG, put("self.begin(1)", "batch.mode = 1"), ("self.near(1)", "self.near(batch)"), "review", {"PK552"}),
    "B7 another part": (LONG, put("self.begin(1)", "batch.mode = 1"), ("self.near(1)", "self.near(batch.size)"), "clean", set()),
    "B8 a statement that changed": (LONG, LAST, ("self.begin(1)", "self.state = self.begin(1)"), "review", {"PK553"}),
    "B8 a loop's target": (LONG, LAST, ("for i in", "for self.state, i in"), "review", {"PK553"}),
    "B8 an element of a name": (LONG, LAST, ("    self.begin(1)\n", "    batch[0] = 1\n    self.begin(1)\n"), "review", {"PK553"}),
    "B8 a part of a name": (LONG, LAST, ("    self.begin(1)\n", "    batch.size += 1\n    self.begin(1)\n"), "review", {"PK553"}),
    "B8 another method's": (OF_CLASS, IN_CLASS, ("        self.state = n\n", "        self.state = n + 1\n        self.more()\n"), "clean", set()),
    "B8 what both set": (LONG, put("self.last(1)", "self.mode = 1"), ("    self.begin(1)\n", "    self.mode = 2\n    self.begin(1)\n"), "review", {"PK553"}),
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
