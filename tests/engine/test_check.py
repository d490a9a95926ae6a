"""`check` says exactly what moved."""

from __future__ import annotations

import shutil

import pytest

from afd_patchkit.version import __version__
from tests.engine.sample import MANIFEST, Sample, codes


def problems(sample: Sample, **arguments: object) -> list[str]:
    """Codes of what `check` reports, notes left out."""
    return [f.code for f in sample.check(**arguments).findings if f.severity.value != "note"]


def test_no_lock(sample: Sample) -> None:
    assert problems(sample) == ["PK106"]


def test_fresh_clone_without_generated_modules(sample: Sample) -> None:
    sample.regen()
    shutil.rmtree(sample.root / "generated/generated_acme")
    report = sample.check()
    assert (report.exit_code, report.shortcut) == (0, True)
    assert problems(sample, full=True) == []


def test_one_module_of_several_missing(sample: Sample) -> None:
    sample.regen()
    sample.generated().unlink()
    report = sample.check()
    assert codes(report) == ["PK103"]
    assert report.findings[0].generated is not None
    assert report.findings[0].generated.file == "generated/generated_acme/acme_set/runner.py"
    assert sample.regen().exit_code == 0
    assert sample.generated().exists()


@pytest.mark.parametrize(
    ("old", "new", "line_text"),
    [
        ("return out\n", "return -out\n", "return out"),  # upstream text: the fold's first line is named
        ("and allowed(batch)", "or allowed(batch)", "or allowed(batch)"),  # a delta's own line
        ("# Patch reason: needed beside", "# Patch reason: wanted beside", "wanted beside"),
    ],
)
def test_hand_edit_is_found_with_its_line(sample: Sample, old: str, new: str, line_text: str) -> None:
    sample.regen()
    sample.edit(sample.generated(), old, new)
    report = sample.check()
    (found,) = report.findings
    assert found.code == "PK102"
    assert [m.status for m in report.modules] == [m.status for m in sample.check(full=True).modules] == ["differs"]
    assert found.generated is not None
    lines = sample.generated().read_text().splitlines()
    window = lines[found.generated.line - 1 : found.generated.line + 30]
    assert any(line_text.replace("return out", "return -out") in line for line in window)
    assert sample.check().exit_code == 1
    assert sample.regen().exit_code == 0  # regen overwrites it
    assert sample.check().exit_code == 0


def test_outline_edited_by_hand(sample: Sample) -> None:
    sample.regen()
    sample.edit(sample.outline(), "and allowed(batch)", "and refused(batch)")
    assert problems(sample) == ["PK102"]
    assert problems(sample, full=True) == ["PK102"]


def test_manifest_changed_without_regen(sample: Sample) -> None:
    sample.regen()
    sample.edit("manifests/acme_set/runner.yaml", "__upstream__ and allowed(batch)", "allowed(batch) and __upstream__")
    report = sample.check()
    (found,) = [f for f in report.findings if f.code == "PK101"]
    assert "manifests/acme_set/runner.yaml changed" in found.message
    assert found.details == ("entry Runner.step: its generated text or records differ",)
    assert [m.status for m in report.modules] == ["differs"]
    assert report.exit_code == 1


def test_comment_in_a_manifest_only(sample: Sample) -> None:
    sample.regen()
    path = sample.root / "manifests/acme_set/runner.yaml"
    path.write_text("# a remark\n" + path.read_text())
    assert problems(sample) == ["PK108"]  # the lock records the old digest


def test_upstream_differs_from_the_lock(sample: Sample) -> None:
    sample.regen()
    sample.release("engine", "out += value", "out += 2 * value")
    report = sample.check(full=True)
    assert report.exit_code == 3
    assert any(
        "acme/engine.py" in f.message or (f.upstream and f.upstream.file == "acme/engine.py") for f in report.findings
    )


