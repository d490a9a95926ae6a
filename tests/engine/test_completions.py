"""What completes a definition elsewhere: named at the pin, kept in the lock, reviewed on an upgrade."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from afd_patchkit.findings.finding import Finding
from tests.engine.sample import Sample
from tests.upgrade.world import World
from tests.upgrade.world import codes as reasons

MODULE = """
import functools
import warnings
from enum import Enum
from functools import singledispatch, total_ordering
from dataclasses import dataclass
from acme.deco import deco, rewriting, Meta

A = [1]
B = {{}}


@singledispatch
def show(x):
    return "object"


def f(n):
    return n


@deco
def g(n):
    return n


class C:
    extra = 1

    def m(self):
        return 1

    @singledispatchmethod
    def kind(self, x):
        return 1


{more}
"""

MANIFEST = """
schema: 1
module: acme_set/out.py
summary: Copies.
pin: acme
entries:
  - symbol: acme.m:{symbol}
    reason: a test
{extra}
"""


def found(sample: Sample, symbol: str, more: str, extra: str = "", before: str = MODULE) -> list[Finding]:
    """Findings about completions when one symbol is copied."""
    (sample.root / "manifests/acme_set/runner.yaml").unlink(missing_ok=True)
    sample.upstream(
        "m",
        before.replace("from functools import s", "from functools import singledispatchmethod, s").format(more=more),
    )
    sample.upstream("deco", "def deco(f):\n    return f\nrewriting = deco\nclass Meta(type): pass\n")
    sample.manifest(MANIFEST.format(symbol=symbol, extra=extra), "out")
    report = sample.regen()
    assert not [f for f in report.findings if f.severity.value == "error"], report.findings
    return [f for f in report.findings if f.code in {"PK334", "PK636"}]


LOUD = [
    ("show", "@show.register\ndef _(x: int):\n    return 'int'"),
    ("show", "@show.register(int)\ndef _(x):\n    return 'int'"),
    ("show", "show.register(int, f)"),
    ("show", "show.register(int)(f)"),
    ("show", "_ = show.register(int, f)"),
    ("show", "for t in (int, str):\n    show.register(t, f)"),
    ("show", "try:\n    import numpy\nexcept ImportError:\n    pass\nelse:\n    show.register(numpy.ndarray, f)"),
    ("A", "A += [3]"),
    ("A", "A.append(3)"),
    ("A", "A.extend([3])"),
    ("A", "A[0] = 3"),
    ("A", "A[1:] = [3]"),
    ("A", "del A[0]"),
    ("A", "del A"),
    ("A", "if f(1):\n    A += [3]"),
    ("A", "with open('x') as A:\n    pass"),
    ("A", "for A in (1, 2):\n    pass"),
    ("A", "if (A := f(2)):\n    pass"),
    ("A", "import os as A"),
    ("A", "B['a'], A[0] = 1, 2"),
    ("A", "last = A.pop()"),
    ("B", "B.update(a=1)"),
    ("B", "B.setdefault('a', []).append(1)"),
    ("B", "B['a']['b'] = 1"),
    ("B", "B |= {{'a': 1}}"),
    ("f", "f.count = 1"),
    ("f", "f.count: int = 1"),
    ("f", "f.count += 1"),
    ("f", "f.__doc__ = 'x'"),
    ("f", "setattr(f, 'count', 1)"),
    ("C", "C.extra = 5"),
    ("C", "C.register(int)"),
    ("C", "del C.extra"),
    ("C", "delattr(C, 'extra')"),
    ("C", "setattr(C, 'm', f)"),
    ("C", "for name in 'ab':\n    setattr(C, name, f)"),
    ("C", "@C.register\nclass D:\n    pass"),
    ("C.m", "C.m = deco(C.m)"),
    ("C.m", "C.m.count = 1"),
    ("C.m", "setattr(C, 'm', f)"),
    ("C.m", "del C.m"),
    ("C.kind", "@C.kind.register\ndef _(self, x: int):\n    return 2"),
    ("g", "g.add_command(f)"),
    ("C", "for C.extra in (1, 2):\n    pass"),
    ("C", "with open('x') as (C.extra, x):\n    pass"),
    ("A", "for A[0] in (1, 2):\n    pass"),
    ("C", "vars(C)['x'] = 1"),
    ("C", "C.__dict__['x'] = 1"),
    ("f", "f.__dict__.update(a=1)"),
    ("f", "del f.__dict__['x']"),
    ("A", "globals()['A'] = [2]"),
    ("A", "del globals()['A']"),
    ("g", "@g.command()\ndef sub():\n    pass"),
]


@pytest.mark.parametrize(("symbol", "more"), LOUD, ids=[f"{s}: {m.splitlines()[0]}" for s, m in LOUD])
def test_it_is_a_warning_that_names_the_line(sample: Sample, symbol: str, more: str) -> None:
    (warning,) = found(sample, symbol, more)
    assert warning.code == "PK334"
    assert warning.details
    assert all(detail.startswith("acme/m.py:") for detail in warning.details)
    lock = json.loads(sample.lock.read_text())
    assert lock["modules"]["acme_set/out.py"]["entries"][symbol.rpartition(".")[2]]["completed"]


@pytest.mark.parametrize(("symbol", "more"), [("f", "f = deco(f)"), ("A", "A = [2]"), ("C", "C = deco(C)")])
def test_a_name_that_is_bound_again_below(sample: Sample, symbol: str, more: str) -> None:
    (warning,) = found(sample, symbol, more, "    branch: 1")
    assert warning.code == "PK334"


@pytest.mark.parametrize("inside", ["m = deco(m)", "m.count = 1", "@m.register\n    def other(self):\n        pass"])
def test_in_the_class_itself(sample: Sample, inside: str) -> None:
    before = MODULE.replace("        return 1\n\n    @single", f"        return 1\n\n    {inside}\n\n    @single")
    branch = "    branch: 1" if inside.startswith("m =") else ""
    (warning,) = found(sample, "C.m", "", branch, before)
    assert warning.code == "PK334"


MILD = [
    ("f", "register(op_func=f)"),
    ("f", "functools.update_wrapper(f, show)"),
    ("A", "def more():\n    A.append(1)"),
    ("A", "def more():\n    global A\n    A = []"),
    ("C", "def more():\n    C.extra = 2"),
    ("C", "C.pop()"),
    ("show", "reg = show.register\nreg(int, f)"),
    ("show", "def start():\n    @show.register\n    def _(x: int):\n        return 1"),
    ("C", "C.make(1).update(a=1)"),
    ("C.m", "C.m.cache_clear()"),
    ("f", "f.update(1)"),
]


@pytest.mark.parametrize(("symbol", "more"), MILD, ids=[f"{s}: {m.splitlines()[-1].strip()}" for s, m in MILD])
def test_what_may_act_on_it_is_a_note(sample: Sample, symbol: str, more: str) -> None:
    assert [f.code for f in found(sample, symbol, "def register(**k):\n    pass\n" + more)] == ["PK636"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("class C:", "@rewriting\nclass C:", ["PK636"]),
        ("class C:", "class C(metaclass=Meta):", ["PK636"]),
        ("class C:", "@dataclass\nclass C:", []),
        ("class C:", "@total_ordering\nclass C:", []),
        ("class C:", "class C(Enum):", []),
    ],
)
def test_what_may_rewrite_the_members_of_a_class(sample: Sample, old: str, new: str, expected: list[str]) -> None:
    assert [f.code for f in found(sample, "C.m", "", before=MODULE.replace(old, new))] == expected


BASES = """
import abc

