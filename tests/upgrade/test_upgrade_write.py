"""`--write`, `accept` and what a kill leaves."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from afd_patchkit.api import RunOptions, check, regen
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.upgrade import write
from afd_patchkit.upgrade.accepting import Accepted
from afd_patchkit.upgrade.accepting import accept as accept_finding

from .world import World, codes

BODY = """
def f(self, batch):
    self.check(batch)
    size = len(batch)
    out = self.run(batch, size)
    self.done(out, size)
    return out
"""

# odd formatting on purpose: all of it must survive
MANIFEST = """\
schema:   1
module: set/runner.py     # where it goes
summary: "Copies."
pin: acme


entries:
    - symbol: acme.engine:f
      # why
      reason: 'a test'
      deltas:
        - {name: first, at: start, insert: "print(1)"}
        - name: log   # the seam
          after: |

            self.done(...)

          # code
          insert: |
            self.log(out)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.release("1.0", {"engine": BODY})
    made.release("2.0", {"engine": BODY.replace("len(batch)", "batch.size")})
    made.write("manifests/set/runner.yaml", MANIFEST)
    made.regen()
    return made


def accept(world: World, ref: str, why: str = "read it", version: str = "2.0", old: str = "1.0") -> Accepted:
    options = world.options(**{f"acme@{version}": f"acme-{version}", f"acme@{old}": f"acme-{old}"})
    return accept_finding(world.project, ref, why, pin_overrides={"acme": version}, options=options)


def manifest(world: World) -> str:
    return (world.root / "manifests/set/runner.yaml").read_text()


def pins(world: World) -> str:
    return (world.root / "manifests/pins.yaml").read_text()


def is_current(world: World, version: str) -> bool:
    options = world.options(acme=f"acme-{version}")
    return check(world.project, RunOptions(sources=options, full=True)).exit_code == 0


# ---- writing ----------------------------------------------------------------------------------------------------------


def test_clean_is_written(world: World) -> None:
    before = pins(world)
    result = world.upgrade(write=True)
    assert (result.exit_code, [e.status for e in result.entries]) == (0, ["clean"])
    assert pins(world) == before.replace('"1.0"', '"2.0"')
    assert manifest(world) == MANIFEST
    assert "size = batch.size" in (world.root / "generated/generated_acme/set/runner.py").read_text()
    assert not write.journal_of(world.project).exists()
    assert is_current(world, "2.0")
    assert set(result.written) == {
        "manifests/pins.yaml", "generated/generated_acme/set/runner.py", "generated/outlines/set/runner.outline",
        "generated/patchkit.lock",
    }  # fmt: skip
    again = world.upgrade(old="2.0", write=True)
    assert [f.code for f in again.findings] == ["PK650"]
    assert again.written == ()


def test_what_needs_a_person_keeps_everything(world: World) -> None:
    world.release("2.0", {"engine": BODY.replace("    return out", "    self.free(out)\n    return out")})
    before = world.state()
    result = world.upgrade(write=True)
    assert (result.exit_code, result.written) == (1, ())
    assert [f.code for f in result.findings] == ["PK542"]
    assert world.state() == before
    assert is_current(world, "1.0")


def test_commit_evidence_of_the_old_release_goes(world: World) -> None:
    text = pins(world).replace("    role: target\n", f"    role: target\n    commit: {'a' * 40}\n")
    world.write("manifests/pins.yaml", text)
    world.regen()
    assert world.upgrade(write=True).exit_code == 0
    assert pins(world) == text.replace('"1.0"', '"2.0"').replace(f"    commit: {'a' * 40}\n", "")


def test_retired_entries_are_written_and_still_to_be_deleted(world: World) -> None:
    world.write(
        "manifests/set/runner.yaml",
        MANIFEST.replace("      deltas:", "      remove_when:\n        - defines: acme.engine:Overlap\n      deltas:"),
    )
    world.release("2.0", {"engine": BODY + "\n\nclass Overlap: ...\n"})
    world.regen()
    result = world.upgrade(write=True)
    assert (result.exit_code, [e.status for e in result.entries]) == (1, ["retire"])
    assert not (world.root / "generated/generated_acme/set/runner.py").exists()
    options = RunOptions(sources=world.options(acme="acme-2.0"), full=True)
    assert [f.code for f in check(world.project, options).findings] == ["PK548"], "until the entry is deleted"


# ---- accepting --------------------------------------------------------------------------------------------------------

GUARDED = BODY.replace("    return out", "    self.free(out)\n    return out")


