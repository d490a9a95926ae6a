"""What SECURITY.md says of a tampered lock: `check` proves files equal to the lock, `check --full` proves the lock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.sample import Sample

MODULE = "acme_set/runner.py"
LINE = "    desc = self.dispatch(batch, rank=self.rank)"


def tamper(sample: Sample, change: Callable[[dict[str, Any]], None]) -> None:
    path = sample.root / "generated/patchkit.lock"
    lock = json.loads(path.read_text(encoding="utf-8"))
    change(lock)
    path.write_text(json.dumps(lock, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


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
    "name", ["../../victim.py", "/victim.py", "acme_set/../../victim.py", "C:/victim.py", "..", ""]
)
def test_a_forged_lock_names_no_file_outside_the_generated_package(sample, name):
    assert sample.regen().exit_code == 0
    tamper(sample, lambda lock: lock["modules"].update({name: lock["modules"][MODULE]}))
    for report in (sample.regen(), sample.regen(full=True), sample.check()):
        (problem,) = report.findings
        assert (problem.code, report.exit_code) == ("PK105", 1)
        assert repr(name) in problem.message
