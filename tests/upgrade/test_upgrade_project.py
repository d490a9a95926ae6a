"""Upgrades of whole small projects: gone, moved, retired, linked, several axes, bad targets."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from afd_patchkit.upgrade.result import UpgradeResult

from .world import World, codes

BODY = """
def f(self, batch):
    self.check(batch)
    size = len(batch)
    out = self.run(batch, size)
    self.done(out, size)
    return out
"""

LOG = """
- name: log
  after: |
    self.done(...)
  insert: |
    self.log(out)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def found(result: UpgradeResult) -> list[str]:
    return [f.code for f in result.findings if f.exit_code]


# ---- gone or elsewhere ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", ["1.0", None])
def test_moved_to_another_module(world: World, old: str | None) -> None:
    world.release("1.0", {"engine": BODY})
    world.release("2.0", {"engine": "x = 1\n", "core.loop": "y = 2\n\n" + BODY, "core": ""})
    world.deltas(LOG)
    world.regen()
    entry = world.upgrade(old=old).entries[0]
    assert (entry.status, codes(entry), entry.new_symbol) == ("moved", {"PK539"}, "acme.core.loop:f")
    assert [d.status for d in entry.deltas] == ["unchanged"]
    assert entry.ours_new is not None
    assert "self.log(out)" in entry.ours_new


@pytest.mark.parametrize("old", ["1.0", None])
def test_renamed_with_the_same_text(world: World, old: str | None) -> None:
    world.release("1.0", {"engine": BODY})
    world.release("2.0", {"engine": BODY.replace("def f(", "def step(")})
    world.deltas(LOG)
    world.regen()
    entry = world.upgrade(old=old).entries[0]
    assert (entry.status, entry.new_symbol) == ("moved", "acme.engine:step")
    assert entry.ours_new is not None
    assert "def f(self, batch):" in entry.ours_new, "the generated name stays"


@pytest.mark.parametrize("old", ["1.0", None])
def test_static_method_became_a_function(world: World, old: str | None) -> None:
    body = textwrap.indent(BODY.strip().replace("self, ", "").replace("self.", ""), "    ")
    tools = "\n\ndef check(*a): ...\ndef run(*a): ...\ndef done(*a): ...\n"
    world.release("1.0", {"engine": f"class C:\n    @staticmethod\n{body}\n{tools}"})
    plain = BODY.strip().replace("self, ", "").replace("self.", "").replace("def f", "def g")
    world.release("2.0", {"engine": "class C: ...\n", "tools": plain + tools})
    world.deltas("", symbol="C.f")
    world.regen()
    entry = world.upgrade(old=old).entries[0]
    assert (entry.status, codes(entry)) == ("missing", {"PK538"})
    assert entry.successors[0] == ("acme.tools:g", 1.0)
    assert entry.blocks


def test_renamed_and_changed_is_missing_with_a_successor(world: World) -> None:
    world.release("1.0", {"engine": BODY})
    world.release("2.0", {"engine": BODY.replace("def f(", "def step(").replace("len(batch)", "batch.size")})
    world.deltas(LOG)
    world.regen()
    entry = world.upgrade().entries[0]
    assert entry.status == "missing"
    ((reference, likeness),) = entry.successors
    assert reference == "acme.engine:step"
    assert 0.8 < likeness < 1.0


def test_removed_without_successor(world: World) -> None:
    world.release("1.0", {"engine": BODY})
    world.release("2.0", {"engine": "x = 1\n"})
    world.deltas(LOG)
    world.regen()
    result = world.upgrade()
    entry = result.entries[0]
    assert (entry.status, entry.successors, result.exit_code) == ("missing", (), 1)


def test_defined_in_two_branches_now(world: World) -> None:
    world.release("1.0", {"engine": BODY})
    twice = "import sys\nif sys:\n" + textwrap.indent(BODY, "    ") + "else:\n" + textwrap.indent(BODY, "    ")
    world.release("2.0", {"engine": twice})
    world.deltas(LOG)
    world.regen()
    entry = world.upgrade().entries[0]
    assert (entry.status, codes(entry)) == ("conflict", {"PK206"})


def test_crlf_is_no_change(world: World) -> None:
    world.release("1.0", {"engine": BODY})
    world.release("2.0", {"engine": BODY.lstrip("\n").replace("\n", "\r\n").encode()})
    world.deltas(LOG)
    world.regen()
    assert world.upgrade().entries[0].status == "unchanged"


