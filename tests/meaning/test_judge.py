"""The judge of `tools/meaning`: what happens to own code, found by running it; and the changes, which leave Python behind."""

from __future__ import annotations

import ast
import random

import pytest

from tools.oracles.meaning.case import Observed
from tools.oracles.meaning.change import BREAKING, COMPATIBLE, change
from tools.oracles.meaning.judge import Own, Snippet, Verdict
from tools.oracles.meaning.sources import Sources

ENGINE = '''
import enum
from dataclasses import dataclass, field
from typing import Optional

from vllm.base import Base, helper

LIMIT: int = 3

class Mode(enum.Enum):
    ON = enum.auto()
    OFF = 2

@dataclass
class Batch:
    size: int
    rows: list = field(default_factory=list)

class Lost(ValueError):
    def __init__(self, why):
        self.why = why

class Late(Lost):
    def __init__(self, why):
        self.how = why

class Tuned:
    def __init__(self, n):
        self.level = n

    @property
    def level(self):
        return 1

    @level.setter
    def level(self, value):
        self.kept = value

class Empty:
    def __init__(self):
        self.n = 1

class Core(Base):
    def __init__(self, batch: Optional[Batch] = None):
        self.batch: Batch | None = batch
        self.count = 0

    @property
    def ready(self) -> bool:
        """Whether it is."""
        return True

    def run(self, n: int, *, fast=False) -> Batch:
        return n

def order(a, b=1, *rest, c=2, **more):
    return a
'''
BASE = """
class Base:
    def __init_subclass__(cls, **named):
        pass

    def close(self, now):
        return now

def helper(x):
    return x
"""
TREE = {"vllm": "", "vllm.engine": ENGINE, "vllm.base": BASE}


def release(**changed: str) -> Sources:
    """An invented release."""
    tree = {**TREE, **{f"vllm.{name}": text for name, text in changed.items()}}
    paths = {name: name.replace(".", "/") + (".py" if name != "vllm" else "/__init__.py") for name in tree}
    return Sources(paths, tree.__getitem__)


def own(code: str, owner: str = "") -> Own:
    """One snippet in the module of the engine."""
    return Own((Snippet("test", 1, code, code),), "vllm.engine", owner, "", {"core": "Core"})


