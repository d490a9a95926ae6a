"""Our own code leans on upstream: what does not exist or does not fit at the pin, and what becomes of it on an upgrade."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from afd_patchkit.api import RunOptions, regen
from afd_patchkit.findings.report import Report
from afd_patchkit.references.contract import changes
from tests.upgrade.world import World, codes


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty project."""
    return World(tmp_path)


ENGINE = """
import dataclasses
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from acme.base import Base
from acme.tools import helper, shared

class Mode(Enum):
    ON = 1
    OFF = 2

class K:
    def __init__(self, a):
        self.a = a

@dataclass
class Batch:
    size: int
    rank: int = 0

    def split(self, at, *, hard=False):
        return [self.size, at, hard]

def helper_of(n, strict=False):
    return n

def order(a, b, c):
    return a

def take(x, *rest, **more):
    return x

class U(Base):
    limit = 3

    def __init__(self, batch: Batch):
        self.state = 1
        self.batch = batch
        self.own = Batch(1)

    def _make(self, x):
        return x

    @property
    def size(self) -> int:
        return 1

    @classmethod
    def build(cls, n):
        return cls(n)

    @staticmethod
    def plain(n):
        return n

    def run(self, batch: Batch):
        out = batch.size
        return out

def f(batch: Batch):
    out = batch.size
    return out
"""
BASE = """
class Base:
    def __init__(self):
        self.mine = 1

    def from_base(self, x):
        return x
"""
TOOLS = """
def helper(x):
    return x

def shared():
    return 1

def trim(x):
    return x
"""
OTHER = """
def helper(x):
    return [x, x]
"""
FILES = {"engine": ENGINE, "base": BASE, "tools": TOOLS, "other": OTHER}


@dataclass(frozen=True)
class Case:
    """One piece of our own code, and what must be said of it.

    Attributes:
        ours: statements put behind `out = batch.size`.
        symbol: where.
        imports: statements of the manifest.
        change: text of the new release for text of the old one, by module.
        status: of the entry on the upgrade; None where the pin alone is judged.
        codes: of findings, at the pin or on the upgrade.
        says: words that a finding must have.
    """

    ours: str
    symbol: str = "f"
    imports: tuple[str, ...] = ()
    change: tuple[tuple[str, str, str], ...] = ()
    status: str | None = None
    codes: frozenset[str] = frozenset()
    says: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)


def wrong(ours: str, code: str, *says: str, symbol: str = "f", imports: tuple[str, ...] = ()) -> Case:
    """Our code does not work at the pin."""
    return Case(ours, symbol, imports, codes=frozenset({code}), says=says)


def write(world: World, case: Case) -> None:
    """The project and its releases."""
    world.release("1.0", {**FILES, **case.files})
    if case.change:
        new = {**FILES, **case.files}
        for module, old, text in case.change:
            assert old in new[module], (module, old)
            new[module] = new[module].replace(old, text)
        world.release("2.0", new)
    body = textwrap.indent(case.ours, " " * 10)
    world.deltas(
        f"- name: ours\n  after: |\n    out = batch.size\n  insert: |\n{textwrap.indent(case.ours, '    ')}\n",
        symbol=case.symbol,
    )
    path = world.root / "manifests/set/runner.yaml"
    lines = "".join(f"  - {line}\n" for line in case.imports)
    if lines:
        path.write_text(path.read_text().replace("entries:", f"imports:\n{lines}entries:"))
    assert body


def at_the_pin(world: World) -> Report:
    """Generate, whatever comes of it."""
    return regen(world.project, RunOptions(sources=world.options(acme="acme-1.0")))


WORKS = [
    "helper(1)",
    "helper(x=2)",
    "helper_of(1)\nhelper_of(1, True)\nhelper_of(n=1, strict=2)",
    "take(1, 2, 3, a=4)\ntake(*batch.split(1))",
    "K(1).a\nBatch(1)\nBatch(size=1, rank=2)\nBatch(1).split(2, hard=True)",
    "dataclasses.replace(batch, size=2)",
    "mode = Mode.ON\nmode.name\nMode['ON']",
    "up.trim(1)",
    "try:\n    batch.nothing\nexcept AttributeError:\n    pass",
    "if hasattr(batch, 'nothing'):\n    batch.nothing",
    "batch.mine = 1\nprint(batch.mine)",
    "batch.mine = 1\nbatch.mine += 1\ndel batch.mine",
    "other = [b.whatever for b in batch.split(1)]",
    "def inner(batch):\n    return batch.whatever\ninner(1)",
    "for batch_ in [1]:\n    batch_.whatever",
]