class Marks:
    def __init_subclass__(cls, **rest):
        cls.marked = True


class Made(metaclass=abc.ABCMeta):
    pass


class Meta(type):
    pass


class Odd(metaclass=Meta):
    pass


class Below(Odd, Marks):
    pass
"""


@pytest.mark.parametrize(
    ("base", "lines"),
    [
        ("bases.Marks", ["acme/bases.py:4: def __init_subclass__(cls, **rest):"]),
        ("bases.Odd", ["acme/bases.py:16: class Odd(metaclass=Meta):"]),
        (
            "bases.Below",
            ["acme/bases.py:16: class Odd(metaclass=Meta):", "acme/bases.py:4: def __init_subclass__(cls, **rest):"],
        ),
        ("bases.Made", []),
        ("Enum", []),
        ("object", []),
    ],
)
def test_what_a_class_inherits_may_rewrite_its_members(sample: Sample, base: str, lines: list[str]) -> None:
    sample.upstream("bases", BASES)
    before = MODULE.replace("class C:", f"class C({base}):").replace("import warnings", "from acme import bases")
    notes = found(sample, "C.m", "", before=before)
    assert [f.code for f in notes] == ["PK636"] * bool(lines)
    assert sorted(line for f in notes for line in f.details) == sorted(lines)


def test_a_copied_class_keeps_its_bases(sample: Sample) -> None:
    sample.upstream("bases", BASES)
    before = MODULE.replace("class C:", "class C(bases.Below):").replace("import warnings", "from acme import bases")
    assert found(sample, "C", "", before=before) == []


QUIET = [
    ("A", "__all__ = ['A']\n__all__ += ['B']"),
    ("A", "x = A[0]"),
    ("A", "x = A.index(1)"),
    ("A", "def other(A):\n    A.append(1)"),
    ("A", "def other():\n    A = []\n    A.append(1)"),
    ("A", "if __name__ == '__main__':\n    A.append(3)"),
    ("A", "class D:\n    A = [2]\n    A.append(2)"),
    ("f", "x = f(1)"),
    ("f", "@f\ndef g():\n    pass"),
    ("f", "print(f)"),
    ("f", "class D:\n    f = 1"),
    ("C", "x = C()\nx.extra = 1"),
    ("C", "class D(C):\n    extra = 2"),
    ("C.m", "class D(C):\n    m = deco(C.m)"),
    ("show", "x = show.registry"),
    ("C", "@C.timed\ndef h():\n    pass"),
    ("C", "@C.timed(1)\nclass D:\n    pass"),
    ("C", "last = C.pop()"),
    ("C", "def h():\n    C.pop()"),
    ("f", "@f.wraps\ndef h():\n    pass"),
    ("f", "x = f.__dict__['a']"),
    ("f", "def start():\n    @show.register\n    def _(x: int):\n        return 1"),
    ("A", "for x in A:\n    pass"),
    ("A", "globals()['B'] = [2]"),
]


@pytest.mark.parametrize(("symbol", "more"), QUIET, ids=[f"{s}: {m.splitlines()[-1].strip()}" for s, m in QUIET])
def test_what_does_not_act_on_it_is_quiet(sample: Sample, symbol: str, more: str) -> None:
    assert found(sample, symbol, more) == []


def test_the_manifest_says_why_it_is_right(sample: Sample) -> None:
    (note,) = found(sample, "f", "f.count = 1", "    elsewhere: nobody counts here.")
    assert (note.code, note.exit_code) == ("PK334", 0)


# ---- on an upgrade ------------------------------------------------------------------------------------------------------

OLD = """
def f(n):
    return n