def test_accepted_is_written_and_the_acceptance_is_used_up(world: World) -> None:
    world.release("2.0", {"engine": GUARDED})
    done = accept(world, "set/runner.py::f/log", "free does not touch it")
    assert [(a.delta, a.code, a.why) for a in done.recorded] == [("log", "PK512", "free does not touch it")]
    assert done.file == "manifests/accepted.json"
    rows = json.loads((world.root / done.file).read_text())["accepted"]
    assert [sorted(r) for r in rows] == [["base", "code", "delta", "entry", "new", "pin", "target", "why"]]
    assert is_current(world, "1.0"), "an acceptance is no input of generation"
    result = world.upgrade()
    entry = result.entries[0]
    assert (entry.status, entry.accepted, entry.blocks, result.exit_code) == ("review", True, False, 0)
    assert world.upgrade(write=True).exit_code == 0
    assert json.loads((world.root / done.file).read_text())["accepted"] == []
    assert is_current(world, "2.0")


def test_a_later_change_opens_it_again(world: World) -> None:
    world.release("2.0", {"engine": GUARDED})
    accept(world, "f", "fine")
    world.release("2.1", {"engine": GUARDED.replace("size = len", "size = 1 + len")})
    result = world.upgrade("2.1")
    entry = result.entries[0]
    assert (entry.status, entry.accepted, result.exit_code) == ("review", False, 1)
    world.release("2.0", {"engine": GUARDED.replace("free(out)", "free(out, size)")})
    changed = world.upgrade()
    assert not changed.entries[0].accepted
    assert "PK545" in [f.code for f in changed.findings], "nothing uses it any more"


def test_an_acceptance_of_one_delta_does_not_cover_another(world: World) -> None:
    world.release(
        "2.0",
        {
            "engine": GUARDED.replace("def f(self, batch)", "@wraps\ndef f(self, batch)")
            + "\n\ndef wraps(x): return x\n"
        },
    )
    accept(world, "set/runner.py::f/log")
    entry = world.upgrade().entries[0]
    assert [d.accepted for d in entry.deltas] == [False, True]
    assert not entry.accepted
    assert codes(entry) == {"PK512", "PK530"}
    accept(world, "f")
    assert world.upgrade().entries[0].accepted


@pytest.mark.parametrize(
    ("ref", "why", "expected"),
    [("nope", "x", "PK093"), ("f/nope", "x", "PK093"), ("f", "  ", "PK094"), ("f/first", "x", "PK094")],
)
def test_what_cannot_be_accepted(world: World, ref: str, why: str, expected: str) -> None:
    world.release("2.0", {"engine": GUARDED})
    done = accept(world, ref, why)
    assert [f.code for f in done.findings] == [expected]
    assert done.exit_code == 2
    assert not (world.root / "manifests/accepted.json").exists()


def test_gone_and_missing_cannot_be_accepted(world: World) -> None:
    world.release("2.0", {"engine": BODY.replace("    self.done(out, size)\n", "")})
    assert [f.code for f in accept(world, "f/log").findings] == ["PK094"]
    world.release("2.0", {"engine": "x = 1\n"})
    assert [f.code for f in accept(world, "f").findings] == ["PK094"]


def test_the_last_upgrade_is_the_default(world: World) -> None:
    world.release("2.0", {"engine": GUARDED})
    options = world.options(**{"acme@2.0": "acme-2.0", "acme@1.0": "acme-1.0"})
    nothing = accept_finding(world.project, "f", "fine", options=options)
    assert [f.code for f in nothing.findings] == ["PK096"]
    world.upgrade()
    assert len(accept_finding(world.project, "f", "fine", options=options).recorded) == 1


def test_useless_acceptances(world: World) -> None:
    world.release("2.0", {"engine": GUARDED})
    accept(world, "f")
    path = world.root / "manifests/accepted.json"
    data = json.loads(path.read_text())
    row = data["accepted"][0]
    data["accepted"] += [{**row, "entry": "set/gone.py::g"}, {**row, "delta": "gone"}, {**row, "code": "PK511"}]
    path.write_text(json.dumps(data))
    result = world.upgrade()
    said = [f for f in result.findings if f.code == "PK545"]
    assert [f.message.rpartition(": ")[2] for f in said] == [
        "there is no such entry", "the entry has no such delta", "that finding is not made any more",
    ]  # fmt: skip
    path.write_text("{")
    assert [f.code for f in world.upgrade().findings] == ["PK097"]


# ---- proposals --------------------------------------------------------------------------------------------------------


def test_a_proposal_is_written_once_it_is_accepted(world: World) -> None:
    world.release("2.0", {"engine": BODY.replace("self.done(out, size)", "self.finished(out, size)")})
    result = world.upgrade()
    delta = result.entries[0].deltas[1]
    assert (delta.status, delta.proposal is not None) == ("conflict", True)
    assert delta.proposal is not None
    assert (delta.proposal.new, delta.proposal.key) == ("self.finished(...)\n", "after")
    assert world.upgrade(write=True).written == ()
    accept(world, "f/log")
    result = world.upgrade(write=True)
    assert result.exit_code == 0, result.findings
    assert manifest(world) == MANIFEST.replace("\n            self.done(...)", "            self.finished(...)"), (
        "all else stays"
    )
    assert is_current(world, "2.0")


