"""The sweep's bookkeeping: every function is counted once, and whatever is not upstream's own is a fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.findings.finding import finding
from afd_patchkit.model import Pin
from afd_patchkit.upstream.base import MemoryUpstream
from tools.oracles.sweep.engine import Engine
from tools.oracles.sweep.file import FileSweep, Outcome
from tools.oracles.sweep.report import report

CORE = '''\
"""An invented module."""
import typing
from typing import TYPE_CHECKING, overload

from .log import init_logger
if TYPE_CHECKING:
    from .tools import Helper

try:
    import fast
except ImportError:
    fast = None

logger = init_logger(__name__)
count = 0
if fast:
    def speed(): return fast.speed()
elif typing:
    speed = None
else:
    def speed(): return count


def bump(by=1):
    global count
    count += by
    logger.info("%s %s", __name__, count)


@overload
def pick(a: int) -> int: ...
@overload
def pick(a: str) -> str: ...
def pick(a): return a


class Base:
    size = 4
    def __init__(self, n=size): self.__n = n


class Core(Base):
    """Docs."""
    limit: "Helper" = 3

    def __init__(self, n=Base.size, *, limit=limit):
        super().__init__(n)
        self.limit, self.kind = limit, __class__

    @property
    def value(self) -> "Helper | None":
        return self._Base__n
    @value.setter
    def value(self, new):
        from . import log
        class Inner(Base):
            def __init__(self): super().__init__(log)
        self.inner = Inner()

    class Nested:
        async def run(self): return [x async for x in self if x]

    @staticmethod
    def text(): return f"""{fast}
  {count!r:>{count}}"""
'''
LOG = "import logging\ndef init_logger(name): return logging.getLogger(name)\n"
FUNCTIONS = 12


@pytest.fixture
def engine() -> Engine:
    files = {"acme/__init__.py": "", "acme/core.py": CORE, "acme/log.py": LOG, "acme/tools.py": "class Helper: pass\n"}
    return Engine(MemoryUpstream(files), Pin(distribution="acme", version="1.0"))


@pytest.mark.parametrize("group", [True, False])
def test_a_tricky_module_comes_out_as_it_is(engine, group):
    outcome = FileSweep(engine, "acme.core", group=group).run()
    assert outcome.faults == []
    assert outcome.refusals == []
    assert sum(outcome.counts.values()) == FUNCTIONS
    assert outcome.counts["rebound"] >= 6


def test_only_some(engine):
    outcome = FileSweep(engine, "acme.core", group=True).run({"speed", "bump"})
    assert sum(outcome.counts.values()) == 3


class Bent(Engine):
    """An engine that does something wrong."""

    old, new = "", ""

    def make(self, module, qualname, branch, *, group):
        made = super().make(module, qualname, branch, group=group)
        return replace(made, text=made.text.replace(self.old, self.new))


BENT = [
    ("x async for x in self if x", "x async for x in self"),
    ("super(Core, self)", "super(Base, self)"),
    ("count += by", "count -= by"),
    ("@value.setter\n", ""),
    ("    @staticmethod\n", ""),
    ("_Base__n = n", "_Bass__n = n"),
    ("from acme import log", "import log"),
    ('f"""{fast}', 'f"""{fast!s}'),
    ("return a", "return a\ncount = 1"),
]


@pytest.mark.parametrize(("old", "new"), BENT)
def test_a_bent_engine_is_noticed(engine, old, new):
    bent = Bent(engine.upstream, engine.workspace.pins.pins["acme"])
    bent.old, bent.new = old, new
    outcome = FileSweep(bent, "acme.core", group=True).run()
    assert outcome.counts["wrong"] >= 1
    assert sum(outcome.counts.values()) == FUNCTIONS


class Unwilling(Engine):
    """An engine that refuses, crashes, or always takes the first branch."""

    def make(self, module, qualname, branch, *, group):
        if qualname == "bump":
            raise DeltaError(finding("PK205", "no"))
        if qualname == "pick":
            raise ZeroDivisionError("oh")
        return super().make(module, qualname, 1 if branch else None, group=group)


def test_refusals_crashes_and_lost_branches_are_counted(engine):
    unwilling = Unwilling(engine.upstream, engine.workspace.pins.pins["acme"])
    outcome = FileSweep(unwilling, "acme.core", group=True).run()
    assert outcome.counts["PK205"] == 1
    assert outcome.refusals == [("PK205", "acme.core:bump", "no")]
    assert outcome.counts["crashed"] == 3
    assert outcome.counts["wrong"] == 2
    assert any("acme.core:speed" in fault and "no entry gives this definition" in fault for fault in outcome.faults)
    assert any("ZeroDivisionError: oh" in fault for fault in outcome.faults)


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"verbatim": 98, "rebound": 10, "PK205": 1}, 0),
        ({"verbatim": 90, "PK205": 3}, 1),
        ({"verbatim": 99, "wrong": 1}, 1),
        ({"verbatim": 99, "crashed": 1}, 1),
        ({}, 1),
    ],
)
def test_the_verdict_of_a_run(counts, code, capsys):
    outcome = Outcome()
    outcome.counts.update(counts)
    outcome.faults += ["wrong: somewhere"] * (counts.get("wrong", 0) + counts.get("crashed", 0))
    assert report(outcome, 1.0, verbose=False) == code
    said = capsys.readouterr().out
    assert f"{sum(counts.values()):>7,}" in said
    assert ("PK205" in said) == ("PK205" in counts)
