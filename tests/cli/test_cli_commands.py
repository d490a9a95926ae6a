"""`explain`, `schema`, `init`, `completion`, help and version."""

from __future__ import annotations

import json
import re
import sys

import jsonschema
import pytest

import afd_patchkit
from afd_patchkit.cli.group import COMMANDS
from afd_patchkit.findings.finding import codes, page

EVERY_COMMAND = pytest.mark.parametrize("command", COMMANDS)


# ---- help -------------------------------------------------------------------------------------------------------


def test_version(run):
    output = run("--version").stdout
    assert output.startswith(f"afd-patchkit {afd_patchkit.__version__} (Python {sys.version_info.major}.")


def test_help_names_every_command_and_the_exit_codes(run):
    result = run("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command}  +\S", result.stdout, re.MULTILINE)
    assert "Exit codes: 0 nothing to do" in result.stdout


def test_no_command_shows_the_help_and_exits_2(run):
    result = run()
    assert result.exit_code == 2
    assert "Usage: afd-patchkit" in result.output


@EVERY_COMMAND
def test_every_command_has_help_that_fits(run, command):
    result = run(command, "-h", terminal_width=80)
    assert result.exit_code == 0
    assert "--project DIR" in result.stdout
    assert "--color / --no-color" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


@pytest.mark.parametrize("command", ["regen", "check", "share", "pins"])
def test_reporting_commands_take_the_formats(run, command):
    assert "[text|json|markdown|github|sarif]" in run(command, "--help").stdout


# ---- explain ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["PK090", "pk090"])
def test_explain_a_code(run, code):
    result = run("explain", code)
    assert result.exit_code == 0
    assert result.stdout.startswith("# PK090: The operating system refused\n\n*error, exit code 2*\n")
    assert page("PK090").body in result.stdout


def test_explain_as_json(run):
    data = json.loads(run("explain", "PK090", "--format", "json").stdout)
    assert data == {
        "code": "PK090", "title": "The operating system refused", "severity": "error", "exit_code": 2, "body": page("PK090").body,
    }  # fmt: skip
    assert [item["code"] for item in json.loads(run("explain", "--format", "json").stdout)] == codes()


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_explain_lists_all_codes(run, format_):
    output = run("explain", "--format", format_).stdout
    assert re.findall(r"PK\d{3}", output) == codes()


def test_explain_an_unknown_code(run):
    result = run("explain", "PK089")
    assert result.exit_code == 2
    assert "There is no code 'PK089'. Near: " in result.stderr
    assert "There is no code 'P201'. Near: PK201" in run("explain", "P201").stderr
    assert "PK0" in run("explain", "Engine.step").stdout, "outside a project"


@pytest.mark.parametrize("color", [True, False])
def test_pages_on_a_terminal(color):
    from afd_patchkit.cli.pretty import pretty_markdown
    from afd_patchkit.reports.layout import Style, columns

    text = pretty_markdown(
        "# PK000: A title\n\n*error*\n\nSome `code` and " + "words " * 40 + "\n\n- one\n", Style(color, 80)
    )
    lines = text.split("\n")
    assert max(map(columns, lines)) <= 80
    assert ("\x1b[" in text) is color
    assert "PK000: A title" in lines[0]
    assert not lines[0].startswith(" ")