def test_a_move_is_written_once_it_is_accepted(world: World) -> None:
    world.release("2.0", {"engine": "x = 1\n", "core": BODY})
    assert world.upgrade(write=True).written == ()
    accept(world, "f")
    assert world.upgrade(write=True).exit_code == 0
    assert manifest(world) == MANIFEST.replace("acme.engine:f", "acme.core:f")
    assert is_current(world, "2.0")


def test_crlf_manifests_keep_their_line_ends(world: World) -> None:
    path = world.root / "manifests/set/runner.yaml"
    path.write_bytes(MANIFEST.replace("\n", "\r\n").encode())
    world.release("2.0", {"engine": "x = 1\n", "core": BODY})
    world.regen()
    accept(world, "f")
    assert world.upgrade(write=True).exit_code == 0
    assert path.read_bytes() == MANIFEST.replace("acme.engine:f", "acme.core:f").replace("\n", "\r\n").encode()


# ---- kills ------------------------------------------------------------------------------------------------------------


def _killed(root: Path, step: int) -> None:
    """Run the upgrade in this (child) process and kill it at the given write."""
    count = 0
    original = os.replace

    def replace_and_die(source: Path, target: Path) -> None:
        nonlocal count
        count += Path(target).is_relative_to(root / "project/manifests")
        if step and count == step:
            os.kill(os.getpid(), signal.SIGKILL)
        original(source, target)

    world = World.__new__(World)
    world.root, world.releases, world.cache = root / "project", root / "releases", root / "cache"
    os.replace = replace_and_die  # type: ignore[assignment]
    original_finish = write.finish

    def finish_and_die(project: object) -> bool:
        if step == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original_finish(project)  # type: ignore[arg-type]

    write.finish = finish_and_die  # type: ignore[assignment]
    world.upgrade(write=True)
    os._exit(0)


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("way", ["regen", "upgrade", "check"])
def test_killed_while_writing(world: World, step: int, way: str, tmp_path: Path) -> None:
    world.release("2.0", {"engine": "x = 1\n", "core": BODY})
    accept(world, "f")
    old = world.state()
    process = multiprocessing.get_context("fork").Process(target=_killed, args=(tmp_path, step))
    process.start()
    process.join(600)
    assert process.exitcode in (0, -signal.SIGKILL)
    if process.exitcode == 0:
        assert is_current(world, "2.0")
        return
    journal = write.journal_of(world.project)
    if not journal.exists():
        assert {k: v for k, v in world.state().items() if not k.startswith("generated/.")} == old
        assert is_current(world, "1.0")
        return
    if way == "check":
        report = check(world.project, RunOptions(sources=world.options(acme="acme-2.0")))
        assert [f.code for f in report.findings] == ["PK546"]
        assert [f.code for f in world.upgrade().findings] == ["PK546"]
        assert journal.exists(), "a check writes nothing"
    if way == "upgrade":
        result = world.upgrade(old="2.0", write=True)
        assert [f.code for f in result.findings] == ["PK654", "PK650"]
    else:
        assert regen(world.project, RunOptions(sources=world.options(acme="acme-2.0"))).exit_code == 0
    assert not journal.exists()
    assert '"2.0"' in pins(world)
    assert manifest(world) == MANIFEST.replace("acme.engine:f", "acme.core:f")
    assert is_current(world, "2.0")


def test_an_edit_after_a_kill_is_not_overwritten(world: World, tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=_killed, args=(tmp_path, 0))
    process.start()
    process.join(600)
    assert write.journal_of(world.project).exists()
    edited = pins(world) + "# mine\n"
    world.write("manifests/pins.yaml", edited)
    with pytest.raises(PatchkitError) as error:
        write.finish(world.project)
    assert [f.code for f in error.value.findings] == ["PK547"]
    assert [f.code for f in world.upgrade(write=True).findings] == ["PK547"]
    assert pins(world) == edited
    world.write("manifests/pins.yaml", edited.removesuffix("# mine\n"))
    assert [f.code for f in world.upgrade(old="2.0", write=True).findings] == ["PK654", "PK650"]
    assert is_current(world, "2.0")


def test_a_full_disk_changes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from afd_patchkit.run import exchange

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = world.state()
    monkeypatch.setattr(exchange, "_write", full)
    result = world.upgrade(write=True)
    assert [f.code for f in result.findings] == ["PK111"]
    assert world.state() == before
