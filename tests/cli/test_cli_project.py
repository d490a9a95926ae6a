"""`explain ENTRY` and `pins` on a real, small project."""

from __future__ import annotations

import json
from typing import Any

import pytest

from afd_patchkit.run.lock import dumps
from afd_patchkit.version import ENGINE

PINS = """\
schema: 1
pins:
  acme:
    distribution: acme
    version: "1.0"
    commit: 568afb3a13806beb53bb2e6bd518269357b237c0
    packages: [acme]
  acme-next:
    distribution: acme
    version: "2.0"
    role: donor
    packages: [acme]
"""
RUNNER = """\
schema: 1
module: acme_backport/runner.py
summary: Step loop.
pin: acme
remove_when:
  - any:
      - defines: acme.engine:Overlap
      - all:
          - missing: acme.engine:Engine
          - contains:
              in: acme.engine:run
              pattern: |
                halves(
                    ...)
entries:
  - symbol: acme.engine:run
    name: run_halves
    reason: pinned acme runs one batch.
    functionality: >-
      run two halves when the descriptor asks for them, and one when it does not; say so in the log, where
      somebody may look for it
    depends_on: [acme_other/runner.py::run_halves]
    deltas:
      - name: two halves
        reason: both run
        replace: |
          work(batch)
        with: |
          for half in batch:
              __upstream__
        deltas:
          - name: each half
            call:
              match: |
                work(...)
              set: {0: "half"}
  - class:
      name: Engine
      members:
        - symbol: acme.engine:Engine.step
          name: step
          reason: sees | pipes
"""
OTHER = """\
schema: 1
module: acme_other/runner.py
summary: Another.
pin: acme
entries:
  - symbol: acme.engine:other
    name: run_halves
    reason: another one.
"""


@pytest.fixture
def project(folder):
    for name, text in {
        "afd-patchkit.toml": "",
        "manifests/pins.yaml": PINS,
        "manifests/acme/runner.yaml": RUNNER,
        "manifests/other.yaml": OTHER,
        "one/acme/__init__.py": "",
        "one/acme/_version.py": '__version__ = "1.0"\n__commit_id__ = "gffd46bfab"\n',
        "two/acme/__init__.py": "",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


SOURCES = ["--source", "acme=one", "--source", "acme-next=two", "--offline"]


def test_explain_an_entry(run, project):
    result = run("explain", "acme_backport/runner.py::run_halves")
    assert result.exit_code == 0
    assert (
        result.stdout
        == """\
acme_backport/runner.py::run_halves
  manifest      manifests/acme/runner.yaml:16:5
  kind          copy
  symbol        acme.engine:run
  pin           acme: acme 1.0, target
  reason        pinned acme runs one batch.
  functionality run two halves when the descriptor asks for them, and one when it does not; say so in the log, where somebody may look for it
  depends on    acme_other/runner.py::run_halves
  remove when   (the target defines acme.engine:Overlap or (the target lacks acme.engine:Engine and acme.engine:run contains `halves( ...)`))
  deltas
    - two halves (replace, line 24)
      reason: both run
      - each half (call, line 32)
"""
    )


@pytest.mark.parametrize(
    ("topic", "entry"),
    [
        ("acme_backport/runner.py::Engine.step", "acme_backport/runner.py::Engine.step"),
        ("acme_backport/runner.py::step", "acme_backport/runner.py::Engine.step"),
        ("runner.py::step", "acme_backport/runner.py::Engine.step"),
        ("acme_other/runner.py::run_halves", "acme_other/runner.py::run_halves"),
        ("Engine.step", "acme_backport/runner.py::Engine.step"),
        ("step", "acme_backport/runner.py::Engine.step"),
        ("runner::step", "acme_backport/runner.py::Engine.step"),
    ],
)
def test_entries_may_be_shortened(run, project, topic, entry):
    data = json.loads(run("explain", topic, "--format", "json").stdout)
    assert data["entry"] == entry
    assert data["pin"]["version"] == "1.0"


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        (
            "runner.py::run_halves",
            "PK093: 'runner.py::run_halves' names several entries help: Write one of: acme_backport/runner.py::run_halves, acme_other/runner.py::run_halves.",
        ),
        ("acme_backport/runner.py::run_halfs", "PK093: there is no entry 'acme_backport/runner.py::run_halfs'"),
        ("unner.py::step", "PK093: there is no entry 'unner.py::step'"),
    ],
)
def test_entries_that_are_none_or_several(run, project, topic, message):
    result = run("explain", topic)
    assert result.exit_code == 2
    assert message in " ".join(result.stdout.split())


