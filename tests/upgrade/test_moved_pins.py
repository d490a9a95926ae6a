"""Pins that somebody moves, sources that somebody gives, and packages with dots in their names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from afd_patchkit.api import accept
from afd_patchkit.findings.report import Report
from afd_patchkit.model import Pin, Pins
from afd_patchkit.run.pins import Opener, by_hand, overridden
from afd_patchkit.upstream.options import SourceOptions
from tests.invented import write_tree
from upgrade.world import World

OLD = {"engine": "def f(batch):\n    guard(batch)\n    out = run(batch)\n    return out\n\n\ndef guard(batch):\n    pass\n\n\ndef run(batch):\n    return batch\n"}  # fmt: skip
CLEAN = {"engine": OLD["engine"].replace("    return batch\n", "    return [batch]\n")}
REVIEW = {"engine": OLD["engine"].replace("    out = run(batch)\n", "    out = run(batch)\n    out = guard(out)\n")}
CONFLICT = {"engine": OLD["engine"].replace("out = run(batch)", "out = walk(batch)").replace("def run", "def walk")}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.release("1.0", OLD)
    world.deltas("- name: more\n  insert: |\n    out = [out]\n  after: |\n    out = run(batch)\n")
    world.regen()
    return world


def moved(world: World, version: str = "2.0") -> None:
    world.edit("manifests/pins.yaml", '"1.0"', f'"{version}"')


def run(world: World, *, check: bool = False, old: bool = True, **more: object) -> Report:
    sources = {"acme": world.releases / "acme-2.0", **({"acme@1.0": world.releases / "acme-1.0"} if old else {})}
    return world.run(sources, only_check=check, **more)


def errors(report: Report) -> list[str]:
    return [f.code for f in report.findings if f.exit_code]


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize(
    ("release", "status"), [(REVIEW, "review"), (CONFLICT, "conflict"), ({"engine": "x = 1\n"}, "missing")]
)
def test_a_pin_that_was_moved_by_hand_is_judged_like_an_upgrade(world, release, status, old):
    world.release("2.0", release)
    moved(world)
    before = world.state()
    for check in (True, False):
        report = run(world, check=check, old=old)
        assert report.exit_code == 1
        (said,) = [f for f in report.findings if f.code == "PK117"]
        assert "from 1.0 to 2.0" in said.message
        assert "1 entry needs a person" in said.message
        (entry,) = [f for f in report.findings if f.code == "PK501"]
        assert entry.message == f"acme.engine:f is not settled at acme 2.0: {status}"
        assert world.state() == before
        assert not {"PK101", "PK108", "PK109"}.intersection(
            errors(report)
        )  # the module differs for the sake of the pin


def renamed_pin(world: World) -> None:
    """The pin `acme` is called `host` from now on."""
    for path in sorted((world.root / "manifests").rglob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("  acme:", "  host:").replace("pin: acme", "pin: host"), encoding="utf-8")


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize(("release", "status"), [(REVIEW, "review"), (CONFLICT, "conflict")])
def test_a_pin_that_was_renamed_and_moved_at_once_is_judged_too(world, release, status, old):
    world.release("2.0", release)
    moved(world)
    renamed_pin(world)
    before = world.state()
    sources = {"host": world.releases / "acme-2.0", **({"host@1.0": world.releases / "acme-1.0"} if old else {})}
    for check in (True, False):
        report = world.run(sources, only_check=check)
        assert report.exit_code == 1
        (said,) = [f for f in report.findings if f.code == "PK117"]
        assert "pin host was moved from 1.0 to 2.0" in said.message
        (entry,) = [f for f in report.findings if f.code == "PK501"]
        assert entry.message == f"acme.engine:f is not settled at acme 2.0: {status}"
        assert world.state() == before


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_pin_that_was_renamed_is_written_where_upgrade_would_write_it(world, version):
    world.release("2.0", CLEAN)
    renamed_pin(world)
    if version == "2.0":
        moved(world)
    sources = {"host": world.releases / f"acme-{version}"}
    assert errors(world.run(sources)) == []
    assert errors(world.run(sources, only_check=True, full=True)) == []
    lock = json.loads((world.root / "generated/patchkit.lock").read_text(encoding="utf-8"))
    assert {name: pin["version"] for name, pin in lock["pins"].items()} == {"host": version}


def test_what_upgrade_would_write_is_written(world):
    world.release("2.0", CLEAN)
    moved(world)
    assert errors(run(world, check=True)) == ["PK101"]
    assert errors(run(world)) == []
    assert errors(run(world, check=True)) == []
    assert errors(run(world, check=True, full=True)) == []
    assert '"version": "2.0"' in (world.root / "generated/patchkit.lock").read_text()


def test_a_review_is_accepted_and_then_written(world):
    world.release("2.0", REVIEW)
    moved(world)
    options = world.options(**{"acme@2.0": "acme-2.0", "acme@1.0": "acme-1.0"})
    done = accept(world.project, "f", "it is fine", pin_overrides={"acme": "2.0"}, options=options)
    assert done.exit_code == 0, done.findings
    result = world.upgrade("2.0", write=True)
    assert result.exit_code == 0, result.findings
    assert (result.old, result.new) == ("1.0", "2.0")
    assert errors(run(world, check=True)) == []


def test_accepted_and_generated_without_upgrade(world):
    world.release("2.0", REVIEW)
    moved(world)
    options = world.options(**{"acme@2.0": "acme-2.0", "acme@1.0": "acme-1.0"})
    accept(world.project, "f", "it is fine", pin_overrides={"acme": "2.0"}, options=options)
    assert errors(run(world)) == []
    assert errors(run(world, check=True)) == []


def test_upgrade_starts_from_the_lock_whatever_pins_yaml_says(world):
    world.release("2.0", REVIEW)
    world.release("3.0", CLEAN)
    moved(world)
    result = world.upgrade("3.0", write=True)
    assert (result.old, result.new, result.exit_code) == ("1.0", "3.0", 0)
    assert 'version: "3.0"' in (world.root / "manifests/pins.yaml").read_text()


def test_a_pin_that_was_moved_back_is_judged_too(world):
    world.release("0.9", REVIEW)
    world.edit("manifests/pins.yaml", '"1.0"', '"0.9"')
    report = world.run({"acme": world.releases / "acme-0.9", "acme@1.0": world.releases / "acme-1.0"})
    assert sorted(set(errors(report))) == ["PK117", "PK501"]


def test_what_differs_for_another_reason_is_still_said(world):
    world.deltas("- name: own\n  insert: |\n    print(batch)\n  at: end\n", symbol="g", name="other")
    world.release("1.0", {**OLD, "engine": OLD["engine"] + "\n\ndef g(batch):\n    x = batch\n"})
    world.project.lock.unlink()
    world.regen()
    world.release("2.0", {**REVIEW, "engine": REVIEW["engine"] + "\n\ndef g(batch):\n    x = batch\n"})
    moved(world)
    world.edit("manifests/set/other.yaml", "print(batch)", "print(x)")
    report = run(world, check=True)
    assert [f.message for f in report.findings if f.code == "PK101"] == [
        "set/other.py is out of date: manifests/set/other.yaml changed"
    ]
    assert "PK117" in errors(report)


def test_manifests_may_be_mended_in_the_same_change(world):
    world.release("2.0", CONFLICT)
    moved(world)
    world.edit("manifests/set/runner.yaml", "out = run(batch)", "out = walk(batch)")
    said = run(world)
    assert "PK505" not in errors(said)
    assert set(errors(said)) <= {"PK117", "PK501"}


def test_a_release_that_cannot_be_had_is_not_judged(world):
    moved(world, "7.0")
    report = world.run({"acme@1.0": world.releases / "acme-1.0"})
    assert report.exit_code == 3
    assert report.written == ()


def test_which_pins_were_moved():
    record = {"distribution": "acme", "version": "1.0", "role": "target", "packages": [], "files": {"a.py": {}}}
    lock = {"pins": {"acme": record, "donor": {**record, "git": "1" * 40, "commit": "2" * 40}}}
    git = {"url": "file:///x", "commit": "3" * 40, "subdirectory": "python"}
    pins = Pins(schema=1, pins={
        "acme": Pin(distribution="acme", version="1.0", commit="9" * 40),
        "donor": Pin(distribution="acme", version="1.0", git=git),
        "new": Pin(distribution="acme", version="1.0"),
    })  # fmt: skip
    found = by_hand(pins, lock)
    assert list(found) == ["donor"]
    assert found["donor"].git is not None
    assert (found["donor"].identity, found["donor"].git.subdirectory, found["donor"].commit) == (
        "1" * 40,
        "python",
        "2" * 40,
    )
    assert by_hand(pins, None) == {}
    assert list(by_hand(pins, {"pins": {"acme": {**record, "distribution": "other"}}})) == ["acme"]


@pytest.mark.parametrize("version", ["2.0", "main", "latest", "abc1234", "v1.0"])
def test_a_pin_of_a_repository_goes_to_commits_only(world, version):
    git = {"url": "https://jane:s3cret@example.invalid/acme.git", "commit": "3" * 40}
    pins = Pins(schema=1, pins={"acme": Pin(distribution="acme", version="1.0", git=git)})
    with pytest.raises(Exception, match="PK095") as caught:
        overridden(pins, {"acme": version})
    assert "s3cret" not in str(caught.value)
    assert overridden(pins, {"acme": "4" * 40})[1] == {"acme": "4" * 40}


# ---- sources that the user gives ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("check", [True, False])
def test_a_source_is_compared_with_the_lock_always(world, check, full):
    other = world.releases / "other"
    shutil.copytree(world.releases / "acme-1.0", other)
    assert errors(world.run({"acme": other}, only_check=check, full=full)) == []
    (other / "acme/engine.py").write_text(REVIEW["engine"])
    before = world.state()
    report = world.run({"acme": other}, only_check=check, full=full)
    assert (report.exit_code, set(errors(report))) == (3, {"PK402"})
    (other / "acme/engine.py").unlink()
    assert world.run({"acme": other}, only_check=check, full=full).exit_code == 3
    assert world.state() == before


def test_equal_digests_are_equal_wherever_they_lie(world):
    other = world.releases / "elsewhere"
    shutil.copytree(world.releases / "acme-1.0", other)
    assert errors(world.run({"acme": other}, only_check=True, full=True)) == []
    before = world.state()
    assert world.run({"acme": other}, full=True).written == ()
    assert world.state() == before


# ---- packages with dots --------------------------------------------------------------------------------------------------


def test_a_pin_is_found_by_its_package_with_dots(world):
    tree = world.releases / "cloud-1.0"
    write_tree(tree, {"google/cloud/__init__.py": "", "google/cloud/store.py": "def get(name):\n    return name\n"})
    world.write("manifests/pins.yaml", """
        schema: 1
        pins:
          acme: {distribution: acme, version: "1.0"}
          cloud: {distribution: google-cloud, version: "1.0", packages: [google.cloud]}
    """)  # fmt: skip
    world.write("manifests/set/parts/own.py", '"""Ours."""\n\nfrom google.cloud.store import get\n\n\ndef own():\n    """Own."""\n    return get({})\n'.format('"x"'))  # fmt: skip
    manifest = """
        schema: 1
        module: set/own.py
        summary: Ours.
        pin: cloud
        entries:
          - {kind: owned, name: own, part: parts/own.py, reason: r, watch: ["google.cloud.store:get"]}
          - {symbol: "google.cloud.store:get", reason: r, name: ours, remove_when: [{missing: "google.cloud.store:get"}]}
    """
    world.write("manifests/set/own.yaml", manifest)
    sources = {"acme": world.releases / "acme-1.0", "cloud": tree}
    assert errors(world.run(sources)) == []
    lock = (world.root / "generated/patchkit.lock").read_text()
    assert '"google.cloud.store:get": {' in lock, "the reference has a contract"
    world.write("manifests/set/parts/own.py", '"""Ours."""\n\nfrom google.cloud.store import gone\n\n\ndef own():\n    """Own."""\n    return gone()\n')  # fmt: skip
    assert {c[:3] for c in errors(world.run(sources))} == {"PK3"}, "it has no such name"


def test_a_donor_that_cannot_be_had_is_not_the_fault_of_a_watched_symbol(world):
    world.write("manifests/pins.yaml", """
        schema: 1
        pins:
          acme: {distribution: acme, version: "1.0"}
          donor: {distribution: acme, version: "9.0", role: donor}
    """)  # fmt: skip
    world.write("manifests/set/parts/own.py", '"""Ours."""\n\n\ndef own():\n    """Own."""\n')
    manifest = "schema: 1\nmodule: set/own.py\nsummary: O.\npin: acme\nentries:\n  - {kind: owned, name: own, part: parts/own.py, reason: r, watch: ['acme.engine:guard']}\n"
    world.write("manifests/set/own.yaml", manifest)
    sources = {"acme": world.releases / "acme-1.0"}
    assert errors(world.run(sources)) == []
    world.release("2.0", CLEAN)
    result = world.upgrade("2.0")
    assert [f.code for e in result.entries for f in e.reasons if f.exit_code] == []
    # gone from the target: then the donor is asked, and it is the donor that is not there
    world.release("3.0", {"engine": OLD["engine"], "extra": ""})
    world.edit("manifests/set/own.yaml", "acme.engine:guard", "acme.extra2:guard")
    report = world.run(sources)
    assert [f.code for f in report.findings if f.exit_code == 3] == ["PK401"]
    assert "watch" not in " ".join(f.help or "" for f in report.findings if f.exit_code)


def test_a_source_of_no_pin_is_told_and_a_pin_without_a_source_is_left_alone(world):
    found = errors(world.run({"acme": world.releases / "acme-1.0", "nobody": world.releases}, only_check=True))
    assert found == ["PK091"]
    opener = Opener(SourceOptions(offline=True), None, Pins(schema=1, pins={}))
    opener.compare("acme@1.0")
    assert opener.opened == {}
