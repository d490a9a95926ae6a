"""Each finding code is raised by a test: those that no other test names are raised here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.findings.errors import PatchkitError, UpstreamError
from afd_patchkit.findings.finding import Finding, codes
from afd_patchkit.model import Pin, Pins
from afd_patchkit.project import load_project
from afd_patchkit.run import exchange
from afd_patchkit.run.exchange import exclusive
from afd_patchkit.upgrade.result import UpgradeResult
from afd_patchkit.upgrade.upgrading import upgrade, upgrades
from tests.engine.sample import Sample
from tests.names.world import World as Names
from tests.upgrade.world import World

TESTS = Path(__file__).parent
ONLY_RENDERED = ("reports",)
"""Folders whose tests make findings up."""


def test_every_code_is_raised_by_a_test():
    named: set[str] = set()
    for path in TESTS.rglob("*.py"):
        if path.relative_to(TESTS).parts[0] not in ONLY_RENDERED:
            named |= set(re.findall(r"\bPK\d{3}\b", path.read_text(encoding="utf-8")))
    assert sorted(set(codes()) - named) == [], "write a test that raises it"


def everything(result: UpgradeResult) -> list[Finding]:
    """Every finding of an upgrade."""
    found = [*result.findings]
    for entry in result.entries:
        found += [*entry.reasons, *(f for delta in entry.deltas for f in delta.reasons)]
    return found


def one(findings: Any, code: str) -> Finding:
    """The only finding of a code."""
    (found,) = [f for f in findings if f.code == code]
    return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def body(*lines: str) -> dict[str, str]:
    """A module whose function `f` has these lines."""
    return {"engine": "def f(x):\n" + "".join(f"    {line}\n" for line in lines)}


# ---- upgrades ---------------------------------------------------------------------------------------------------------


def test_an_upgrade_moves_one_pin(world):
    world.release("1.0", body("return x"))
    world.deltas("")
    world.regen()
    result = upgrade(world.project, pin_overrides={}, options=world.options(acme="acme-1.0"))
    assert "one pin, not 0" in one(result.findings, "PK095").message
    for result in upgrades(world.project, [{"acme": "2.0"}, {"acme": "3.0"}], options=world.options(), write=True):
        assert "not to 2" in one(result.findings, "PK095").message


def test_the_operation_and_a_line_merge_disagree(world):
    """The first of two equal statements is another one now; a line merge keeps the delta where it stood."""
    world.release("1.0", body("x.a()", "x.go()", "x.b()", "x.c()", "x.d()", "x.go()", "return x"))
    world.release(
        "2.0",
        body("x.go()", "x.new()", "x.other()", "x.a()", "x.go()", "x.b()", "x.c()", "x.d()", "x.go()", "return x"),
    )
    world.deltas("- name: log\n  after: |\n    x.go()\n  nth: 1\n  insert: |\n    x.log()\n")
    world.regen()
    result = world.upgrade()
    (entry,) = result.entries
    assert entry.status != "clean"
    found = [f for f in everything(result) if f.code == "PK516"]
    assert found
    assert any("x.log()" in detail for detail in found[0].details)


def test_what_a_delta_calls_has_another_default(world):
    module = "def reserve(n, strict={}): return n\n\n\ndef f(x):\n    return x\n"
    world.release("1.0", {"engine": module.format(False)})
    world.release("2.0", {"engine": module.format(True)})
    world.deltas("- name: reserved\n  at: start\n  insert: |\n    x = reserve(x)\n")
    path = world.root / "manifests/set/runner.yaml"
    path.write_text(path.read_text().replace("entries:", "imports:\n  - from acme.engine import reserve\nentries:"))
    world.regen()
    found = one(everything(world.upgrade()), "PK550")
    assert found.delta == "reserved"
    assert "strict" in found.message


DONOR = """\
schema: 1
pins:
  acme:
    distribution: acme
    version: "1.0"
    role: target
  donor:
    distribution: acme
    version: "1.0"
    role: donor
