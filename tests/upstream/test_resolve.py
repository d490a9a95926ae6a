"""What is said about a pin: evidence, notes, and the whole list of what was tried."""

from __future__ import annotations

import pytest

from afd_patchkit.findings.errors import EXIT_UPSTREAM, UpstreamError
from afd_patchkit.findings.finding import page
from afd_patchkit.model import Pin
from afd_patchkit.upstream.base import MemoryUpstream
from afd_patchkit.upstream.resolve import evidence, evidence_note, pin_report
from tests.upstream.conftest import Open, everything
from tests.upstream.packages import make_wheel
from tests.upstream.server import Index


def test_everything_that_was_tried_is_named(open_acme: Open) -> None:
    with pytest.raises(UpstreamError) as error:
        open_acme(distribution="acme-ascend")
    assert error.value.exit_code == EXIT_UPSTREAM
    (only,) = error.value.findings
    assert only.code == "PK401"
    assert "acme-ascend 1.0" in only.message
    assert [line.partition(":")[0] for line in only.details] == ["cache", "installed", "index", "git"]
    assert only.help is not None
    assert "--source acme=PATH" in only.help


@pytest.mark.parametrize("version", ["one", "1.0-", "v 1", "1.0.*"])
def test_impossible_version(open_acme: Open, version: str) -> None:
    with pytest.raises(UpstreamError, match="no PEP 440 version"):
        open_acme(version=version)


@pytest.mark.parametrize("written", ["1.0", "1", "v1.0", "1.0.0"])
def test_versions_are_compared_not_spelled(index: Index, open_acme: Open, written: str) -> None:
    index.add("acme-1.0-py3-none-any.whl", make_wheel())
    assert open_acme(version=written).artifact.file == "acme-1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "__version__ = version = '1.0'\n__commit_id__ = commit_id = 'gabc1234def'\n",
            {"commit": "abc1234def", "version": "1.0"},
        ),
        ("version: str = '1.0'\ncommit_id: str | None = None\n", {"version": "1.0"}),
        (
            "__version__ = '1.1.dev5+gabc1234.d20260101'\n",
            {"commit": "abc1234", "version": "1.1.dev5+gabc1234.d20260101"},
        ),
        ("git_revision = '" + "a" * 40 + "'\n", {"commit": "a" * 40}),
        ("commit_id = 'not a commit'\n", {}),
        ("import os\nversion = os.system('touch /nowhere')\n", {}),
        ("version = (\n", {}),
    ],
)
def test_evidence(text: str, expected: dict[str, str]) -> None:
    upstream = MemoryUpstream(
        {"acme/__init__.py": "", "acme/_version.py": text, "acme/x/_version.py": "commit_id = 'abcdef0'\n"}
    )
    found = evidence(upstream)
    assert found.pop("file", "acme/_version.py") == "acme/_version.py"
    assert found == expected


def test_evidence_of_a_wheel(index: Index, open_acme: Open) -> None:
    index.add("acme-1.0-py3-none-any.whl", make_wheel())
    upstream = open_acme()
    assert evidence(upstream) == {"commit": "abc1234def", "version": "1.0", "file": "acme/_version.py"}
    same = Pin(distribution="acme", version="1.0", commit="abc1234def" + "0" * 30)
    assert evidence_note(upstream, same) is None
    assert evidence_note(upstream, Pin(distribution="acme", version="1.0")) is None
    note = evidence_note(upstream, Pin(distribution="acme", version="1.0", commit="5" * 40))
    assert note is not None
    assert (note.code, note.exit_code) == ("PK641", 0)
    assert "5555555555" in note.message
    assert "abc1234def" in note.message


def test_report_of_an_upstream_without_traffic() -> None:
    report = pin_report(MemoryUpstream({"acme/__init__.py": ""}))
    assert (report.pin, report.source, report.bytes, report.requests) == ("acme", "memory", 0, 0)


def test_offline_error_names_what_helps(open_acme: Open) -> None:
    with pytest.raises(UpstreamError) as error:
        open_acme(offline=True)
    assert "git" not in everything(error)


@pytest.mark.parametrize("code", [f"PK4{n:02}" for n in range(1, 11)])
def test_pages_of_errors(code: str) -> None:
    assert page(code).exit_code == EXIT_UPSTREAM
    assert page(code).severity.value == "error"