# ---- retire -----------------------------------------------------------------------------------------------------------

SET = """\
schema: 1
module: set/runner.py
summary: Copies.
pin: acme
entries:
  - symbol: acme.engine:f
    reason: a test
    remove_when:
      - defines: acme.engine:Overlap
  - symbol: acme.engine:g
    reason: a test
"""


def test_retire_says_what_goes_and_what_stays(world: World) -> None:
    both = BODY + "\n\ndef g(x):\n    return x\n"
    world.release("1.0", {"engine": both})
    world.release("2.0", {"engine": both + "\n\nclass Overlap: ...\n"})
    world.write("manifests/set/runner.yaml", SET)
    world.regen()
    result = world.upgrade()
    assert [(e.ref, e.status) for e in result.entries] == [
        ("set/runner.py::f", "retire"),
        ("set/runner.py::g", "unchanged"),
    ]
    assert result.deletions == ("manifests/set/runner.yaml:6: set/runner.py::f",)
    assert result.stays == ("set/runner.py::g: it has no removal condition. a test",)
    assert (result.exit_code, result.retired_modules) == (1, ())


def test_a_module_that_is_wholly_retired(world: World) -> None:
    world.release("1.0", {"engine": BODY})
    world.release("2.0", {"engine": BODY + "\n\nclass Overlap: ...\n"})
    world.write("manifests/set/runner.yaml", SET.partition("  - symbol: acme.engine:g")[0])
    world.regen()
    assert world.upgrade().retired_modules == ("set/runner.py",)


def test_an_entry_that_needs_a_retired_one_is_a_conflict(world: World) -> None:
    both = BODY + "\n\ndef g(x):\n    return x\n"
    world.release("1.0", {"engine": both})
    world.release("2.0", {"engine": both + "\n\nclass Overlap: ...\n"})
    world.write("manifests/set/runner.yaml", SET + "    depends_on: [f]\n")
    other = (
        SET.partition("  - symbol: acme.engine:f")[0]
        .replace("runner", "other")
        .replace("entries:", "imports:\n  - from generated_acme.set.runner import f\nentries:")
    )
    world.write("manifests/set/other.yaml", other + "  - symbol: acme.engine:h\n    reason: a test\n")
    for version in ("1.0", "2.0"):
        path = world.releases / f"acme-{version}/acme/engine.py"
        path.write_text(path.read_text() + "\n\ndef h(x):\n    return x\n")
    world.regen()
    result = world.upgrade()
    assert {e.ref: (e.status, codes(e)) for e in result.entries if e.status != "retire"} == {
        "set/runner.py::g": ("conflict", {"PK230"}),
        "set/other.py::h": ("conflict", {"PK541"}),
    }


# ---- linked entries, owned code, delegates ----------------------------------------------------------------------------


def test_linked_entries_are_both_flagged(world: World) -> None:
    both = BODY + "\n\ndef g(x):\n    y = x\n    return y\n"
    world.release("1.0", {"engine": both})
    world.release("2.0", {"engine": both.replace("y = x", "y = x + 1")})
    world.write(
        "manifests/set/runner.yaml",
        SET.replace("    remove_when:\n      - defines: acme.engine:Overlap\n", "") + "    depends_on: [f]\n",
    )
    world.regen()
    assert {e.ref.partition("::")[2]: (e.status, codes(e)) for e in world.upgrade().entries} == {
        "f": ("review", {"PK537"}),
        "g": ("review", {"PK537"}),
    }


@pytest.mark.parametrize("old", ["1.0", None])
def test_a_watched_symbol_changed(world: World, old: str | None) -> None:
    world.release("1.0", {"engine": BODY})
    world.release("2.0", {"engine": BODY.replace("len(batch)", "batch.size")})
    head = SET.partition("  - symbol: acme.engine:f")[0]
    world.write(
        "manifests/set/runner.yaml",
        head + "  - kind: owned\n    part: part.py\n    watch: [acme.engine:f]\n    reason: a test\n",
    )
    world.write("manifests/set/part.py", "def ours():\n    return 1\n")
    world.regen()
    entry = world.upgrade(old=old).entries[0]
    assert (entry.status, codes(entry)) == ("review", {"PK536"})
    world.release("2.0", {"engine": "x = 1\n"})
    assert world.upgrade(old=old).entries[0].status == "missing"


