"""`regen`, `check` and `share`: what reaches the engine, and what is printed of what comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.report import Report
from tests.reports.samples import MODULES, PINS, edited_file, evidence_note, full, pattern_error


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["regen"], {"check": False, "modules": (), "overrides": {}, "full": False, "jobs": None, "progress": None}),
        (["regen", "--check"], {"check": True}),
        (["check"], {"check": True}),
        (["share"], {"check": True}),
        (["regen", "a/b.py", "c.py"], {"modules": ("a/b.py", "c.py")}),
        (["regen", "--vllm", "0.26.0"], {"overrides": {"vllm": "0.26.0"}}),
        (["regen", "--vllm-ascend", "a1b2"], {"overrides": {"vllm-ascend": "a1b2"}}),
        (["regen", "--pin", "acme=1.0", "--pin", "donor = 2"], {"overrides": {"acme": "1.0", "donor": "2"}}),
        (["regen", "--pin", "vllm=0.26.0", "--vllm", "0.26.0"], {"overrides": {"vllm": "0.26.0"}}),
        (["check", "--full", "--jobs", "3"], {"full": True, "jobs": 3}),
    ],
)
def test_what_reaches_the_engine(run, engine, arguments, expected):
    assert run(*arguments).exit_code == 0
    (call,) = engine.calls
    assert {name: call[name] for name in expected} == expected


def test_sources(run, engine, folder):
    (folder / "tree").mkdir()
    assert run("regen", "--source", "acme=tree", "--offline").exit_code == 0
    options = engine.calls[0]["sources"]
    assert (options.sources, options.offline, options.progress) == ({"acme": Path("tree")}, True, None)


@pytest.mark.parametrize(("given", "expected"), [((), None), (("--timeout", "2.5"), 2.5)])
def test_timeout(run, engine, given, expected):
    assert run("check", *given).exit_code == 0
    assert engine.calls[0]["sources"].timeout == expected


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x", "1e9"])
def test_timeout_that_is_none(run, engine, text):
    done = run("check", "--timeout", text)
    assert (done.exit_code, engine.calls) == (2, [])
    assert "--timeout" in done.stderr


@pytest.mark.parametrize("arguments", [["--project", "sub", "check"], ["check", "--project", "sub"]])
def test_project(run, engine, folder, arguments):
    (folder / "sub").mkdir()
    assert run(*arguments).exit_code == 0
    assert engine.calls[0]["project"].start == Path("sub")


def test_findings_name_files_from_where_the_user_is(run, engine, folder, monkeypatch):
    engine.result = full()
    assert "--> manifests/acme/runner.yaml:31:18" in run("check").stdout
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert "--> ../manifests/acme/runner.yaml:31:18" in run("check", "--project", "..").stdout
    engine.result = ManifestError(*full().findings)
    assert "--> ../manifests/acme/runner.yaml:31:18" in run("check", "--project", "..").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["regen", "--pin", "acme"], "'acme' is not of the form NAME=V."),
        (["regen", "--pin", "=1"], "'=1' is not of the form NAME=V."),
        (["regen", "--pin", "a=1", "--pin", "a=2"], "a is given two versions: 1 and 2."),
        (["regen", "--vllm", "1", "--pin", "vllm=2"], "vllm is given two versions: 1 and 2."),
        (["regen", "--source", "acme="], "is not of the form NAME=PATH."),
        (["regen", "--source", "acme=nowhere"], "--source acme: there is no nowhere."),
        (["regen", "--jobs", "0"], "0 is not in the range x>=1"),
        (["regen", "--format", "yaml"], "'yaml' is not one of"),
        (["regen", "--project", "nowhere"], "'nowhere' does not exist"),
        (["regne"], "No such command 'regne'. Did you mean regen?"),
        (["frobnicate"], "No such command 'frobnicate'."),
        (["regen", "--chek"], "No such option"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
        (["--format"], "No such option"),
    ],
)
def test_bad_command_lines_exit_2_on_standard_error(run, engine, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert engine.calls == []


@pytest.mark.parametrize("command", ["regen", "check", "share"])
def test_exit_code_is_the_reports(run, engine, command):
    engine.result = full()
    assert run(command).exit_code == 2
    engine.result = Report(findings=(evidence_note(),))
    assert run(command).exit_code == 0


def test_text(run, engine):
    engine.result = Report(modules=MODULES[:2], pins=PINS[:1], seconds=3.42)
    result = run("regen")
    assert result.stderr == ""
    assert (
        result.stdout
        == """\