def test_explain_an_entry_as_markdown(run, project):
    text = run("explain", "runner.py::step", "--format", "markdown").stdout
    assert text.startswith("## `acme_backport/runner.py::Engine.step`\n\n- manifest: `manifests/acme/runner.yaml:")
    assert "- reason: sees \\| pipes\n" in text
    assert (
        "- deltas:\n  - two halves (`replace`): both run\n    - each half (`call`)\n"
        in run("explain", "acme_backport/runner.py::run_halves", "--format", "markdown").stdout
    )


def test_explain_several_things_at_once(run, project):
    data = json.loads(run("explain", "PK090", "runner.py::step", "--format", "json").stdout)
    assert [sorted(item)[0] for item in data] == ["body", "class"]


def test_explain_in_a_broken_project_reports_the_manifest(run, project):
    (project / "manifests/other.yaml").write_text(OTHER.replace("summary", "sumary"))
    result = run("explain", "runner.py::step")
    assert result.exit_code == 2
    assert "manifests/other.yaml:3:1" in result.stdout


def test_pins(run, project):
    result = run("pins", *SOURCES)
    assert result.exit_code == 0
    assert result.stderr == ""
    blocks = result.stdout.split("\n\n")
    assert (
        blocks[0]
        == """\
acme (target)
  distribution acme 1.0
  artifact     one
  sha256       none
  read from    path
  commit       568afb3a13806beb53bb2e6bd518269357b237c0
  says         version 1.0, commit ffd46bfab (acme/_version.py)"""
    )
    assert blocks[1].startswith("acme-next (donor)\n  distribution acme 2.0\n")
    assert blocks[2].startswith("note: PK641 ")
    assert run("pins", "acme-next", *SOURCES).stdout.startswith("acme-next")


def test_pins_as_json(run, project):
    data = json.loads(run("pins", "--format", "json", *SOURCES).stdout)
    assert [pin["pin"] for pin in data["pins"]] == ["acme", "acme-next"]
    assert [item["code"] for item in data["findings"]] == ["PK641"]


def test_a_pin_that_cannot_be_had_does_not_hide_the_others(run, project):
    result = run("pins", *SOURCES[:2], "--offline")
    assert result.exit_code == 3
    assert "read from    nowhere: it cannot be had, see below" in result.stdout
    assert "read from    path" in result.stdout
    assert "error PK401" in result.stdout


def test_pins_know_the_lock(run, project):
    artifact = {"source": "wheel", "file": "acme-2.0-py3-none-any.whl", "sha256": "ab" * 32}
    record = {
        "distribution": "acme",
        "version": "2.0",
        "role": "donor",
        "packages": ["acme"],
        "files": {},
        "artifact": artifact,
    }
    lock = project / "generated/patchkit.lock"
    lock.parent.mkdir()
    whole: dict[str, Any] = {"schema": 1, "engine": ENGINE, "tool": "0", "inputs": {}, "modules": {}, "warnings": []}
    lock.write_bytes(dumps({**whole, "pins": {"acme-next": record}}))
    result = run("pins", "acme-next", "--offline")
    assert result.exit_code == 3
    assert "  artifact     acme-2.0-py3-none-any.whl, says the lock\n" in result.stdout
    assert f"  sha256       {'ab' * 32}\n" in result.stdout
    lock.write_bytes(dumps({**whole, "pins": {"acme-next": {**record, "version": "1.9"}}}))
    assert "says the lock" not in run("pins", "acme-next", "--offline").stdout


def test_unknown_pins_are_refused(run, project):
    result = run("pins", "akme")
    assert result.exit_code == 2
    assert "PK091: no pin or distribution is named akme" in result.stdout
    assert "Pins: acme, acme-next." in result.stdout
