"""References between entries, and what entries lean on by being overrides, delegates, subclasses or rebindings."""

from __future__ import annotations

from pathlib import Path

import pytest

from afd_patchkit.api import RunOptions, regen
from afd_patchkit.findings.report import Report
from afd_patchkit.upgrade.result import EntryResult
from tests.upgrade.world import World, codes

ENGINE = """
from dataclasses import dataclass

@dataclass
class Batch:
    size: int

class Fused:
    pass

class U:
    def _make(self, x):
        return x

    def run(self, batch):
        out = self._make(batch)
        return out

def convert(batch):
    made = Batch(batch.size)
    return made

def reserve(n, strict=False):
    return n
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty project."""
    return World(tmp_path)


def manifest(world: World, entries: str, extra: str = "") -> None:
    """One module of these entries."""
    world.write(
        "manifests/set/runner.yaml",
        f"schema: 1\nmodule: set/runner.py\nsummary: Entries.\npin: acme\n{extra}entries:\n{entries}",
    )


def at_the_pin(world: World, **files: str) -> Report:
    """Generate, whatever comes of it."""
    world.release("1.0", {"engine": ENGINE, **files})
    return regen(world.project, RunOptions(sources=world.options(acme="acme-1.0")))


def upgraded(world: World, *change: tuple[str, str]) -> dict[str, EntryResult]:
    """The entries on a release with some changes, by name."""
    report = at_the_pin(world)
    assert not [f for f in report.findings if f.severity.value == "error"], report.findings
    new = ENGINE
    for old, text in change:
        assert old in new, old
        new = new.replace(old, text)
    world.release("2.0", {"engine": new})
    return {e.ref.partition("::")[2]: e for e in world.upgrade().entries}


GROUP = """\
  - class:
      name: G
      bases: [U]
      members:
        - symbol: acme.engine:U._make
          reason: a test
        - symbol: acme.engine:U.run
          name: go
          reason: a test
          deltas:
            - name: ours
              after: |
                out = ...
              insert: |
                self._make(out)
"""
U = "imports:\n  - from acme.engine import U\n"


def test_a9_a_copied_callee_needs_more(world: World) -> None:
    manifest(world, GROUP, U)
    entries = upgraded(
        world, ("def _make(self, x)", "def _make(self, x, y)"), ("self._make(batch)", "self._make(batch, 1)")
    )
    assert entries["G._make"].status == "clean"
    assert (entries["G.go"].status, "PK533" in codes(entries["G.go"])) == ("conflict", True)


@pytest.mark.parametrize("body", ["    pass", "    @staticmethod\n    def other(x):\n        return x"])
def test_what_a_group_inherits_is_not_to_be_seen_any_more(world: World, body: str) -> None:
    manifest(
        world,
        GROUP.replace("        - symbol: acme.engine:U._make\n          reason: a test\n", "").replace("U", "V"),
        U.replace("U", "V"),
    )
    text = "\nfrom numpy import Thing\n\nclass W(Thing):\n    def _make(self, x):\n        return x\n\nclass V(W):\n    def run(self, batch):\n        out = 1\n        return out\n"
    world.release("1.0", {"engine": ENGINE + text})
    assert not regen(world.project, RunOptions(sources=world.options(acme="acme-1.0"))).exit_code
    world.release("2.0", {"engine": ENGINE + text.replace("    def _make(self, x):\n        return x", body)})
    (entry,) = world.upgrade().entries
    assert (entry.status, codes(entry)) == ("review", {"PK550"})


OVERRIDE = """\
  - class:
      name: G
      bases: [U]
      members:
        - symbol: acme.engine:U._make
          reason: a test
          deltas:
            - name: ours
              parameter: {add: "rank"}
"""


def test_a10_a_required_parameter_on_an_override(world: World) -> None:
    manifest(world, OVERRIDE, U)
    (warning,) = [f for f in at_the_pin(world).findings if f.exit_code]
    assert warning.code == "PK332"
    assert "acme/engine.py:15: nothing for rank" in warning.details


def test_a10_with_a_default_it_fits(world: World) -> None:
    manifest(world, OVERRIDE.replace('"rank"', '"rank=0"'), U)
    assert not at_the_pin(world).exit_code


def test_a10_called_by_another_entry(world: World) -> None:
    manifest(
        world,
        GROUP.replace(
            "          reason: a test\n        - symbol: acme.engine:U.run",
            '          reason: a test\n          deltas:\n            - {name: more, parameter: {add: "rank"}}\n        - symbol: acme.engine:U.run',
        ),
        U,
    )
    found = at_the_pin(world).findings
    assert any(f.code == "PK331" and "upstream's text calls `self._make`" in f.message for f in found), found