def test_a_delegate_with_another_signature(world: World) -> None:
    text = "def f(a, b=1):\n    return a\n"
    world.release("1.0", {"engine": text})
    head = SET.partition("  - symbol: acme.engine:f")[0]
    delegate = "  - symbol: acme.engine:f\n    kind: delegate\n    via: original\n    body: |\n      return __original__(...)\n    reason: a test\n"
    world.write("manifests/set/runner.yaml", head + delegate)
    world.release("2.0", {"engine": text.replace("return a", "return a + b")})
    world.release("3.0", {"engine": text.replace("b=1", "b=1, *, front=False")})
    world.release("4.0", {"engine": text.replace("b=1", "b=2")})
    world.regen()
    assert world.upgrade("2.0").entries[0].status == "clean"
    # it gives on what it gets, the new parameter too
    assert world.upgrade("3.0").entries[0].status == "clean"
    entry = world.upgrade("4.0").entries[0]
    assert (entry.status, codes(entry)) == ("review", {"PK531"})


# ---- two axes ---------------------------------------------------------------------------------------------------------

DONOR = """\
  donor:
    distribution: acme
    version: "1.0"
    role: donor
"""


def backport(world: World) -> None:
    world.write("manifests/pins.yaml", (world.root / "manifests/pins.yaml").read_text() + DONOR)
    world.deltas(LOG.replace("self.log(out)", "helper(out)"))
    path = world.root / "manifests/set/runner.yaml"
    path.write_text(
        path.read_text()
        .replace(
            "reason: a test",
            "kind: backport\n    pin: donor\n    reason: a test\n    remove_when:\n      - defines: acme.engine:f",
        )
        .replace("entries:", "imports:\n  - from acme.tools import helper\nentries:")
    )
    world.release("1.0", {"tools": "def helper(x):\n    return x\n"})
    world.release("1.0", {"engine": BODY}, pin="donor")


def test_a_new_donor_changes_the_text(world: World) -> None:
    backport(world)
    world.regen()
    world.release("2.0", {"engine": BODY.replace("len(batch)", "batch.size")}, pin="donor")
    result = world.upgrade(pin="donor")
    entry = result.entries[0]
    assert (result.pin, entry.axis, entry.status) == ("donor", "donor", "clean"), (entry, result.findings)
    assert entry.ours_new is not None
    assert "batch.size" in entry.ours_new


def test_a_new_target_moves_only_the_gates(world: World) -> None:
    backport(world)
    world.regen()
    world.release("2.0", {"tools": "def helper(x):\n    return x\n", "other": "z = 1\n"})
    entry = world.upgrade().entries[0]
    assert (entry.axis, entry.status) == ("target", "unchanged"), entry
    world.release("2.0", {"tools": "z = 1\n"})
    entry = world.upgrade().entries[0]
    assert (entry.status, codes(entry)) == ("conflict", {"PK534"})


# ---- targets that are none --------------------------------------------------------------------------------------------


def test_bad_targets(world: World) -> None:
    world.release("1.0", {"engine": BODY})
    world.deltas(LOG)
    world.regen()
    before = world.state()
    assert found(world.upgrade("1.0")) == []
    assert [f.code for f in world.upgrade("1.0").findings] == ["PK650"]
    gone = world.upgrade("9.9", write=True)
    assert (found(gone), gone.exit_code) == (["PK401"], 3)
    world.release("0.9", {"engine": BODY})
    older = world.upgrade("0.9", write=True)
    assert found(older) == ["PK503", "PK542"]
    assert older.entries[0].status == "unchanged"
    nothing = world.upgrade("2.0", pin="nope")
    assert (found(nothing), nothing.exit_code) == (["PK091"], 2)
    assert world.state() == before


def test_a_stale_lock(world: World) -> None:
    world.release("1.0", {"engine": BODY})
    world.release("2.0", {"engine": BODY})
    world.deltas(LOG)
    world.regen()
    world.deltas(LOG.replace("self.log(out)", "self.note(out)"))
    before = world.state()
    result = world.upgrade(write=True)
    assert found(result) == ["PK505", "PK542"]
    assert world.state() == before


