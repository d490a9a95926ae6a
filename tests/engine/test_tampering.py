"""What SECURITY.md says of tampered files: `check` finds an edit of the lock, `check --full` proves the lock."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from afd_patchkit.findings.report import Report
from afd_patchkit.run import lock as locks
from afd_patchkit.upgrade import accepted
from afd_patchkit.upgrade.accepted import Acceptance
from afd_patchkit.upgrade.upgrading import upgrade
from tests.engine.sample import MANIFEST, Sample

MODULE = "acme_set/runner.py"


def tamper(sample: Sample, change: Callable[[dict[str, Any]], object]) -> None:
    """A lock as somebody forges it who computes the digests of its records as well."""
    lock = json.loads(sample.lock.read_text(encoding="utf-8"))
    for found in (*lock["modules"].values(), *lock["pins"].values()):
        del found["record"]
    change(lock)
    sample.lock.write_bytes(locks.dumps(lock))


@pytest.fixture
def forged(sample: Sample) -> Sample:
    """A project whose module, outline and lock agree on a line that no manifest asks for."""
    assert sample.regen().exit_code == 0
    files = [
        sample.root / "generated/generated_acme" / MODULE,
        sample.root / "generated/outlines/acme_set/runner.outline",
    ]
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "and allowed(batch)" in text
        path.write_text(text.replace("and allowed(batch)", "and anything(batch)"), encoding="utf-8")

    def change(lock: dict[str, Any]) -> None:
        record = lock["modules"][MODULE]
        record["sha256"], record["outline"] = (hashlib.sha256(path.read_bytes()).hexdigest() for path in files)

    tamper(sample, change)
    return sample


def test_files_that_agree_with_a_forged_lock_pass_the_quick_check_only(forged):
    assert forged.check().exit_code == 0
    report = forged.check(full=True)
    assert report.exit_code == 1
    assert {f.code for f in report.findings} >= {"PK101"}


def test_a_forged_digest_of_upstream_text_is_refused(sample):
    assert sample.regen().exit_code == 0

    def change(lock: dict[str, Any]) -> None:
        for file in lock["pins"]["acme"]["files"].values():
            file["raw"] = "0" * 64

    tamper(sample, change)
    report = sample.check(full=True)
    assert report.exit_code == 3
    assert {f.code for f in report.findings} == {"PK402"}


@pytest.mark.parametrize(
    "name",
    ["../../victim.py", "/victim.py", "acme_set/../../victim.py", "C:/victim.py", "..", "", ".", "a\0b.py", "a\ud800.py", "acme_set//x.py",
     "./x.py", "acme_set/x.py\n", "acme_set\\x.py", "é.py", ".py", "acme_set/.py", "acme_set/runner"],
)  # fmt: skip
def test_a_forged_lock_names_no_file_outside_the_generated_package(sample, name):
    assert sample.regen().exit_code == 0
    tamper(sample, lambda lock: lock["modules"].update({name: lock["modules"][MODULE]}))
    before = sample.state()
    for report in (sample.regen(), sample.regen(full=True), sample.check()):
        (problem,) = report.findings
        assert (problem.code, report.exit_code) == ("PK105", 1)
        if "\ud800" not in name:
            assert repr(name) in problem.message
    assert sample.state() == before


# ---- every edit of one place ------------------------------------------------------------------------------------------


Place = tuple[str | int, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place in a JSON document but the whole."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*at, key)
        yield from places(inner, (*at, key))


def edits(document: Any) -> Iterator[tuple[str, Any]]:
    """The document with one thing changed, for each place and each kind of change, and what that was."""
    for place in places(document):
        holder: Any = document
        for key in place[:-1]:
            holder = holder[key]
        key, old = place[-1], holder[place[-1]]
        for what, new in _others(old):
            yield f"{place} {what}", _with(document, place, lambda h, k, new=new: h.__setitem__(k, new))
        yield f"{place} gone", _with(document, place, lambda h, k: h.__delitem__(k))
        if isinstance(key, str):
            yield f"{place} renamed", _with(document, place, lambda h, k: h.__setitem__(f"{k}x", h.pop(k)))
            yield f"{place} beside", _with(document, place, lambda h, k: h.__setitem__(f"{k}x", copy.deepcopy(h[k])))
        else:
            yield f"{place} twice", _with(document, place, lambda h, k: h.insert(k, copy.deepcopy(h[k])))


def _others(old: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(old, str):
        yield "changed", f"{old}x" if not old else ("0" if old[0] != "0" else "1") + old[1:]
        yield "emptied", "" if old else "x"
    for other in (None, True, 7, 1.5, "text", [], ["x"], {}, {"x": "y"}):
        if type(other) is not type(old) or (isinstance(old, int) and other != old):
            yield f"to {other!r}", other


def _with(document: Any, place: Place, change: Callable[[Any, Any], object]) -> Any:
    new = copy.deepcopy(document)
    holder = new
    for key in place[:-1]:
        holder = holder[key]
    change(holder, place[-1])
    return new


def written(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


@pytest.fixture
def rich(sample: Sample) -> Sample:
    """A project whose lock holds one of everything: owned code, what it watches, references, taken text, a second pin."""
    sample.manifest(MANIFEST.replace("from acme_host import allowed", "from acme_host import allowed\n  - from acme.engine import Engine"))  # fmt: skip
    sample.write("manifests/acme_set/parts/own.py", '"""Ours."""\n\nfrom acme.tools import helper\n\n\ndef own():\n    """Own."""\n    return helper(1, 2)\n')  # fmt: skip
    sample.manifest("""
        schema: 1
        module: acme_set/own.py
        summary: Ours.
        pin: acme
        entries:
          - {kind: owned, name: own, part: parts/own.py, reason: r, watch: [acme.tools:helper]}
    """, "own")  # fmt: skip
    assert sample.regen().exit_code == 0
    return sample


def test_check_finds_every_edit_of_one_place_of_the_lock(rich):
    document = json.loads(rich.lock.read_text(encoding="utf-8"))
    original = rich.lock.read_bytes()
    missed, count = [], 0
    for what, changed in edits(document):
        written(rich.lock, changed)
        count += 1
        if rich.check().exit_code not in (1, 2, 3):
            missed.append(what)
    assert missed == []
    assert count > 1000
    rich.lock.write_bytes(original)
    assert rich.check().exit_code == 0


def test_lines_of_the_lock_that_are_lost_or_swapped(rich):
    lines = rich.lock.read_text(encoding="utf-8").splitlines(keepends=True)
    for n in range(len(lines)):
        rich.lock.write_text("".join([*lines[:n], *lines[n + 1 :]]), encoding="utf-8")
        assert rich.check().exit_code == 1, lines[n]
    for n in range(len(lines) - 1):
        if lines[n] != lines[n + 1]:
            rich.lock.write_text("".join([*lines[:n], lines[n + 1], lines[n], *lines[n + 2 :]]), encoding="utf-8")
            if json_or_none(rich.lock) != json.loads("".join(lines)):
                assert rich.check().exit_code == 1, lines[n]


def json_or_none(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None


def test_branches_that_change_different_modules_merge_without_a_conflict(rich):
    """Two edits of a lock, each as `regen` makes it, put together line by line, are what `regen` makes of both."""
    base = rich.lock.read_text(encoding="utf-8").splitlines()
    changes = {"runner": ("needed beside", "wanted beside"), "own": ("reason: r,", "reason: why,")}
    one_side = {}
    for name, (old, new) in changes.items():
        rich.edit(f"manifests/acme_set/{name}.yaml", old, new)
        assert rich.regen().exit_code == 0
        one_side[name] = rich.lock.read_text(encoding="utf-8").splitlines()
        rich.edit(f"manifests/acme_set/{name}.yaml", new, old)
        assert rich.regen().exit_code == 0
    assert len({len(base), *map(len, one_side.values())}) == 1
    merged = []
    for lines in zip(base, *one_side.values(), strict=True):
        changed = {line for line in lines if line != lines[0]}
        assert len(changed) <= 1, "both sides changed one line"
        merged.append(changed.pop() if changed else lines[0])
    for name, (old, new) in changes.items():
        rich.edit(f"manifests/acme_set/{name}.yaml", old, new)
    assert rich.regen().exit_code == 0
    assert rich.lock.read_text(encoding="utf-8").splitlines() == merged


def answers(sample: Sample) -> Iterator[tuple[str, Report | int]]:
    """What each command that reads the lock says; a fault of the tool is an exception."""
    yield "check", sample.check()
    yield "check --full", sample.check(full=True)
    options = sample.offline({"acme": sample.source, "acme@1.0": sample.source})
    yield "upgrade", upgrade(sample.project, pin_overrides={"acme": "1.1"}, options=options).exit_code
    without = sample.offline({"acme": sample.source})
    yield (
        "upgrade without the old text",
        upgrade(sample.project, pin_overrides={"acme": "1.2"}, options=without).exit_code,
    )


def test_no_forged_lock_is_a_fault_of_the_tool(rich):
    """Every edit, with digests computed anew, so that it comes further than the check of the records."""
    rich.release("engine", "out += value", "out += 2 * value")
    rich.release("engine", "desc = self.dispatch(batch)", "desc = self.dispatch(batch, rank=1)")
    document = json.loads(rich.lock.read_text(encoding="utf-8"))
    for found in (*document["modules"].values(), *document["pins"].values()):
        del found["record"]
    chosen = list(edits(document))
    random.Random(11).shuffle(chosen)
    for what, changed in chosen[:150]:
        try:
            rich.lock.write_bytes(locks.dumps(changed))
        except (AttributeError, TypeError, KeyError):
            written(rich.lock, changed)  # no lock any more
        for command, _ in _guarded(what, answers(rich)):
            assert command


def _guarded(what: str, said: Iterator[tuple[str, Report | int]]) -> Iterator[tuple[str, Report | int]]:
    try:
        yield from said
    except Exception as error:
        raise AssertionError(what) from error


def test_every_edit_of_what_was_accepted_is_refused_or_read(sample):
    sample.regen()
    items = [
        Acceptance(f"{MODULE}::total", delta, "PK510", "acme", "a" * 16, "b" * 16, "1.1", "it is fine", "", "me", "2026-01-01")
        for delta in ("", "ask first")
    ]  # fmt: skip
    path = accepted.path_of(sample.project)
    path.write_bytes(accepted.dumps(items))
    options = sample.offline({"acme": sample.source})
    for what, changed in edits(json.loads(path.read_bytes())):
        written(path, changed)
        result = upgrade(sample.project, pin_overrides={"acme": "1.1"}, options=options)
        assert result.exit_code in (0, 1, 2), what
        assert sample.check().exit_code in (0, 1, 2), what


@pytest.mark.parametrize("name", ["patchkit.lock", "outlines/acme_set/runner.outline"])
@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[" * 100_000, b"\x00", b"null", b"{}", b'"\\ud800"', b"~ 99999999 upstream lines: a b:1-2 0123456789abcdef\n", b"1e999", b"NaN"])  # fmt: skip
def test_files_that_are_something_else(sample, name, data):
    sample.regen()
    (sample.root / "generated" / name).write_bytes(data)
    sample.edit(sample.generated(), "return out\n", "return -out\n")
    for full in (False, True):
        assert sample.check(full=full).exit_code == 1