def test_a14_a_base_became_a_function(world: World) -> None:
    text = GROUP.replace("bases: [U]", "bases: [Fused]").replace("    self._make(out)", "    print(out)")
    manifest(world, text, "imports:\n  - from acme.engine import Fused\n")
    entries = upgraded(world, ("class Fused:\n    pass", "def Fused(n):\n    return n"))
    assert {e.status for e in entries.values()} >= {"conflict"}


REBOUND = """\
  - symbol: acme.engine:convert
    reason: a test
    deltas:
      - name: other
        rebind: {Batch: "Batch"}
"""


@pytest.mark.parametrize("field", ["    rank: int", "    rank: int = 0"])
def test_a16_a_class_that_is_rebound_gains_a_field(world: World, field: str) -> None:
    manifest(world, REBOUND, "imports:\n  - from acme.engine import Batch\n")
    entries = upgraded(world, ("    size: int\n", f"    size: int\n{field}\n"))
    assert entries["convert"].status in {"review", "conflict"}


DELEGATE = """\
  - symbol: acme.engine:reserve
    kind: delegate
    via: original
    reason: a test
    body: |
      return __original__(...)
"""


@pytest.mark.parametrize(
    ("new", "status"),
    [
        ("def reserve(n, strict=False, more=None):", "clean"),
        ("def reserve(n, strict=False, **more):", "clean"),
        ("def reserve(strict=False, n=1):", "review"),
        ("def reserve(n, strict=True):", "review"),
        ("def reserve(n, must, strict=False):", "review"),
        ("async def reserve(n, strict=False):", "review"),
    ],
)
def test_h2_a_delegate_that_forwards_everything(world: World, new: str, status: str) -> None:
    manifest(world, DELEGATE)
    entry = upgraded(world, ("def reserve(n, strict=False):", new))["reserve"]
    assert entry.status == status, entry.reasons


@pytest.mark.parametrize(
    ("body", "new", "status"),
    [
        ("return n, __original__(...)", "def reserve(n, strict=False, more=None):", "clean"),
        ("return __original__(__parameters__, strict=True)", "def reserve(n, strict=False, more=None):", "clean"),
        ("return n, __original__(...)", "def reserve(n: int, strict=False):", "review"),
        ("return n, __original__(...)", "def reserve(n, strict: bool = False):", "clean"),
        ("return __original__(__parameters__, strict=True)", "def reserve(n, strict: bool = False):", "review"),
        ("return __original__(n)", "def reserve(n, strict=False, more=None):", "review"),
    ],
)
def test_h2_what_a_delegate_names_is_looked_at(world: World, body: str, new: str, status: str) -> None:
    manifest(world, DELEGATE.replace("return __original__(...)", body))
    entry = upgraded(world, ("def reserve(n, strict=False):", new))["reserve"]
    assert entry.status == status, entry.reasons


CALLER = """\
  - symbol: acme.engine:reserve
    kind: delegate
    via: original
    reason: a test
    body: |
      convert_all(__parameters__)
      return __original__(...)
  - symbol: acme.engine:reserve
    name: convert_all
    share: true
    reason: a test
"""


def test_an_added_parameter_is_handed_on_to_another_entry(world: World) -> None:
    manifest(world, CALLER.replace("reason: a test\n    body", "reason: a test\n    share: true\n    body"))
    entries = upgraded(world, ("def reserve(n, strict=False):", "def reserve(n, strict=False, more=None):"))
    assert {name: e.status for name, e in entries.items()} == {"reserve": "clean", "convert_all": "clean"}
    assert "convert_all(n=n, strict=strict, more=more)" in (entries["reserve"].ours_new or "")


CONDITION = """\
  - symbol: acme.engine:reserve
    reason: a test
    remove_when:
      - absent:
          in: acme.engine:convert
          pattern: |
            made = Batch(...)
"""


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ((), "unchanged"),
        ((("def convert", "def change"),), "review"),
        ((("    made = Batch(batch.size)\n    return made", "    return batch"),), "retire"),
    ],
)
def test_e1_a_condition_is_never_true_by_emptiness(
    world: World, change: tuple[tuple[str, str], ...], status: str
) -> None:
    manifest(world, CONDITION)
    entry = upgraded(world, *change)["reserve"]
    assert entry.status == status
    if status == "review":
        assert codes(entry) == {"PK543"}