module                   status   entries  deltas  files  verbatim
acme_backport/runner.py  written       12      31      9     97.0%
acme_backport/slicer.py  differs        2       3      1    100.0%
total                                  14      34            97.1%

retired (the removal condition holds)
  acme_backport/slicer.py::old_slice

pin   version  source  files  downloaded  requests
acme  1.0      wheel       9      1.2 MB        14

2 modules: 1 written, 1 differs in 3.4 s
"""
    )


def test_regen_check_reports_as_check(run, engine):
    engine.result = Report(modules=MODULES[2:], seconds=0.04)
    assert run("regen", "--check").stdout == run("check").stdout == "1 module up to date in 0.04 s\n"
    assert json.loads(run("regen", "--check", "--format", "json").stdout)["command"] == "check"


def test_quiet_and_verbose(run, engine):
    engine.result = full()
    assert len(run("check", "-q").stdout.splitlines()) == 2
    assert run("-q", "check").stdout == run("check", "-q").stdout
    assert run("check", "-qv").stdout == run("check").stdout
    assert "owned.py" in run("check", "-v").stdout


@pytest.mark.parametrize("format_", ["json", "sarif"])
def test_json_formats_print_one_document(run, engine, format_):
    engine.result = full()
    result = run("check", "--format", format_)
    assert json.loads(result.stdout)
    assert result.stderr == ""


@pytest.mark.parametrize(("format_", "start"), [("markdown", "## afd-patchkit check: "), ("github", "::error file=")])
def test_line_formats(run, engine, format_, start):
    engine.result = full()
    assert run("check", "--format", format_).stdout.startswith(start)


# ---- share ------------------------------------------------------------------------------------------------------


def test_share_does_not_mind_drift(run, engine, monkeypatch):
    # PK1xx pages are the lock's business; any page does here
    from afd_patchkit.cli.commands import share

    engine.result = Report(findings=(evidence_note(), pattern_error()), modules=MODULES)
    result = run("share")
    assert result.stdout.startswith("module                   upstream lines  verbatim  module lines   share\n")
    assert "error PK090" in result.stdout
    assert result.exit_code == 2
    drifted = Report(findings=(edited_file(),), modules=MODULES)
    monkeypatch.setattr(share, "EXIT_USAGE", 3)
    monkeypatch.setattr(share, "DRIFT", ("manifest",))
    engine.result = drifted
    assert (run("share").exit_code, "PK090" in run("share").stdout) == (0, False)


def test_share_as_json_has_the_shares(run, engine):
    engine.result = Report(modules=MODULES)
    data = json.loads(run("share", "--format", "json").stdout)
    assert [m["share"] for m in data["modules"]] == [pytest.approx(1950 / 2010), 1.0, None]


# ---- output -----------------------------------------------------------------------------------------------------


def test_output_goes_to_the_file_and_only_there(run, engine, folder):
    engine.result = full()
    printed = run("check", "--format", "json").stdout
    result = run("check", "--format", "json", "--output", "report.json")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", "written: report.json\n")
    assert (folder / "report.json").read_text() == printed
    assert [p.name for p in folder.iterdir()] == ["report.json"]
    assert run("check", "-q", "--format", "json", "--output", "report.json").stderr == ""
    assert run("check", "--format", "json", "-o", "-").stdout == printed


def test_output_of_nothing_is_an_empty_file(run, engine, folder):
    (folder / "report.txt").write_text("old")
    assert run("check", "-q", "-o", "report.txt").exit_code == 0
    assert (folder / "report.txt").read_text() == ""


@pytest.mark.parametrize(
    ("environ", "option", "colored"),
    [
        ({}, [], False),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"FORCE_COLOR": "0"}, [], False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": "1"}, ["--color"], True),
        ({"FORCE_COLOR": "1"}, ["--no-color"], False),
    ],
)
def test_color(run, engine, monkeypatch, environ, option, colored):
    engine.result = full()
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in run("check", *option, color=True).stdout) is colored


def test_files_get_color_only_when_asked(run, engine, folder, monkeypatch):
    engine.result = full()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    run("check", "-o", "a.txt")
    run("check", "--color", "-o", "b.txt")
    assert "\x1b" not in (folder / "a.txt").read_text()
    assert "\x1b" in (folder / "b.txt").read_text()