def test_watched_symbol_at_another_version(sample: Sample) -> None:
    sample.write("manifests/acme_set/parts/own.py", '"""Ours."""\n\n\ndef own():\n    """Own."""\n')
    sample.manifest("""
        schema: 1
        module: acme_set/own.py
        summary: Ours.
        pin: acme
        entries:
          - {kind: owned, name: own, part: parts/own.py, reason: r, watch: [acme.tools:helper]}
    """, "own")  # fmt: skip
    sample.regen()
    sample.release("tools", "return (out, limit)", "return (limit, out)")
    found = sample.check(full=True, overrides={"acme": "1.1"}).findings
    (watch,) = [f for f in found if f.code == "PK109"]
    assert watch.details == ("entry own: a watched upstream symbol changed",)


def test_lock_of_another_tool_version(sample: Sample) -> None:
    sample.regen()
    sample.edit("generated/patchkit.lock", f'"tool": "{__version__}"', '"tool": "0.0.1"')
    assert problems(sample) == ["PK107"]
    sample.regen()
    assert problems(sample) == []


@pytest.mark.parametrize(
    "text", ["{", "[]", "<<<<<<< ours\n", '{"schema": 1}', '{"schema": 99, "modules": {}, "pins": {}}']
)
def test_lock_that_is_none(sample: Sample, text: str) -> None:
    sample.regen()
    sample.lock.write_text(text)
    report = sample.check()
    assert (codes(report), report.exit_code) == (["PK105"], 1)


def test_leftover_module(sample: Sample) -> None:
    sample.regen()
    (sample.root / "generated/generated_acme/acme_set/old.py").write_bytes(sample.generated().read_bytes())
    assert problems(sample) == ["PK104"]
    report = sample.regen()
    assert report.removed == ("generated/generated_acme/acme_set/old.py",)
    assert problems(sample) == []


def test_broken_manifest_does_not_hide_a_hand_edit(sample: Sample) -> None:
    sample.manifest(MANIFEST.replace("acme_set/runner.py", "acme_set/second.py").split("entries:")[0] + """entries:
  - {symbol: acme.tools:helper, reason: r}
""", "second")  # fmt: skip
    sample.regen()
    sample.edit(sample.generated(), "return out\n", "return -out\n")
    sample.edit("manifests/acme_set/second.yaml", "reason: r", "raeson: r")
    for report in (sample.check(), sample.regen()):
        assert "PK102" in codes(report)
        assert report.exit_code == 2
    # an anchor that is gone is the manifest's fault as well, but needs a person: exit 1
    sample.edit("manifests/acme_set/second.yaml", "raeson: r", "reason: r")
    sample.edit("manifests/acme_set/runner.yaml", "self.dispatch(...)", "self.despatch(...)")
    report = sample.check()
    assert {"PK102", "PK201"} <= set(codes(report))
    assert report.exit_code == 1


def test_all_errors_of_all_entries_in_one_run(sample: Sample) -> None:
    sample.edit("manifests/acme_set/runner.yaml", "self.dispatch(...)", "self.despatch(...)")
    sample.edit("manifests/acme_set/runner.yaml", "len(batch) > 1\n", "len(batch) > 11\n")
    sample.edit("manifests/acme_set/runner.yaml", "symbol: acme.engine:total", "symbol: acme.engine:totals")
    report = sample.regen()
    assert sorted(codes(report)) == ["PK201", "PK201", "PK205"]
    assert all(f.manifest is not None and f.manifest.line for f in report.findings)
    assert report.written == ()
    assert not (sample.root / "generated").exists()


def test_line_endings_of_inputs_do_not_count(sample: Sample) -> None:
    sample.regen()
    path = sample.root / "manifests/acme_set/runner.yaml"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert problems(sample) == []


def test_modules_that_are_not_on_this_machine_are_said(sample):
    assert sample.regen().exit_code == 0
    assert "PK657" not in codes(sample.check())
    shutil.rmtree(sample.root / "generated/generated_acme")
    for full in (False, True):
        report = sample.check(full=full)
        assert (report.exit_code, codes(report).count("PK657")) == (0, 1)
    assert sample.regen().exit_code == 0
    assert "PK657" not in codes(sample.check())