f.count = 1
f.rank = 1
"""


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ("", "unchanged"),
        ("f.count=1\nf.rank = 1  # moved and set otherwise\n", "unchanged"),
        (OLD.partition("f.rank")[0], "unchanged"),
        (OLD + "f.more = 2\n", "review"),
        (OLD.replace("f.rank = 1", "f.rank = 2"), "review"),
        (OLD + "def g():\n    f.count = 2\n", "review"),
        (OLD + "def g():\n    pass\n", "unchanged"),
    ],
)
@pytest.mark.parametrize("old", ["1.0", None])
def test_a_new_one_is_a_review(tmp_path: Path, change: str, status: str, old: str | None) -> None:
    world = World(tmp_path)
    new = change if "def f" in change or not change else OLD.partition("f.count")[0] + change
    world.release("1.0", {"engine": OLD})
    world.release("2.0", {"engine": new or OLD})
    world.deltas("")
    manifest = world.root / "manifests/set/runner.yaml"
    manifest.write_text(manifest.read_text() + "    elsewhere: known.\n")
    world.regen()
    (entry,) = world.upgrade(old=old).entries
    assert (entry.status, reasons(entry)) == (status, {"PK554"} if status == "review" else set())


@pytest.mark.parametrize(
    ("more", "abroad", "status"),
    [
        ("f.more = 2\n", "", "review"),
        ("def g():\n    pass\n", "", "unchanged"),
        ("", "from acme import engine\n\nengine.f.more = 2\n", "review"),
        ("", "from acme.engine import f\n\nf(1)\n", "unchanged"),
        ("", "from acme.engine import f\n\ndef start():\n    f.more = 2\n", "unchanged"),
    ],
)
def test_what_completes_a_watched_definition_is_watched(tmp_path: Path, more: str, abroad: str, status: str) -> None:
    world = World(tmp_path)
    world.release("1.0", {"engine": OLD})
    world.release("2.0", {"engine": OLD + more, "other": abroad})
    world.write("manifests/set/parts/own.py", "OURS = 1\n")
    world.write(
        "manifests/set/runner.yaml",
        "schema: 1\nmodule: set/runner.py\nsummary: Ours.\npin: acme\nentries:\n"
        "  - {kind: owned, part: parts/own.py, reason: a test, watch: ['acme.engine:f']}\n",
    )
    world.regen()
    (entry,) = world.upgrade().entries
    assert entry.status == status


# ---- from other modules of the pin -------------------------------------------------------------------------------------

ABROAD = [
    ("show", "from acme import m\n\nm.show.register(int, len)"),
    ("show", "import acme.m\n\nacme.m.show.register(int, len)"),
    ("show", "import acme.m as up\n\n@up.show.register\ndef _(x: int):\n    return 'int'"),
    ("show", "from .m import show\n\n@show.register(int)\ndef _(x):\n    return 'int'"),
    ("show", "from acme.m import (\n    f,\n    show as shown,\n)\nshown.register(int)(f)"),
    ("show", "from acme.again import show\n\nshow.register(int, len)"),
    ("f", "from acme import m as up\n\nup.f.count = 1"),
    ("f", "from acme.m import f\n\nf.count: int = 1"),
    ("f", "from acme.m import f\n\nx, f.count = 1, 2"),
    ("f", "from acme import m\n\nsetattr(m.f, 'count', 1)"),
    ("f", "from acme import m\n\nm.f = len"),
    ("C", "from acme.m import C\n\nC.extra = 5"),
    ("C", "from acme.m import C\n\ndel C.extra"),
    ("C", "from acme.m import C\n\n@C.register\nclass D:\n    pass"),
    ("C.m", "from acme.m import C\n\nC.m = len"),
    ("C", "from acme.m import C\n\nfor C.extra in (1, 2):\n    pass"),
    ("C", "from acme.m import C\n\nwith open('x') as C.extra:\n    pass"),
    ("C", "from acme.m import C\n\nvars(C)['x'] = 1"),
    ("C", "from acme.m import C\n\nC.__dict__['x'] = 1"),
    ("C.kind", "from acme.m import C\n\n@C.kind.register\ndef _(self, x: int):\n    return 2"),
    ("A", "from acme.m import A\n\nA.append(3)"),
    ("A", "from acme import m\n\nm.A += [3]"),
    ("A", "from acme.m import A\n\nA[0] = 3"),
    ("A", "from acme.m import A\n\nx, A[0] = 1, 3"),
    ("A", "from acme.m import A\n\nA[0], x = 1, 3"),
    ("A", "from acme.m import A\n\nA[len('x')] += 3"),
    ("B", "import acme.m as up\n\nup.B |= {'a': 1}"),
    ("A", "from acme.m import A\n\nA.__setitem__(0, 3)"),
    ("g", "from acme.m import g\n\ng.add_command(len)"),
    ("g", "from acme import m\n\n@m.g.command()\ndef sub():\n    pass"),
    ("B", "import acme.m as up\n\nup.B['a']['b'] = 1"),
    ("B", "import acme.m as up\n\ntry:\n    import numpy\nexcept ImportError:\n    up.B.update(a=1)"),
]


def abroad(sample: Sample, symbol: str, more: str, extra: str = "") -> list[Finding]:
    sample.upstream("again", "from .m import show, f\n")
    sample.upstream("other", more + "\n")
    return found(sample, symbol, "", extra)


@pytest.mark.parametrize(("symbol", "more"), ABROAD, ids=[f"{s}: {m.splitlines()[-1].strip()}" for s, m in ABROAD])
def test_another_module_completes_it(sample: Sample, symbol: str, more: str) -> None:
    (warning,) = abroad(sample, symbol, more)
    assert warning.code == "PK334"
    assert warning.details
    lines = more.split("\n")
    for detail in warning.details:
        path, number, text = detail.split(":", 2)
        assert path == "acme/other.py"
        assert text.strip() == lines[int(number) - 1].strip()
    lock = json.loads(sample.lock.read_text())
    assert lock["modules"]["acme_set/out.py"]["entries"][symbol.rpartition(".")[2]]["completed"]
    assert f"acme.m:{symbol}" in lock["pins"]["acme"]["completed"]


@pytest.mark.parametrize(
    ("symbol", "more"),
    [
        ("C", "from acme.m import C\n\ndef start():\n    C.extra = 5"),
        ("f", "def start():\n    from acme import m\n    m.f.count = 1"),
        ("A", "from acme.m import A\n\ndef start():\n    A.append(1)"),
    ],
)
def test_another_module_may_act_on_it(sample: Sample, symbol: str, more: str) -> None:
    assert [f.code for f in abroad(sample, symbol, more)] == ["PK636"]


@pytest.mark.parametrize(
    ("symbol", "more"),
    [
        ("f", "from acme.m import f\n\nf = len"),
        ("f", "from acme.m import f\n\nf = len\nf.count = 1"),
        ("f", "from acme.m import f\n\nprint(f)\nregister(f)"),
        ("f", "from acme.m import f\n\ndef start(f):\n    f.count = 1"),
        ("f", "from acme import engine as m\n\nm.f.count = 1"),
        ("f", "import other.m as m\n\nm.f.count = 1"),
        ("C", "from acme.m import C\n\nC().extra = 1\nC.make(1).update(a=1)\nC.pop(1)"),
        ("C", "from acme.m import C\n\nclass D(C):\n    extra = 2"),
        ("A", "from acme.m import A\n\nx = A[0]\nA = [2]\nA.append(1)"),
        ("A", "from acme.m import A\n\nif __name__ == '__main__':\n    A.append(1)"),
        ("A", "import broken syntax\nA.append(1)"),
        ("A", "from acme.m import A\n\n__all__ = ['A']\n__all__ += ['B']"),
    ],
)
def test_what_another_module_does_to_its_own(sample: Sample, symbol: str, more: str) -> None:
    assert abroad(sample, symbol, more) == []


def test_the_manifest_says_why_it_is_right_there_too(sample: Sample) -> None:
    (note,) = abroad(sample, "f", "from acme import m\n\nm.f.count = 1", "    elsewhere: nobody counts here.")
    assert (note.code, note.exit_code) == ("PK334", 0)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ("", "unchanged"),
        ("from acme import engine\n\nengine.f.size = 1\n", "review"),
        ("from acme.engine import f\n\n@f.register\ndef _(x: int):\n    pass\n", "review"),
        ("from acme.engine import f\n\nf(1)\n", "unchanged"),
    ],
)
@pytest.mark.parametrize("old", ["1.0", None])
def test_a_new_one_in_another_module_is_a_review(tmp_path: Path, more: str, status: str, old: str | None) -> None:
    world = World(tmp_path)
    known = "from acme import engine\n\nengine.f.known = 1\n"
    world.release("1.0", {"engine": OLD, "known": known})
    world.release("2.0", {"engine": OLD, "known": "\n\n" + known, "other": more})
    world.deltas("")
    manifest = world.root / "manifests/set/runner.yaml"
    manifest.write_text(manifest.read_text() + "    elsewhere: known.\n")
    world.regen()
    (entry,) = world.upgrade(old=old).entries
    assert (entry.status, reasons(entry)) == (status, {"PK554"} if status == "review" else set())