"""


def test_taken_text_changed(world):
    world.write("manifests/pins.yaml", DONOR)
    world.release("1.0", body("return x"))
    world.release("1.0", body("y = x", "return y"), pin="donor")
    world.release("2.0", body("y = x + 1", "return y"), pin="donor")
    take = "- name: taken\n  at: start\n  insert:\n    take: {pin: donor, symbol: 'acme.engine:f', from: 'y = ...'}\n"
    world.deltas(take)
    world.regen()
    found = one(everything(world.upgrade(pin="donor")), "PK524")
    assert found.delta == "taken"
    assert "acme.engine:f" in found.message


def test_an_entry_is_superfluous(world):
    world.release("1.0", body("return x"))
    world.release("2.0", {"engine": body("return x")["engine"] + "def native(): pass\n"})
    world.deltas("")
    path = world.root / "manifests/set/runner.yaml"
    path.write_text(
        path.read_text().replace(
            "reason: a test", "reason: a test\n    remove_when:\n      - defines: acme.engine:native"
        )
    )
    world.regen()
    result = world.upgrade()
    assert "the target defines acme.engine:native" in one(everything(result), "PK540").message
    assert [entry.status for entry in result.entries] == ["retire"]


def test_the_old_release_is_not_at_hand(world):
    world.release("1.0", body("return x"))
    world.release("2.0", body("return x"))
    world.deltas("")
    world.regen()
    assert not [f for f in everything(world.upgrade()) if f.code == "PK655"]
    assert "pin acme" in one(everything(world.upgrade(old=None)), "PK655").message


# ---- generation -------------------------------------------------------------------------------------------------------


def test_a_part_that_parses_and_does_not_compile(tmp_path):
    sample = Sample(tmp_path / "project")
    sample.write("manifests/acme_set/parts/own.py", "def own():\n    pass\n\n\nreturn\n")
    sample.manifest(
        """
        schema: 1
        module: acme_set/own.py
        summary: Own.
        entries:
          - kind: owned
            part: parts/own.py
            reason: ours.
        """,
        "own",
    )
    report = sample.regen()
    found = one(report.findings, "PK231")
    assert report.exit_code == 1
    assert "outside function" in found.message
    assert found.generated is not None
    assert found.generated.line
    assert found.details == ("return",)
    assert found.entry == "acme_set/own.py::parts/own.py"


def test_a_name_that_nothing_binds_is_said_of_each_entry_that_reads_it(tmp_path):
    sample = Sample(tmp_path / "project")
    for name in ("a", "b"):
        sample.write(f"manifests/acme_set/parts/{name}.py", f"def {name}():\n    return lost, lost\n")
    sample.manifest(
        """
        schema: 1
        module: acme_set/own.py
        summary: Own.
        entries:
          - {kind: owned, part: parts/a.py, reason: ours.}
          - {kind: owned, part: parts/b.py, reason: ours.}
        """,
        "own",
    )
    found = [f for f in sample.regen().findings if f.code == "PK232"]
    assert [(f.entry, f.message) for f in found] == [
        (f"acme_set/own.py::parts/{name}.py", "nothing in acme_set/own.py binds `lost`") for name in ("a", "b")
    ]
    places = [(f.manifest.file, f.manifest.line) for f in found if f.manifest]
    assert places == [(f"manifests/acme_set/parts/{name}.py", 2) for name in ("a", "b")]


def test_a_name_that_only_an_unread_star_import_can_give(tmp_path):
    world = Names(tmp_path, {"acme/core.py": "from fastlib import *\ndef f(x):\n    return turn(x)\n"})
    found = one(world.plan("acme.core:f").findings, "PK313")
    assert "from fastlib import *" in found.message
    assert not found.exit_code, "upstream's own text uses it"
    new = world.plan("acme.core:f", change={"turn(x)": "turn(move(x))"})
    assert sorted(bool(f.exit_code) for f in new.findings if f.code == "PK313") == [False, True]


def test_a_donor_without_a_target():
    def open_(name: str, pin: Pin) -> Any:
        raise AssertionError(f"{name} {pin} is opened")

    pins = Pins(schema=1, pins={"new": Pin(distribution="acme", version="2.0", role="donor")})
    with pytest.raises(UpstreamError) as caught:
        Workspace(pins, open_).target_of("new")
    assert "donor pin new" in one(caught.value.findings, "PK420").message


@pytest.mark.parametrize("folders_can_be_locked", [True, False])
def test_another_run_is_writing(tmp_path, monkeypatch, folders_can_be_locked):
    if not folders_can_be_locked:
        monkeypatch.setattr(exchange, "_folder_lock", exchange._file_lock)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(exchange, "WAIT", 0.0)
    (tmp_path / "pyproject.toml").write_text("[tool.afd-patchkit]\n")
    project = load_project(tmp_path)
    before = sorted(p.name for p in tmp_path.iterdir())
    with exclusive(project):
        with pytest.raises(PatchkitError) as caught, exclusive(project):
            raise AssertionError("two runs write")
        assert one(caught.value.findings, "PK112").generated.file == "generated"
    with exclusive(project):
        pass
    if folders_can_be_locked:
        assert sorted(p.name for p in tmp_path.iterdir()) == before, "something is left"