# ---- schema -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("option", "key"), [([], "entries"), (["--pins"], "pins")])
def test_schema(run, folder, option, key):
    result = run("schema", *option)
    schema = json.loads(result.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert key in schema["properties"]
    assert run("schema", *option, "-o", "s.json").stdout == ""
    assert (folder / "s.json").read_text() == result.stdout


def test_schema_of_reports(run):
    jsonschema.Draft202012Validator.check_schema(json.loads(run("schema", "--report").stdout))


# ---- init -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "step"), [([], "afd-patchkit regen"), (["new"], "cd new && afd-patchkit regen")])
def test_init(run, folder, arguments, step):
    result = run("init", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    first, *paths, package, last = result.stdout.splitlines()
    assert (first, last) == ("written:", f"next: {step}")
    assert package.startswith("generated modules are imported from `patched`: ")
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {path.strip() for path in paths} == files
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    again = run("init", *arguments)  # renews schemas and ignore rules, of which none is stale
    assert (again.exit_code, again.stderr) == (0, "")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


# ---- completion -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shell", "mark"),
    [
        ("bash", "complete -o nosort -F"),
        ("zsh", "#compdef afd-patchkit"),
        ("fish", "complete --no-files --command afd-patchkit"),
    ],
)
def test_completion_script(run, shell, mark):
    result = run("completion", shell)
    assert result.exit_code == 0
    assert mark in result.stdout
    assert "_AFD_PATCHKIT_COMPLETE" in result.stdout
    assert f"\n  {shell}:" in run("completion", "--help").stdout, "one line each"
    assert result.stderr == ""


@pytest.fixture
def project(folder):
    (folder / "manifests/acme").mkdir(parents=True)
    (folder / "manifests/pins.yaml").write_text(
        'schema: 1\npins:\n  acme:\n    distribution: acme\n    version: "1.0"\n    git:\n      url: x\n  acme-next:\n    version: "2"\n'
    )
    (folder / "manifests/acme/runner.yaml").write_text(
        "schema: 1\nmodule: acme_backport/runner.py  # below\nsummary: x\n"
    )
    (folder / "manifests/acme/slicer.yaml").write_text('schema: 1\nmodule: "acme_backport/slicer.py"\n')
    (folder / "manifests/acme/broken.yaml").write_bytes(b"module\xff: [\n")
    return folder


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("che", ["check"]),
        ("regen --vl", ["--vllm", "--vllm-ascend"]),
        ("regen acme", ["acme_backport/runner.py", "acme_backport/slicer.py"]),
        ("check acme_backport/s", ["acme_backport/slicer.py"]),
        ("check --format s", ["sarif"]),
        ("regen --pin a", ["acme=", "acme-next="]),
        ("explain PK09", [code for code in codes() if code.startswith("PK09")]),
        ("explain pk090", ["PK090"]),
        ("explain acme_backport/r", ["acme_backport/runner.py::"]),
        ("completion z", ["zsh"]),
    ],
)
def test_what_tab_offers(run, project, line, expected):
    environ = {
        "_AFD_PATCHKIT_COMPLETE": "bash_complete",
        "COMP_WORDS": f"afd-patchkit {line}",
        "COMP_CWORD": str(len(line.split())),
    }
    output = run(env=environ).stdout
    assert [item.split(",", 1)[1] for item in output.splitlines()] == expected


ENTRIES = {
    "acme_set/runner.py": {
        "Runner.step": ["ask first", "halves, twice"],
        "total": [],
        "Runner.close": ["halves, twice"],
    },
    "acme_set/other.py": {"total": [], "parts/other.py": []},
}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("accept st", ["step"]),
        ("accept Runner", ["Runner.step", "Runner.close"]),
        ("accept to", []),
        ("accept other.py::to", ["other.py::total"]),
        ("accept as", ["ask\\\\ first"]),
        ("accept step/", ["step/ask\\\\ first", "step/halves,\\\\ twice"]),
        ("accept 'step/halves, t", ["step/halves,\\\\ twice"]),
        ("accept step/halves,\\ t", ["step/halves,\\\\ twice"]),
        ("explain st", ["step"]),
        ("explain PK09", [code for code in codes() if code.startswith("PK09")]),
        ("diff runner.py::", ["runner.py::Runner.step", "runner.py::total", "runner.py::Runner.close"]),
        ("diff PK09", []),
    ],
)
def test_tab_offers_entries_and_deltas(run, project, line, expected):
    modules = {
        module: {"entries": {name: {"deltas": {delta: [] for delta in deltas}} for name, deltas in entries.items()}}
        for module, entries in ENTRIES.items()
    }
    (project / "afd-patchkit.toml").write_text("")
    (project / "generated").mkdir()
    (project / "generated/patchkit.lock").write_text(json.dumps({"modules": modules}))
    environ = {
        "_AFD_PATCHKIT_COMPLETE": "bash_complete",
        "COMP_WORDS": f"afd-patchkit {line}",
        "COMP_CWORD": "2",
    }
    assert [item.split(",", 1)[1] for item in run(env=environ).stdout.split("\n") if item] == expected


@pytest.mark.parametrize(
    "lock", [b"", b"[]", b"{", b"\xff", b'{"modules": {"a": []}}', b'{"modules": {"a": {"entries": {"b": 1}}}}']
)
def test_tab_on_a_broken_lock_offers_nothing(run, project, lock):
    (project / "afd-patchkit.toml").write_text("")
    (project / "generated").mkdir()
    (project / "generated/patchkit.lock").write_bytes(lock)
    environ = {"_AFD_PATCHKIT_COMPLETE": "bash_complete", "COMP_WORDS": "afd-patchkit accept ", "COMP_CWORD": "2"}
    result = run(env=environ)
    assert (result.exit_code, result.stdout.strip()) == (0, "")


def test_tab_outside_a_project_offers_nothing(run, folder):
    environ = {"_AFD_PATCHKIT_COMPLETE": "bash_complete", "COMP_WORDS": "afd-patchkit regen a", "COMP_CWORD": "2"}
    assert run(env=environ).stdout.strip() == ""