CORE = "vllm.engine:Core"
CASES: dict[str, tuple[str, tuple[str, str, str], Verdict]] = {
    "a call that binds": ("order(1)", ("engine", "def order(a, b=1,", "def order(a, b=1, d=3,"), "same"),
    "a position that moves": ("order(1, 5)", ("engine", "def order(a, b=1,", "def order(a, d=3, b=1,"), "different"),
    "a default left alone": ("order(1)", ("engine", "b=1", "b=4"), "different"),
    "a default given": ("order(1, b=3)", ("engine", "b=1", "b=4"), "same"),
    "a missing argument": ("order(1)", ("engine", "order(a,", "order(a, z,"), "broken"),
    "a name that is gone": ("order(1)", ("engine", "def order", "def sort"), "broken"),
    "another body": ("order(1)", ("engine", "return a", "return b"), "same"),
    "a function that is passed on": ("order", ("engine", "order(a,", "order(a, z,"), "different"),
    "an import from elsewhere": ("helper(1)", ("engine", "from vllm.base import Base, helper", "from vllm.base import Base\ndef helper(x):\n    return 2"), "different"),
    "async": ("helper(1)", ("base", "def helper", "async def helper"), "different"),
    "a base's method": ("self.close(1)", ("base", "def close(self, now)", "def close(self, now, how)"), "broken"),
    "super": ("super(Core, self).close(now=1)", ("base", "now)", "then)"), "broken"),
    "a base that is gone": ("self.close(1)", ("engine", "class Core(Base)", "class Core"), "broken"),
    "an attribute": ("self.count", ("engine", "self.count", "self.counts"), "broken"),
    "what an attribute holds": ("self.count", ("engine", "count = 0", "count = []"), "different"),
    "an attribute of an attribute": ("self.batch.size", ("engine", "    size: int", "    length: int"), "broken"),
    "a property": ("self.ready", ("engine", "-> bool", "-> int"), "different"),
    "a parameter's class": ("core.run(1)", ("engine", "fast=False", "fast"), "broken"),
    "a result": ("core.run(1).size", ("engine", "    size: int", "    size: float"), "different"),
    "a dataclass": ("Batch(1)", ("engine", "    size: int\n", "    size: int\n    must: int\n"), "broken"),
    "an optional field": ("Batch(1)", ("engine", "    rows: list", "    more: int = 0\n    rows: list"), "same"),
    "fields in another order": ("Batch(1)", ("engine", "    size: int\n", "    key: int = 0\n    size: int = 1\n"), "different"),
    "a member": ("Mode.OFF", ("engine", "OFF = 2", "OUT = 2"), "broken"),
    "a class that is asked for": ("isinstance(1, Mode)", ("engine", "class Mode(enum.Enum):\n    ON = enum.auto()\n    OFF = 2", "def Mode(): pass"), "broken"),
    "an exception": ("Lost(1)", ("engine", "def __init__(self, why)", "def __init__(self)"), "broken"),
    "a constructor that a base gives now": ("Late(1)", ("engine", "class Late(Lost):\n    def __init__(self, why):\n        self.how = why", "class Late(Lost):\n    pass"), "different"),
    "a constructor that is gone": ("Empty()", ("engine", "    def __init__(self):\n        self.n = 1", "    pass"), "different"),
    "a base that is not asked": ("Core()", ("engine", "class Core(Base)", "class Core"), "same"),
    "a method of a class, called with something else": ("Core.run(1, 2)", ("engine", "    def run(self, n: int,", "    @classmethod\n    def run(self, n, m=1,"), "different"),
    "a property that methods set": ("Tuned(1)", ("engine", "def ready(self) -> bool", "def ready(self) -> int"), "same"),
    "a method of a class, called with an object": ("Core.run(self, 2)", ("engine", "-> Batch:\n        return n", "-> Batch:\n        return 1"), "same"),
    "a constant's annotation": ("LIMIT", ("engine", "LIMIT: int", "LIMIT: str"), "different"),
    "layout": ("core.run(1)", ("engine", "n: int, *, fast=False", "\n        n: int,  # how many\n        *, fast = False,\n    "), "same"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_happens_to_own_code_is_found_by_running_it(name: str) -> None:
    code, (module, old, new), expected = CASES[name]
    base = release()
    observed = Observed(base, own(f"probe_1 = {code}", CORE if "self" in code else ""))
    text = {"engine": ENGINE, "base": BASE}[module]
    assert old in text
    said, why, _ = observed.after(base.with_changes({f"vllm.{module}": text.replace(old, new)}))
    assert said == expected, why


def test_a_release_that_does_not_work_itself_is_no_case() -> None:
    base = release()
    observed = Observed(base, own("probe_1 = self.close(1)", CORE))
    changed = base.with_changes({"vllm.base": BASE.replace("class Base", "class Bases")})
    assert observed.after(changed)[0] is None


def test_changes_leave_python_behind_and_compatible_ones_are_seen_as_such() -> None:
    base = release()
    code = "probe_1 = [order(1), helper(1), core.run(1).size, core.close(2), core.count, Batch(3), Mode.ON, Lost(4), LIMIT]"
    observed = Observed(base, own(code))
    seen = set()
    for number in range(400):
        names = COMPATIBLE if number % 2 else BREAKING
        made = change(random.Random(number), base, observed.spots, names, "")
        if made is None:
            continue
        seen.add(made.name)
        for text in made.files.values():
            ast.parse(text)
        if made.compatible:
            assert observed.after(base.with_changes(made.files))[0] == "same", (made.name, made.files)
    assert len(seen) > 30, sorted(seen)
