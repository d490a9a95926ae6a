"""Where errors end: exit codes, what is said where, and the report of a bug."""

from __future__ import annotations

import errno
import json
import os
import re
import stat

import click
import pytest

from afd_patchkit import files
from afd_patchkit.cli import bugreport
from afd_patchkit.cli.guard import os_message
from afd_patchkit.files import write_atomically
from afd_patchkit.findings.errors import DeltaError, ManifestError, NameResolutionError, PatchkitError, UpstreamError
from afd_patchkit.findings.report import Report
from tests.reports.samples import evidence_note, full, pattern_error

FINDING = pattern_error()


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Report(), 0),
        (Report(findings=(evidence_note(),)), 0),
        (full(), 2),  # PK090's page says 2
        (DeltaError(FINDING), 2),
        (NameResolutionError(evidence_note()), 1),
        (PatchkitError(evidence_note()), 1),
        (ManifestError(FINDING), 2),
        (UpstreamError(FINDING), 3),
        (OSError(errno.ENOSPC, "No space left on device", "generated/patchkit.lock"), 2),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 2),
        (click.UsageError("no"), 2),
        (click.FileError("x", "no"), 2),
        (OSError("without a number"), 70),
        (KeyError("x"), 70),
        (AssertionError(), 70),
        (RecursionError("deep"), 70),
        (MemoryError(), 70),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141),
    ],
)
def test_exit_codes(run, engine, result, expected):
    engine.result = result
    outcome = run("check")
    assert outcome.exit_code == expected
    assert "Traceback" not in outcome.output


def test_user_errors_are_findings_in_the_wanted_format(run, engine):
    engine.result = UpstreamError(FINDING, evidence_note())
    text = run("check")
    assert "error PK090: the pattern of `match` matches 2 statements" in text.stdout
    assert text.stderr == ""
    data = json.loads(run("check", "--format", "json").stdout)
    assert data["exit_code"] == 3
    assert len(data["findings"]) == 2
    assert json.loads(run("check", "--format", "sarif").stdout)["runs"][0]["invocations"][0]["exitCode"] == 3


def test_a_full_disk_is_said_clearly(run, engine):
    engine.result = OSError(errno.ENOSPC, "No space left on device", "generated/patchkit.lock")
    result = run("regen")
    assert "error PK090: No space left on device: generated/patchkit.lock" in result.stdout
    assert "Traceback" in run("-v", "regen").stderr


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EROFS, "Read-only file system", "a"), "Read-only file system: a"),
        (OSError(errno.EXDEV, "Cross-device link", "a", None, "b"), "Cross-device link: a -> b"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
    ],
)
def test_os_messages(error, expected):
    assert os_message(error) == expected


def test_interrupt_is_quiet(run, engine):
    engine.result = KeyboardInterrupt()
    result = run("check")
    assert (result.stdout, result.stderr.strip()) == ("", "Interrupted.")


# ---- output that cannot be written ------------------------------------------------------------------------------


def test_output_into_a_missing_folder(run, engine, folder):
    engine.result = full()
    result = run("check", "-o", "none/report.json")
    assert result.exit_code == 2
    assert result.stderr == f"afd-patchkit: error: No such file or directory: {folder / 'none/report.json'}\n"


def test_a_disk_that_fills_up_leaves_the_old_output(run, engine, folder, monkeypatch):
    (folder / "report.json").write_text("old")

    def full_disk(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full_disk)
    engine.result = full()
    result = run("check", "-o", "report.json")
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert [(p.name, p.read_text()) for p in folder.iterdir()] == [("report.json", "old")]


def test_written_files_keep_their_mode_and_links_are_followed(folder):
    target, link = folder / "target.txt", folder / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_atomically(link, "new\udc80\n")
    assert link.is_symlink()
    assert target.read_text() == "new\\udc80\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_new_files_follow_the_umask(folder):
    old = os.umask(0o027)
    try:
        write_atomically(folder / "new.txt", "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((folder / "new.txt").stat().st_mode) == 0o640


def test_pipes_are_written_to(folder):
    fifo = folder / "pipe"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(fifo, "text\n")
        assert os.read(reader, 100) == b"text\n"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(fifo.stat().st_mode)


# ---- bugs -------------------------------------------------------------------------------------------------------


def test_bug_report(run, engine, logs):
    engine.result = ZeroDivisionError("https://me:secret@index.example/simple is\nodd")
    result = run("check", "--pin", "acme=https://me:secret@host/x y")
    assert result.exit_code == 70
    assert result.stdout == ""
    first, second, path = result.stderr.splitlines()
    assert re.fullmatch(
        r"afd-patchkit: internal error: ZeroDivisionError: https://\*\*\*@index.example/simple is \(\w+\.py:\d+ in \w+\)",
        first,
    )
    assert second == "This is a bug in afd-patchkit, not in your project. Please report it with"
    (report,) = logs.rglob("bug-*.txt")
    assert path == f"  {report}"
    text = report.read_text()
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    for part in (
        "afd-patchkit 0.",
        "python  ",
        "platform  ",
        "click ",
        "'acme=https://***@host/x y'",
        "Traceback (most recent",
        "ZeroDivisionError",
    ):
        assert part in text
    assert "secret" not in text


def test_bug_report_is_printed_when_verbose(run, engine):
    engine.result = ZeroDivisionError()
    assert "Traceback (most recent call last)" in run("-v", "check").stderr


def test_bug_report_when_no_folder_takes_it(run, engine, monkeypatch):
    monkeypatch.setattr(bugreport, "_folders", list)
    engine.result = ZeroDivisionError()
    result = run("check")
    assert result.exit_code == 70
    assert "Traceback (most recent call last)" in result.stderr
    assert "Please report it:\n" in result.stderr


def test_bug_report_falls_back_to_the_temporary_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(bugreport, "_folders", lambda: [tmp_path / "file" / "below", tmp_path / "other"])
    path = bugreport.save("text")
    assert path is not None
    assert path.parent == tmp_path / "other"


def test_a_bug_while_printing_is_still_a_report(run, engine, monkeypatch):
    monkeypatch.setattr("afd_patchkit.reports.render.render", lambda *_: 1 / 0)
    assert run("check").exit_code == 70