CALLS = """\
  - symbol: acme.engine:reserve
    reason: a test
"""
OTHER = """\
schema: 1
module: set/other.py
summary: Entries.
pin: acme
{imports}entries:
  - symbol: acme.loop:run
    reason: a test
{more}"""
LOOP = "from acme.engine import reserve\n\ndef run(n):\n    return reserve(n)\n"


@pytest.mark.parametrize(
    ("imports", "more", "expected"),
    [
        ("", "", ["PK335"]),
        ("", "    late: [reserve]\n", []),
        ("", "    deltas:\n      - {name: upstream's, rebind: {reserve: 'reserve'}}\n", []),
        (
            "imports:\n  - from generated_acme.set.runner import reserve\n",
            "    deltas:\n      - {name: ours, rebind: {reserve: 'reserve'}}\n",
            [],
        ),
    ],
)
def test_c5_another_entry_replaces_what_the_text_calls(
    world: World, imports: str, more: str, expected: list[str]
) -> None:
    manifest(world, CALLS)
    world.write("manifests/set/other.yaml", OTHER.format(imports=imports, more=more))
    found = at_the_pin(world, loop=LOOP).findings
    assert [f.code for f in found if f.exit_code] == expected
    assert all("set/runner.py::reserve" in f.message for f in found if f.exit_code)


@pytest.mark.parametrize(
    "entry", [CALLS.replace("reason", "name: other\n    reason"), CONDITION.replace("reserve", "U")]
)
def test_c5_what_replaces_nothing_is_quiet(world: World, entry: str) -> None:
    manifest(world, entry)
    world.write("manifests/set/other.yaml", OTHER.format(imports="", more=""))
    assert [f.code for f in at_the_pin(world, loop=LOOP).findings if f.exit_code] == []


@pytest.mark.parametrize("passed_on", [False, True])
def test_c5_a_new_call_is_a_review(world: World, passed_on: bool) -> None:
    manifest(world, CALLS)
    world.write("manifests/set/other.yaml", OTHER.format(imports="", more=""))
    again = "from acme.engine import reserve\n" if passed_on else ""
    where = "again" if passed_on else "engine"
    old = "def run(n):\n    return n\n"
    new = f"from acme.{where} import reserve as held\n\ndef run(n):\n    return held(n)\n"
    assert not [f for f in at_the_pin(world, loop=old, again=again).findings if f.exit_code]
    world.release("2.0", {"engine": ENGINE, "loop": new, "again": again})
    entries = {e.ref.partition("::")[2]: e for e in world.upgrade().entries}
    assert (entries["run"].status, codes(entries["run"])) == ("review", {"PK335"})


# ---- owned code alone ---------------------------------------------------------------------------------------------------

PARTS = """\
schema: 1
module: set/runner.py
summary: Ours.
{pin}entries:
  - {{kind: owned, part: parts/own.py, reason: a test}}
"""


@pytest.mark.parametrize("pin", ["pin: acme\n", ""])
@pytest.mark.parametrize(
    ("ours", "code", "change", "status"),
    [
        ("reserve(1)", None, ("n, strict", "n, m, strict"), "conflict"),
        ("reserve(1)", None, ("strict=False", "strict=True"), "review"),
        ("reserve(1)", None, ("batch.size", "batch.size + 1"), "unchanged"),
        ("reserve()", "PK331", None, None),
        ("engine.reserv(1)", "PK330", None, None),
    ],
)
def test_a_project_of_owned_code_alone(
    world: World, pin: str, ours: str, code: str | None, change: tuple[str, str] | None, status: str | None
) -> None:
    world.write("manifests/set/runner.yaml", PARTS.format(pin=pin))
    head = "from acme import engine\nfrom acme.engine import reserve\n\n\n"
    world.write("manifests/set/parts/own.py", f"{head}def own():\n    return {ours}\n")
    report = at_the_pin(world)
    assert {f.code for f in report.findings if f.exit_code} == ({code} if code else set())
    if change is not None:
        world.release("2.0", {"engine": ENGINE.replace(*change)})
        (entry,) = world.upgrade().entries
        assert entry.status == status


def test_a_pin_that_owned_code_runs_on_cannot_be_had(world: World) -> None:
    world.write("manifests/set/runner.yaml", PARTS.format(pin="pin: acme\n"))
    world.write("manifests/set/parts/own.py", "from acme.engine import reserve\n")
    report = regen(world.project, RunOptions(sources=world.options()))
    assert (report.exit_code, {f.code for f in report.findings}) == (3, {"PK401"})
    assert not report.written