def test_no_lock(world: World) -> None:
    world.release("1.0", {"engine": BODY})
    world.release("2.0", {"engine": BODY.replace("len(batch)", "2")})
    world.deltas(LOG)
    result = world.upgrade()
    assert found(result) == ["PK505"]
    assert result.entries[0].status == "clean", "both releases are at hand, so it can be said"
    assert world.upgrade(old=None).entries[0].status == "conflict"


def test_errors_of_manifests_are_findings(world: World) -> None:
    world.write("manifests/pins.yaml", "nonsense: 1\n")
    result = world.upgrade()
    assert result.exit_code == 2


# ---- gates ------------------------------------------------------------------------------------------------------------

TOOLS = "def reserve(n):\n    return n\n"


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (TOOLS, ("unchanged", set())),
        ("def reserve(n, pool):\n    return n\n", ("conflict", {"PK533"})),
        ("def reserve(*, n):\n    return n\n", ("conflict", {"PK533"})),
        ("def reserve(n, pool=None, *more):\n    return n\n", ("unchanged", set())),
        ("def hold(n):\n    return n\n", ("conflict", {"PK534"})),
    ],
)
def test_what_deltas_call_on_the_new_target(world: World, tools: str, expected: tuple[str, set[str]]) -> None:
    world.release("1.0", {"engine": BODY, "tools": TOOLS})
    world.release("2.0", {"engine": BODY, "tools": tools})
    world.deltas(LOG.replace("self.log(out)", "reserve(out)"))
    path = world.root / "manifests/set/runner.yaml"
    path.write_text(path.read_text().replace("entries:", "imports:\n  - from acme.tools import reserve\nentries:"))
    world.regen()
    entry = world.upgrade().entries[0]
    assert (entry.status, codes(entry)) == expected


def test_methods_that_deltas_call(world: World) -> None:
    head = "class C:\n    def log(self, x):\n        return x\n\n"
    world.release("1.0", {"engine": head + textwrap.indent(BODY.strip("\n"), "    ") + "\n"})
    world.release("2.0", {"engine": head.replace("x)", "x, level)") + textwrap.indent(BODY.strip("\n"), "    ") + "\n"})
    world.deltas(LOG, symbol="C.f")
    world.regen()
    entry = world.upgrade().entries[0]
    assert (entry.status, codes(entry)) == ("conflict", {"PK533"})


CLOSE = """
class C:
    def __init__(self, kind):
        self.kind = kind
        self.pool = make()
        self.size = 2

    def close(self):
        return self.kind, self.pool


def make(): ...
"""

EARLY = """
- name: early
  after: |
    self.kind = kind
  insert: |
    if kind == "ffn":
        return
"""


def test_attributes_below_an_early_return_of_a_constructor(world: World) -> None:
    world.release("1.0", {"engine": CLOSE})
    world.release("2.0", {"engine": CLOSE.replace("self.kind, self.pool", "self.kind, self.pool, self.size")})
    world.release("3.0", {"engine": CLOSE + "\n\nx = 1\n"})
    world.deltas(EARLY, symbol="C.__init__")
    world.regen()
    entry = world.upgrade("2.0").entries[0]
    (reason,) = [f for f in entry.reasons if f.code == "PK535"]
    assert (entry.status, reason.message.rpartition(": ")[2]) == ("review", "size")
    entry = world.upgrade("3.0").entries[0]
    (reason,) = [f for f in entry.reasons if f.code == "PK656"]
    assert (entry.status, reason.message.rpartition(": ")[2]) == ("unchanged", "pool")


def test_alias_sites_added_and_removed(world: World) -> None:
    world.release("1.0", {"engine": BODY, "a": "from .engine import f\n", "b": "from acme.engine import f as g\n"})
    world.release(
        "2.0",
        {
            "engine": BODY,
            "a": "x = 1\n",
            "b": "y = 1\nfrom acme.engine import f as g\n",
            "c": "from acme.engine import *\n",
            "d": "def h():\n    from .engine import f\n",
            "e": "if TYPE_CHECKING:\n    from .engine import f\n",
            "k": "from .b import g as last\n",
        },
    )
    world.deltas(LOG)
    world.regen()
    (change,) = world.upgrade().aliases
    assert change.symbol == "acme.engine:f"
    assert [str(p) for p in change.added] == ["acme/c.py:1", "acme/k.py:1"]
    assert [str(p) for p in change.removed] == ["acme/a.py:1"]
