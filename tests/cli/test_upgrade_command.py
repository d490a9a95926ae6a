"""`upgrade` and `diff` on a small project with a real engine: what is asked, what is printed, which exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest

from tests.engine.sample import Sample

RELEASES = {
    "1.1": ("def total(values):\n    out = 0\n", "def total(values):\n    out = 0.0\n"),
    "1.2": ("        desc = self.dispatch(batch)\n", "        desc = self.dispatch(batch, retry=True)\n"),
    "1.3": ("        out = self.model(batch)\n", "        out = self.run_model(batch)\n"),
}


@pytest.fixture
def sample(tmp_path, run, monkeypatch) -> Sample:
    """A regenerated project, the current folder, with three releases of its upstream beside it."""
    made = Sample(tmp_path / "project")
    assert made.regen().exit_code == 0
    for version, (old, new) in RELEASES.items():
        folder = tmp_path / f"acme-{version}"
        shutil.copytree(made.source, folder)
        engine = folder / "acme/engine.py"
        text = engine.read_text(encoding="utf-8")
        assert text.count(old) == 1
        engine.write_text(text.replace(old, new), encoding="utf-8")
    monkeypatch.chdir(made.root)
    return made


@pytest.fixture
def sources(sample) -> list[str]:
    """The options that say where every release is."""
    parent = sample.root.parent
    releases = [f"--source=acme@{version}={parent / f'acme-{version}'}" for version in RELEASES]
    return [f"--source=acme@1.0={sample.source}", *releases]


def to(*versions: str) -> list[str]:
    return [f"--pin=acme={version}" for version in versions]


# ---- what is asked ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--write"], "Say where to"),
        (["--report", "report"], "Say where to"),
        (["--format", "json"], "Say where to"),
        (["--pin", "acme"], "not of the form NAME=V"),
        ([*to("1.1", "1.2"), "--write"], "--write takes one release"),
        (["--pin=a=1", "--vllm=2", "--pin=b=1"], "moves one pin, not vllm and a and b"),
        (["--vllm", "1", "--format", "pdf"], "'pdf' is not one of"),
    ],
)
def test_bad_command_lines_exit_2(run, sample, arguments, said):
    result = run("upgrade", *arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_a_version_that_is_asked_for_twice_is_one_target(run, sample, sources):
    result = run("upgrade", "--offline", *sources, *to("1.1", "1.1"), "--format", "json")
    assert [t["new"] for t in json.loads(result.stdout)["targets"]] == ["1.1"]


def test_latest_and_newer_ask_the_index(run, sample, sources, monkeypatch):
    monkeypatch.setattr("afd_patchkit.upstream.releases.newer_releases", lambda name, pin, options: ["1.1", "1.2"])
    for word, expected in (("latest", ["1.2"]), ("newer", ["1.1", "1.2"])):
        result = run("upgrade", *sources, *to(word), "--format", "json")
        assert [t["new"] for t in json.loads(result.stdout)["targets"]] == expected
    assert run("upgrade", *sources, *to("newer"), "--write").exit_code == 2
    assert run("pins", "--newer").stdout == "acme 1.1\nacme 1.2\n"


def test_nothing_newer_is_nothing_to_do(run, sample, sources, monkeypatch):
    monkeypatch.setattr("afd_patchkit.upstream.releases.newer_releases", lambda name, pin, options: [])
    result = run("upgrade", *sources, *to("latest"))
    assert result.exit_code == 0
    assert "PK650" in result.stdout
    assert run("pins", "--newer").stdout == ""


def test_without_a_release_it_lists_what_there_is(run, sample, monkeypatch):
    monkeypatch.setattr("afd_patchkit.upstream.releases.newer_releases", lambda name, pin, options: ["1.1", "1.2"])
    result = run("upgrade")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "acme (acme 1.0, target)  newer: 1.1, 1.2",
        "",
        "See what a release means: afd-patchkit upgrade --pin acme=1.2 (`=latest`, or `=newer` for all of them, will do)",
    ]
    offline = run("upgrade", "--offline")
    assert (offline.exit_code, offline.stdout) == (0, "acme (acme 1.0, target)  newer: not known: --offline\n")
    monkeypatch.setattr("afd_patchkit.upstream.releases.newer_releases", lambda name, pin, options: [])
    assert run("upgrade").stdout == "acme (acme 1.0, target)  newer: none\n"


def test_the_list_says_why_the_index_cannot_be_asked(run, sample, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    result = run("upgrade")
    assert result.exit_code == 3
    assert result.stdout.startswith("acme (acme 1.0, target)  newer: not known\n\nerror PK401: pin acme")


@pytest.mark.parametrize("command", ["regen", "check", "upgrade", "diff", "pins", "share"])
def test_a_source_for_no_pin_is_refused(run, sample, command):
    more = ["--pin=acme=1.1"] if command == "upgrade" else []
    result = run(command, "--offline", f"--source=acme={sample.source}", f"--source=acne={sample.source}", *more)
    assert result.exit_code == 2, result.output
    assert "PK091: no pin or distribution is named acne, which --source gives" in result.stdout


def test_latest_needs_the_index(run, sample, sources):
    result = run("upgrade", "--offline", *sources, *to("latest"))
    assert result.exit_code == 3
    assert "PK406" in result.stdout


def test_an_unknown_pin_is_the_command_lines_fault(run, sample):
    result = run("upgrade", "--pin", "acmee=1.1")
    assert result.exit_code == 2
    assert "PK091" in result.output


def test_a_release_that_cannot_be_had_exits_3_and_the_others_are_judged(run, sample, sources):
    result = run("upgrade", "--offline", *sources, *to("1.1", "9.9"), "--format", "json")
    data = json.loads(result.stdout)
    assert result.exit_code == data["exit_code"] == 3
    assert [t["exit_code"] for t in data["targets"]] == [data["targets"][0]["exit_code"], 3]
    assert data["targets"][0]["entries"]
    assert data["targets"][1]["findings"]


# ---- what is printed --------------------------------------------------------------------------------------------


def test_one_release(run, sample, sources):
    result = run("upgrade", "--offline", *sources, *to("1.2"))
    assert "acme 1.0 -> 1.2" in result.stdout
    assert "acme_set/runner.py::Runner.step" in result.stdout
    assert result.exit_code == 1


def test_a_conflict_is_told_with_its_place_in_the_manifest(run, sample, sources):
    result = run("upgrade", "--offline", *sources, *to("1.3"))
    assert result.exit_code == 1
    assert "conflict acme_set/runner.py::Runner.step" in result.stdout
    assert "manifests/acme_set/runner.yaml:" in result.stdout


def test_nothing_is_written_without_write(run, sample, sources):
    before = {p: p.read_bytes() for p in sorted(sample.root.rglob("*")) if p.is_file()}
    run("upgrade", "--offline", *sources, *to("1.1"))
    assert {p: p.read_bytes() for p in sorted(sample.root.rglob("*")) if p.is_file()} == before


def test_several_releases_are_a_matrix(run, sample, sources):
    result = run("upgrade", "--offline", *sources, *to("1.1", "1.2", "1.3"))
    head, *rows = result.stdout.split("\n\n")[0].splitlines()
    assert head.split() == ["acme", "1.0", "->", "1.1", "1.2", "1.3"]
    cells = {row.split()[0]: row.split()[1:] for row in rows}
    assert cells["acme_set/runner.py::Runner.step"][::2] == ["unchanged", "conflict"]
    assert cells["acme_set/runner.py::total"][1:] == ["unchanged", "unchanged"]


def test_report_writes_four_files(run, sample, sources):
    result = run("upgrade", "--offline", *sources, *to("1.3"), "--report", "out/report", "--quiet")
    folder = sample.root / "out/report"
    assert sorted(p.name for p in folder.iterdir()) == ["report.html", "report.json", "report.md", "report.sarif"]
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["exit_code"] == result.exit_code == 1
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert json.loads((folder / "report.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"


@pytest.mark.parametrize("format_", ["text", "json", "markdown", "github", "sarif", "html"])
def test_every_format_also_tells_errors(run, sample, format_):
    (sample.root / "manifests/acme_set/runner.yaml").write_text("nonsense: [", encoding="utf-8")
    result = run("upgrade", *to("1.1"), "--format", format_)
    assert result.exit_code == 2
    assert "PK0" in result.stdout


def test_output_takes_the_page(run, sample, sources):
    result = run("upgrade", "--offline", *sources, *to("1.1"), "--format", "html", "-o", "page.html")
    assert result.stdout == ""
    assert "acme 1.0" in (sample.root / "page.html").read_text(encoding="utf-8")


def test_places_are_told_from_the_current_folder(run, sample, sources, monkeypatch):
    monkeypatch.chdir(sample.root / "manifests")
    result = run("upgrade", "--offline", *sources, *to("1.3"))
    assert "--> acme_set/runner.yaml:" in result.stdout


def test_json_agrees_with_the_schema_that_is_printed(run, sample, sources):
    schema = json.loads(run("schema", "--upgrade").stdout)
    data = json.loads(run("upgrade", "--offline", *sources, *to("1.1", "1.2", "1.3"), "--format", "json").stdout)
    jsonschema.Draft202012Validator(schema).validate(data)


# ---- diff -------------------------------------------------------------------------------------------------------


def plus(text: str) -> list[str]:
    return [line[1:].strip() for line in text.splitlines() if line.startswith("+") and not line.startswith("+++")]


def test_diff_shows_our_deltas(run, sample, sources):
    result = run("diff", "--offline", *sources[:1], f"--source=acme={sample.source}", "step")
    assert result.exit_code == 0
    assert "+        # ### PATCH START: ask first" in result.stdout
    assert "-        if len(batch) > 1:" in result.stdout


def test_diff_of_upstream(run, sample, sources):
    result = run("diff", "--offline", *sources, "--view", "upstream", "--against", "1.2", "runner.py::Runner.step")
    assert result.exit_code == 0
    assert plus(result.stdout) == ["desc = self.dispatch(batch, retry=True)"]
    assert "acme_set/runner.py::Runner.step (upstream, old)" in result.stdout


@pytest.mark.parametrize("named", ["--pin=acme=1.1", "--against=acme=1.1", "--against=1.1"])
@pytest.mark.parametrize("entry", ["total", "runner.py::total", "runner::total", "acme_set/runner.py::total"])
def test_diff_takes_short_names_and_pins(run, sample, sources, named, entry):
    result = run("diff", "--offline", *sources, entry, "--view=upstream", named)
    assert result.exit_code == 0, result.output
    assert "+    out = 0.0\n" in result.stdout


def test_diff_of_all_entries_names_each(run, sample, sources):
    result = run("diff", "--offline", *sources, "--view", "upstream", "--against", "acme=1.1")
    assert plus(result.stdout) == ["out = 0.0"]
    assert "Runner.step" not in result.stdout


def test_diff_of_generated_files(run, sample):
    source = f"--source=acme={sample.source}"
    clean = run("diff", "--offline", source, "--view", "generated")
    assert (clean.exit_code, clean.stdout) == (0, "")
    assert "no difference" in clean.stderr
    sample.edit("manifests/acme_set/runner.yaml", "len(batch) < 4", "len(batch) < 5")
    changed = run("diff", "--offline", source, "--view", "generated")
    assert plus(changed.stdout) == ["if len(batch) < 5:"]
    assert "--- a/generated/generated_acme/acme_set/runner.py" in changed.stdout


def test_diff_as_markdown_and_json(run, sample, sources):
    arguments = ["diff", "--offline", *sources, "--view", "upstream", "--against", "1.1"]
    markdown = run(*arguments, "--format", "markdown").stdout
    assert "| `acme_set/runner.py::total` | +1 | -1 |" in markdown
    data = json.loads(run(*arguments, "--format", "json").stdout)
    assert data["format"] == "afd-patchkit/diff/1"
    assert [(c["name"], c["added"], c["removed"]) for c in data["changes"]] == [("acme_set/runner.py::total", 1, 1)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--view", "upstream"], "needs --against"),
        (["--base", "HEAD", "--view", "delta"], "neither --view nor another release"),
        (["steps"], "PK093: there is no entry 'steps'"),
    ],
)
def test_diff_refuses_what_it_cannot_show(run, sample, arguments, said):
    result = run("diff", "--offline", f"--source=acme={sample.source}", *arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_diff_against_a_release_that_cannot_be_had(run, sample, sources):
    result = run("diff", "--offline", *sources, "--view", "upstream", "--against", "9.9")
    assert result.exit_code == 3
    assert "PK4" in result.stdout


# ---- diff --base ------------------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> str:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout


@pytest.fixture
def repository(sample) -> Sample:
    """The project in a folder of a git repository, its generated modules ignored."""
    top = sample.root.parent
    (top / ".gitignore").write_text("*\n!/project\n!/project/**\n/project/generated/generated_acme\n", encoding="utf-8")
    (top / ".gitattributes").write_text("*.yaml export-ignore\n", encoding="utf-8")
    git(top, "init", "-q", "-b", "main")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "first")
    return sample


def test_base_shows_what_a_branch_changes_in_generated_code(run, repository):
    source = f"--source=acme={repository.source}"
    assert run("diff", "--offline", source, "--base", "main").stdout == ""
    repository.edit("manifests/acme_set/runner.yaml", "len(batch) < 4", "len(batch) < 6")
    repository.edit(
        "manifests/acme_set/runner.yaml",
        "\n  - symbol: acme.engine:total\n    reason: needed beside the runner.\n",
        "\n",
    )
    result = run("diff", "--offline", source, "--base", "main")
    assert result.exit_code == 0
    assert plus(result.stdout) == ["if len(batch) < 6:"]
    assert "-def total(values):" in result.stdout
    one = run("diff", "--offline", source, "--base", "main", "total")
    assert [line for line in one.stdout.splitlines() if line.startswith("+")] == ["+++ /dev/null"]
    assert git(repository.root, "status", "--porcelain").split() == ["M", "project/manifests/acme_set/runner.yaml"]


def test_base_does_not_need_the_generated_files(run, repository):
    shutil.rmtree(repository.root / "generated")
    result = run("diff", "--offline", f"--source=acme={repository.source}", "--base", "HEAD")
    assert (result.exit_code, result.stdout) == (0, "")


def test_a_new_module_is_all_new(run, repository):
    repository.write(
        "manifests/acme_set/more.yaml",
        "schema: 1\nmodule: acme_set/more.py\nsummary: More.\npin: acme\nentries:\n  - symbol: acme.tools:helper\n    reason: more.\n",
    )
    result = run("diff", "--offline", f"--source=acme={repository.source}", "--base", "HEAD", "--format", "markdown")
    assert "| `acme_set/more.py` |" in result.stdout
    assert "| new |" in result.stdout


@pytest.mark.parametrize("revision", ["nope", "--upload-pack=x", "HEAD:project"])
def test_a_revision_that_git_does_not_know(run, repository, revision):
    result = run("diff", "--offline", f"--source=acme={repository.source}", f"--base={revision}")
    assert result.exit_code == 2
    assert "PK098" in result.stdout


def test_a_revision_before_the_project(run, repository):
    git(repository.root, "mv", "pyproject.toml", "elsewhere.toml")
    git(repository.root, "commit", "-q", "-m", "no settings")
    git(repository.root, "mv", "elsewhere.toml", "pyproject.toml")
    result = run("diff", "--offline", f"--source=acme={repository.source}", "--base", "HEAD")
    assert result.exit_code == 2
    assert "there is no project at HEAD" in result.stdout


def test_a_broken_base_says_where(run, repository):
    path = repository.root / "manifests/acme_set/runner.yaml"
    good = path.read_text(encoding="utf-8")
    path.write_text(good.replace("len(batch) > 1", "len(batch) > 17"), encoding="utf-8")
    git(repository.root, "commit", "-q", "-a", "-m", "broken")
    path.write_text(good, encoding="utf-8")
    result = run("diff", "--offline", f"--source=acme={repository.source}", "--base", "HEAD")
    assert result.exit_code == 1
    assert "at HEAD: " in result.stdout


def test_outside_a_repository(run, sample):
    result = run("diff", "--offline", f"--source=acme={sample.source}", "--base", "HEAD")
    assert result.exit_code == 2
    assert "not a git repository" in result.stdout