@pytest.mark.parametrize("ours", WORKS)
def test_what_works_is_let_be(world: World, ours: str) -> None:
    write(world, Case(ours, imports=("import acme.tools as up",)))
    report = at_the_pin(world)
    assert not report.exit_code, report.findings


METHOD_WORKS = [
    "self._make(1)", "self.from_base(1)", "super().from_base(1)", "U._make(self, 1)", "self.limit\nself.state\nself.size",
    "self.build(1)\nU.build(1)\nself.plain(1)\nU.plain(1)\ntype(self).plain(1)", "self.batch.size\nself.own.split(1)", "self.__class__",
    "self.extra = 1\nprint(self.extra)",
]  # fmt: skip


@pytest.mark.parametrize("ours", METHOD_WORKS)
def test_what_works_in_a_method_is_let_be(world: World, ours: str) -> None:
    write(world, Case(ours, "U.run"))
    report = at_the_pin(world)
    assert not report.exit_code, report.findings


WRONG = {
    "A1 too many arguments": wrong("shared(1, 2, 3)", "PK331", "3 positional arguments, it takes none"),
    "A1 a missing argument": wrong("helper()", "PK331", "nothing for x"),
    "A1 an unknown keyword": wrong("helper_of(1, harder=True)", "PK331", "no parameter harder"),
    "A1 given twice": wrong("helper_of(1, n=2)", "PK331", "n is given twice"),
    "A2 no such name": wrong(
        "pass", "PK330", "has no `hlper`", "near: helper", imports=("from acme.tools import hlper",)
    ),
    "A2 no such module": wrong("pass", "PK330", "acme.tolls", "near: acme.tools", imports=("import acme.tolls",)),
    "A2 no such module of ours": wrong(
        "pass", "PK330", "generated_acme", imports=("from generated_acme.set.halves import x",)
    ),
    "A2 an import in the code": wrong("from acme.tools import nothing", "PK330", "has no `nothing`"),
    "a name of a module": wrong(
        "up.trimm(1)", "PK330", "has no `trimm`", "near: trim", imports=("import acme.tools as up",)
    ),
    "a method": wrong("self.maek(1)", "PK330", "has no `maek`", symbol="U.run"),
    "a method of the class": wrong("U._make(1)", "PK331", "nothing for x", symbol="U.run"),
    "a base's method": wrong("super().from_base()", "PK331", "nothing for x", symbol="U.run"),
    "a keyword of a method": wrong("self._make(1, y=2)", "PK331", "no parameter y", symbol="U.run"),
    "a class method": wrong("U.build()", "PK331", "nothing for n", symbol="U.run"),
    "a static method": wrong("self.plain()", "PK331", "nothing for n", symbol="U.run"),
    "an attribute of an attribute": wrong(
        "self.batch.length", "PK330", "acme.engine:Batch has no `length`", symbol="U.run"
    ),
    "an attribute of what was made": wrong("self.own.length", "PK330", "has no `length`", symbol="U.run"),
    "a member of an enumeration": wrong("Mode.OFFF", "PK330", "has no `OFFF`", "near: OFF"),
    "a dataclass": wrong("Batch()", "PK331", "nothing for size"),
    "a dataclass's keyword": wrong("Batch(1, ranks=2)", "PK331", "no parameter ranks"),
    "a class": wrong("K()", "PK331", "nothing for a"),
    "what only objects have": wrong("super().mine", "PK330", "has no `mine`", symbol="U.run"),
    "an instance made in place": wrong("K(1).b", "PK330", "acme.engine:K has no `b`"),
    "a parameter": wrong("batch.length", "PK330", "acme.engine:Batch has no `length`"),
    "a module is no function": wrong("up(1)", "PK331", "it is a module", imports=("import acme.tools as up",)),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_does_not_work_is_an_error(world: World, case: Case) -> None:
    write(world, case)
    report = at_the_pin(world)
    errors = [f for f in report.findings if f.exit_code]
    assert {f.code for f in errors} == case.codes, report.findings
    text = "\n".join(f"{f.message}\n" + "\n".join(f.details) for f in errors)
    assert all(words in text for words in case.says), text
    assert not report.written
    (place,) = {f.manifest for f in errors}
    assert place is not None
    line = (world.root / place.file).read_text().split("\n")[place.line - 1]
    assert (
        line[place.column - 1 :].lstrip("- ").startswith((*case.ours.split("\n"), *case.imports)) or case.ours in line
    ), line


def test_a_name_that_another_module_of_ours_lacks(world: World) -> None:
    write(world, Case("pass", imports=("from generated_acme.set.more import g, nothing",)))
    world.write(
        "manifests/set/more.yaml",
        """
        schema: 1
        module: set/more.py
        summary: More.
        pin: acme
        entries:
          - {symbol: acme.engine:f, name: g, reason: a test, share: true}
    """,
    )
    path = world.root / "manifests/set/runner.yaml"
    path.write_text(path.read_text().replace("    reason: a test", "    reason: a test\n    share: true"))
    (error,) = [f for f in at_the_pin(world).findings if f.exit_code]
    assert error.code == "PK330"
    assert "generated_acme.set.more has no `nothing`" in error.message


SLOTTED = {
    "slots": "class S:\n    __slots__ = ('x',)\n\n    def run(self, batch):\n        out = batch.size\n        return out\n"
}


@pytest.mark.parametrize(("ours", "expected"), [("self.x = 1", set()), ("self.extra = 1", {"PK330"})])
def test_attributes_that_slots_refuse(world: World, ours: str, expected: set[str]) -> None:
    write(world, Case(ours, "S.run", files=SLOTTED))
    path = world.root / "manifests/set/runner.yaml"
    path.write_text(path.read_text().replace("acme.engine:", "acme.slots:"))
    assert {f.code for f in at_the_pin(world).findings if f.exit_code} == expected


def became(ours: str, status: str, *change: tuple[str, str, str], **more: object) -> Case:
    """Our code works at the pin; what becomes of it on the new release."""
    return Case(ours, status=status, change=change, **more)  # type: ignore[arg-type]


GOES = "class K:\n    def __init__(self, a):\n        self.a = a\n\n    def go(self, n, m=1):\n        return n\n"
MADE = """

class M:
    def __init__(self):
        self.a = 1

class N:
    def go(self):
        return 1

class P(K):
    def __init__(self, a):
        self.b = a

    def go(self):
        return 1
"""
ROWS = """
from collections.abc import MutableSequence

@dataclass
class Rows(MutableSequence[int]):
    first: int = 1
    last: int = 2
"""
ACTS = """

class A:
    def act(self, n):
        return n

class W(A):
    def __init__(self):
        self.act = print

class V(W):
    def run(self, batch):
        out = batch.size
        return out
"""
UP = ("import acme.tools as up",)
MORE = ("engine", "    rank: int = 0\n", "    rank: int = 0\n    more: int = 0\n")
ODD = {"engine": ENGINE + "\n\n@dataclass\nclass Odd:\n    size: int\n    rank: int\n    odd: int = 0\n"}
TRIM = ("tools", "def trim(x):", "def strip(x):")
UPGRADED = {
    "A4 a function renamed": became("up.trim(1)", "conflict", TRIM, imports=UP, says=("likely successor: acme.tools:strip",)),
    "A5 a method renamed": became("self._make(1)", "conflict", ("engine", "def _make", "def _build"), symbol="U.run", says=("U._build",)),
    "A5 a base's method renamed": became("self.from_base(1)", "conflict", ("base", "def from_base", "def of_base"), symbol="U.run"),
    "A6 an attribute": became("self.state", "conflict", ("engine", "self.state", "self.states"), symbol="U.run"),
    "A6 an attribute that is added to": became("self.state += 1", "conflict", ("engine", "self.state", "self.states"), symbol="U.run"),
    "A6 an attribute that is deleted": became("del self.state", "conflict", ("engine", "self.state", "self.states"), symbol="U.run"),
    "A7 a class needs more": became("K(1)", "conflict", ("engine", "def __init__(self, a):", "def __init__(self, a, b):")),
    "A7 a dataclass needs more": became("Batch(1)", "conflict", ("engine", "    size: int\n", "    size: int\n    length: int\n")),
    "A8 a method needs more": became("self._make(1)", "conflict", ("engine", "def _make(self, x)", "def _make(self, x, y)"), symbol="U.run"),
    "A8 by the class": became("U._make(self, 1)", "conflict", ("engine", "def _make(self, x)", "def _make(self, x, y)"), symbol="U.run"),
    "A8 by super": became("super().from_base(1)", "conflict", ("base", "(self, x)", "(self, x, y)"), symbol="U.run"),
    "A8 by the module": became("up.trim(1)", "conflict", ("tools", "trim(x)", "trim(x, y)"), imports=UP),
    "A11 a default": became("helper_of(1)", "review", ("engine", "strict=False", "strict=True"), says=("default of strict",)),
    "A11 a default that we give": became("helper_of(1, False)", "unchanged", ("engine", "strict=False", "strict=True")),
    "A12 async": became("out = helper_of(1)", "review", ("engine", "def helper_of", "async def helper_of")),
    "A12 a property": became("out = self._make", "review", ("engine", "    def _make(self, x):", "    @property\n    def _make(self):"), symbol="U.run"),
    "A12 an annotation": became(
        "self.size", "review", ("engine", "def size(self) -> int", "def size(self) -> list"), symbol="U.run", says=("its annotation",)
    ),
    "A12 a generator": became("helper(1)", "review", ("tools", "def helper(x):\n    return x", "def helper(x):\n    yield x")),
    "A13 imported from elsewhere": became("helper(1)", "review", ("engine", "from acme.tools import helper, shared", "from acme.other import helper\nfrom acme.tools import shared")),
    "A13 only moved": became("helper(1)", "unchanged", ("engine", "from acme.tools import helper, shared", "from acme.moved import helper\nfrom acme.tools import shared"), files={"moved": TOOLS}),
    "A15 slots": became("self.extra = 1\nself.state", "review", ("engine", "    limit = 3\n", "    __slots__ = ('state', 'batch', 'own')\n"), symbol="U.run"),
    "A17 order": became("order(1, 2, 3)", "review", ("engine", "order(a, b, c)", "order(a, c, b)"), says=("argument 2 reaches c",)),
    "A17 order, by keyword": became("order(a=1, b=2, c=3)", "unchanged", ("engine", "order(a, b, c)", "order(a, c, b)")),
    "an optional parameter": became("helper_of(1)", "unchanged", ("engine", "strict=False", "strict=False, more=None")),
    "an optional field": became("Batch(1)", "unchanged", ("engine", "    rank: int = 0\n", "    rank: int = 0\n    more: int = 0\n")),
    "a parameter that we do not give is gone": became("helper_of(1)", "unchanged", ("engine", ", strict=False", "")),
    "a parameter that we give is gone": became("helper_of(1, strict=True)", "conflict", ("engine", ", strict=False", "")),
    "keyword-only now": became("helper_of(1, True)", "conflict", ("engine", "n, strict", "n, *, strict")),
    "positional-only now": became("helper_of(n=1)", "conflict", ("engine", "(n, strict=False)", "(n, /, strict=False)")),
    "a body": became("helper_of(1)", "unchanged", ("engine", "def helper_of(n, strict=False):\n    return n", "def helper_of(n, strict=False):\n    return n + 1")),
    "a method moved to the base": became(
        "self._make(1)", "unchanged", ("engine", "    def _make(self, x):\n        return x\n", ""),
        ("base", "class Base:\n", "class Base:\n    def _make(self, x):\n        return x\n\n"), symbol="U.run",
    ),
    "a member gone": became("Mode.OFF", "conflict", ("engine", "    OFF = 2\n", "")),
    "a member more": became("Mode.OFF", "unchanged", ("engine", "    OFF = 2\n", "    OFF = 2\n    AUTO = 3\n")),
    "every member is named, and there is one more": became(
        "if out is Mode.ON:\n    pass\nelif out is Mode.OFF:\n    pass", "review", ("engine", "    OFF = 2\n", "    OFF = 2\n    AUTO = 3\n"), says=("new member AUTO",)
    ),
    "every member in cases, and there is one more": became(
        "match out:\n    case Mode.ON:\n        pass\n    case Mode.OFF:\n        pass", "review", ("engine", "    OFF = 2\n", "    OFF = 2\n    AUTO = 3\n")
    ),
    "every member is named, and one has another value": became("if out in (Mode.ON, Mode.OFF):\n    pass", "unchanged", ("engine", "    OFF = 2\n", "    OFF = 3\n")),
    "the members are gone through": became("out = list(Mode)", "unchanged", ("engine", "    OFF = 2\n", "    OFF = 2\n    AUTO = 3\n")),
    "copied field by field": became("Batch(size=batch.size, rank=batch.rank)", "review", MORE, says=("new field more",)),
    "copied field by field, one changed": became("TRIPLE(size=batch.size, rank=batch.rank, odd=1)".replace("TRIPLE", "Odd"), "review", ("engine", "    odd: int = 0\n", "    odd: int = 0\n    even: int = 0\n"), files=ODD),
    "copied by position": became("Batch(batch.size, batch.rank)", "review", MORE),
    "copied, and the new one belongs to no object": became("Batch(size=batch.size, rank=batch.rank)", "unchanged", ("engine", MORE[1], MORE[1] + "    more: ClassVar[int] = 0\n")),
    "copied, and the new one is made elsewhere": became("Batch(size=batch.size, rank=batch.rank)", "unchanged", ("engine", MORE[1], MORE[1] + "    more: int = dataclasses.field(init=False, default=0)\n")),
    "made of other things": became("Batch(size=batch.rank, rank=batch.size)", "unchanged", MORE),
    "made of every field": became("Batch(size=1, rank=2)", "unchanged", MORE),
    "made of two objects": became("Batch(size=batch.size, rank=out.rank)", "unchanged", MORE),
    "replaced": became("dataclasses.replace(batch, size=batch.size, rank=batch.rank)", "unchanged", MORE),
    "a class became a function": became("isinstance(out, K)", "conflict", ("engine", "class K:\n    def __init__(self, a):\n        self.a = a", "def K(a):\n    return a")),
    "a class that is only asked for": became("isinstance(out, K)", "unchanged", ("engine", "def __init__(self, a):", "def __init__(self, a, b):")),
    "a class caught that is none": became("try:\n    pass\nexcept K:\n    raise", "conflict", ("engine", "class K:\n    def __init__(self, a):\n        self.a = a", "def K(a):\n    return a")),
    "a class in a case": became("match out:\n    case K():\n        pass", "conflict", ("engine", "class K:\n    def __init__(self, a):\n        self.a = a", "def K(a):\n    return a")),
    "a class asked for a method": became("U.plain(1)", "unchanged", ("engine", "def __init__(self, batch: Batch):", "def __init__(self, batch: Batch, more):")),
    "a class method, called on an object": became("self._make(1)", "unchanged", ("engine", "    def _make(self, x)", "    @classmethod\n    def _make(cls, x)"), symbol="U.run"),
    "a static method, called on an object": became("self._make(1)", "conflict", ("engine", "    def _make(self, x)", "    @staticmethod\n    def _make(self, x)"), symbol="U.run"),
    "a method without a parameter for its object": became("self.plain2()", "conflict", ("engine", "    @staticmethod\n    def plain2()", "    def plain2()"), symbol="U.run", files={"engine": ENGINE.replace("    @staticmethod\n    def plain(n)", "    @staticmethod\n    def plain2():\n        return 1\n\n    @staticmethod\n    def plain(n)")}),
    "a class method that yields now": became("self.build(1)", "review", ("engine", "        return cls(n)", "        yield cls(n)"), symbol="U.run"),
    "a property that yields now": became("self.size", "review", ("engine", "int:\n        return 1", "int:\n        yield 1"), symbol="U.run"),
    "imported from outside the pins": became("helper(1)", "review", ("engine", "from acme.tools import helper, shared", "from numpy import helper\nfrom acme.tools import shared"), says=("nothing in this release says what it is",)),
    "a module that may have any name now": became("up.trim(1)", "review", ("tools", "def trim(x):\n    return x", "def __getattr__(name):\n    return name"), imports=UP),
    "a name read of an import in the code": became("from acme.tools import trim\nout = trim", "review", ("tools", "def trim(x)", "def trim(x, y)"), says=("new required parameter y",)),
    "a method, though the code around asks for the type": became("type(self)\nself._make(1)", "conflict", ("engine", "def _make(self, x)", "def _make(self, x, y)"), symbol="U.run"),
    "super, though the code around asks for the type": became("type(self)\nsuper(U, self).from_base(1)", "conflict", ("base", "(self, x)", "(self, x, y)"), symbol="U.run"),
    "a parameter, though the code around narrows it": became("if isinstance(batch, str):\n    print(1)\nbatch.split(1)", "review", ("engine", "def split(self, at, *, hard=False)", "def split(self, at, must, *, hard=False)"), says=("does not fit: nothing for must",)),
    "what a decorated function takes": became("made(1)", "review", ("engine", "def made(n)", "def made(n, m)"), says=("does not fit: nothing for m",), files={"engine": ENGINE + "\n@wrapped\ndef made(n):\n    return n\n"}),
    "a constructor that a base outside the pins gives now": became(
        "L()", "review", ("engine", "    def __init__(self, a=1):\n        self.a = a\n", "    pass\n"),
        files={"engine": ENGINE + "\nfrom numpy import Thing\n\nclass L(Thing):\n    def __init__(self, a=1):\n        self.a = a\n"}, says=("cannot be told any more",),
    ),
    "a constructor that is gone": became("M()", "review", ("engine", "    def __init__(self):\n        self.a = 1\n", "    pass\n"), files={"engine": ENGINE + MADE}, says=("made by no constructor, was acme.engine:M.__init__",)),
    "a constructor that was not there": became("N()", "review", ("engine", "class N:\n", "class N:\n    def __init__(self):\n        self.b = 1\n\n"), files={"engine": ENGINE + MADE}),
    "a constructor that a base gives now": became("P(1)", "review", ("engine", "class P(K):\n    def __init__(self, a):\n        self.b = a\n", "class P(K):\n"), files={"engine": ENGINE + MADE}, says=("made by acme.engine:K.__init__, was acme.engine:P.__init__",)),
    "a constructor that moved to a base": became("P(1)", "unchanged", ("engine", "class P(K):\n    def __init__(self, a):\n        self.b = a\n", "class Q(K):\n    def __init__(self, a):\n        self.b = a\n\n\nclass P(Q):\n"), files={"engine": ENGINE + MADE}),
    "a constructor of a class that is only asked for": became("isinstance(out, P)", "unchanged", ("engine", "class P(K):\n    def __init__(self, a):\n        self.b = a\n", "class P(K):\n"), files={"engine": ENGINE + MADE}),
    "what super reads is no attribute of an object": became("super().act", "conflict", ("engine", "    def act(self, n)", "    def acts(self, n)"), symbol="V.run", files={"engine": ENGINE + ACTS}),
    "what super reads, of a class behind one that sets it on objects": became("out = super().act", "review", ("engine", "    def act(self, n)", "    def act(self, m, n)"), symbol="V.run", files={"engine": ENGINE + ACTS}, says=("new required parameter m",)),
    "what super calls, of a class behind one that sets it on objects": became("super().act(1)", "conflict", ("engine", "    def act(self, n)", "    def act(self, m, n)"), symbol="V.run", files={"engine": ENGINE + ACTS}),
    "what an object reads, where a class behind has a method of that name": became("self.act", "unchanged", ("engine", "    def act(self, n)", "    def act(self, m, n)"), symbol="V.run", files={"engine": ENGINE + ACTS}),
    "what a class reads, where a base only annotates it": became("V.act", "review", ("engine", "    def act(self, n)", "    def act(self, m, n)"), symbol="V.run", files={"engine": ENGINE + ACTS.replace("self.act = print", "pass").replace("class W(A):", "class W(A):\n    act: object\n")}),
    "one of several made at once, imported from elsewhere": became("one", "review", ("engine", "from acme.made import one", "from acme.other import helper as one"), files={"engine": ENGINE + "\nfrom acme.made import one\n", "made": "one, two = [print, print]\n"}, says=("constant became function",)),
    "one of several made at once": became("one", "unchanged", ("made", "[print, print]", "[print, int]"), files={"engine": ENGINE + "\nfrom acme.made import one\n", "made": "one, two = [print, print]\n"}),
    "one of several made at once that is gone": became("two", "conflict", ("made", "one, two", "one, zwei"), imports=("from acme.made import two",), files={"made": "one, two = [print, print]\n"}),
    "a base that something makes": became("class Mine(one):\n    pass", "unchanged", ("made", "make(1)", "make(2)"), files={"engine": ENGINE + "\nfrom acme.made import one\n", "made": "one = make(1)\n"}),
    "a base that became a number": became("class Mine(one):\n    pass", "conflict", ("made", "class one:\n    pass", "one = 1"), files={"engine": ENGINE + "\nfrom acme.made import one\n", "made": "class one:\n    pass\n"}),
    "a field more, in a dataclass with a base of the standard library": became("Rows(1)", "review", ("engine", "    first: int = 1\n", "    zero: int = 0\n    first: int = 1\n"), files={"engine": ENGINE + ROWS}, says=("argument 1 reaches zero, was first",)),
    "a field gone, in a dataclass with a base of the standard library": became("Rows(first=1)", "conflict", ("engine", "    first: int = 1\n", "    zero: int = 1\n"), files={"engine": ENGINE + ROWS}),
    "a name of a class that is the module's": became("Circle.helper(1)\nCircle.one", "conflict", ("tools", "def helper(x)", "def helper(x, y)"), files={"engine": ENGINE + "\nclass Circle:\n    helper = helper\n    one = two\n    two = one\n"}),
    "a number written otherwise": became("small(1)", "unchanged", ("engine", "eps=1e-5", "eps=0.00001"), files={"engine": ENGINE + "\ndef small(n, eps=1e-5):\n    return n\n"}),
    "a class that moved, one method changed": became(
        "K(1).go(1)", "review", ("engine", GOES, "from acme.moved import K\n"), ("moved", "# nothing", GOES.replace("m=1", "m=2")),
        files={"engine": ENGINE.replace(GOES.partition("\n\n")[0] + "\n", GOES), "moved": "# nothing"}, says=("default of m",),
    ),
    "the module is gone": became("up.trim(1)", "conflict", imports=UP, files={}),
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in UPGRADED if UPGRADED[n].change])
@pytest.mark.parametrize("old", ["1.0", None], ids=["with the old release", "from the lock"])
def test_an_upgrade_looks_at_what_our_code_refers_to(world: World, name: str, old: str | None) -> None:
    case = UPGRADED[name]
    write(world, case)
    report = at_the_pin(world)
    assert not report.exit_code, report.findings
    (entry,) = world.upgrade(old=old).entries
    assert entry.status == case.status, (entry.reasons, codes(entry))
    if old:
        text = "\n".join(f"{f.message}\n" + "\n".join(f.details) for f in entry.reasons)
        assert all(words in text for words in case.says), text


def test_a_module_that_is_gone(world: World) -> None:
    write(world, UPGRADED["the module is gone"])
    world.release(
        "2.0",
        {name: text for name, text in FILES.items() if name != "tools"}
        | {"engine": ENGINE.replace("from acme.tools import helper, shared\n", "")},
    )
    assert not at_the_pin(world).exit_code
    (entry,) = world.upgrade().entries
    assert (entry.status, codes(entry)) == ("conflict", {"PK534"})


@pytest.mark.parametrize(("now", "said"), [(["A", "B", "C"], []), (["A"], ["member B gone"])])
def test_an_enumeration_that_upstreams_text_gets_as_ours_may_have_more_members(now: list[str], said: list[str]) -> None:
    old, new = ({"kind": "enumeration", "members": members} for members in (["A", "B"], now))
    assert changes(old, new, ["all"]) == said
