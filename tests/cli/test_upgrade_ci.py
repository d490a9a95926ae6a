"""What users copy into their CI: the YAML is sound, and the shell in it does what it says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from afd_patchkit.version import __version__
from tests.engine.sample import Sample

TEMPLATES = "afd_patchkit/manifest/ci"
BASH = shutil.which("bash")
OWN = (".github/workflows/ci.yml", ".github/workflows/release.yml")
SCRIPTED = ("action.yml", f"{TEMPLATES}/check.yml", f"{TEMPLATES}/drift.yml", *OWN)
FILES = (*SCRIPTED, ".pre-commit-hooks.yaml", ".pre-commit-config.yaml", f"{TEMPLATES}/pre-commit-config.yaml")
needs_bash = pytest.mark.skipif(BASH is None or os.name == "nt", reason="the scripts are for bash")


def load(root: Path, name: str) -> Any:
    return yaml.safe_load((root / name).read_text(encoding="utf-8"))


def steps(root: Path, name: str) -> list[dict[str, Any]]:
    data = load(root, name)
    return data["runs"]["steps"] if name == "action.yml" else [s for job in data["jobs"].values() for s in job["steps"]]


def scripts(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in SCRIPTED:
        yield from ((name, step) for step in steps(root, name) if "run" in step)


@pytest.mark.parametrize("name", FILES)
def test_yaml_is_sound(root, name):
    assert load(root, name)


def test_action_has_what_github_asks_for(root):
    action = load(root, "action.yml")
    assert set(action) >= {"name", "description", "inputs", "outputs", "runs"}
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert "run" not in step or step["shell"] == "bash"
    used = {word for step in action["runs"]["steps"] for word in _expressions(step)}
    wanted = {f"inputs.{name}" for name in action["inputs"]}
    assert wanted <= used


def _expressions(value: object) -> set[str]:
    import re

    text = json.dumps(value)
    inside = " ".join(re.findall(r"\$\{\{(.*?)\}\}", text)) + (value.get("if", "") if isinstance(value, dict) else "")
    return set(re.findall(r"[\w.-]+", inside))


def test_no_script_has_an_expression_in_it(root):
    """What is put into a script as text can be made a command by whoever names a branch."""
    for name, step in scripts(root):
        assert "${{" not in step["run"], f"{name}: {step.get('name')}"


def test_examples_name_real_options(root, run):
    from afd_patchkit.cli.group import COMMANDS

    known = {command: run(command, "--help").output for command in COMMANDS}
    for _, step in scripts(root):
        for line in step["run"].splitlines():
            words = line.split()
            for tool in ('"$tool"', "afd-patchkit"):
                if tool in words and words.index(tool) + 1 < len(words):
                    command, *rest = words[words.index(tool) + 1 :]
                    assert command in known, line
                    for word in rest:
                        if word.startswith("--"):
                            assert word.partition("=")[0] in known[command], line


def test_workflows_ask_for_least(root):
    assert load(root, f"{TEMPLATES}/check.yml")["permissions"] == {"contents": "read"}
    assert load(root, f"{TEMPLATES}/drift.yml")["permissions"] == {"contents": "read", "issues": "write"}
    assert load(root, f"{TEMPLATES}/drift.yml")["concurrency"]["group"]
    for name in OWN:
        assert load(root, name)["permissions"] == {"contents": "read"}
    publish = load(root, ".github/workflows/release.yml")["jobs"]["publish"]
    assert (publish["permissions"], publish["environment"]) == ({"id-token": "write"}, "release")


@needs_bash
def test_shell_is_sound(root, tmp_path):
    checker = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    for number, (name, step) in enumerate(scripts(root)):
        path = tmp_path / f"{number}.sh"
        path.write_text("#!/usr/bin/env bash\nset -eo pipefail\n" + step["run"], encoding="utf-8")
        command = [checker, "--shell=bash", path] if checker else [BASH, "-n", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}: {step.get('name')}\n{done.stdout}{done.stderr}"


@needs_bash
@pytest.mark.parametrize(("tag", "code"), [("v{}", 0), ("{}", 1), ("v{}.1", 1), ("v9.9.9", 1)])
def test_a_release_is_tagged_with_its_version(root, tag, code):
    script = step_of(root, OWN[1], "The tag is the version").replace("python -c", f"'{sys.executable}' -c")
    assert bash(script, root, {"TAG": tag.format(__version__)}).returncode == code


# ---- the action, run ----------------------------------------------------------------------------------------------


def step_of(root: Path, name: str, title: str) -> str:
    (found,) = [step["run"] for step in steps(root, name) if step.get("name") == title]
    return found


def bash(script: str, folder: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step as the runner does."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "GITHUB_"))}
    command = [str(BASH), "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env={**keep, **environ}, capture_output=True, text=True, check=False)


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def runner(tmp_path, root) -> dict[str, str]:
    """The environment of a step, with the tool where the action installs it."""
    tool = tmp_path / "temp/afd-patchkit/bin/afd-patchkit"
    program(tool, f'#!/bin/sh\nPYTHONPATH="{root}" exec "{sys.executable}" -m afd_patchkit "$@"\n')
    for name in ("summary.md", "output"):
        (tmp_path / name).touch()
    return {
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@pytest.fixture
def sample(tmp_path) -> Sample:
    made = Sample(tmp_path / "work/project")
    assert made.regen().exit_code == 0
    return made


def git(folder: Path, *arguments: str) -> str:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout


@needs_bash
@pytest.mark.parametrize("stale", [False, True])
def test_action_checks(root, sample, runner, stale):
    if stale:
        sample.edit("manifests/acme_set/runner.yaml", "len(batch) < 4", "len(batch) < 5")
    environ = {**runner, "PROJECT": "project", "ARGUMENTS": f"--offline\n--source=acme={sample.source}\n"}
    done = bash(step_of(root, "action.yml", "Check"), sample.root.parent, environ)
    assert done.returncode == 0, done.stderr
    outputs = dict(
        line.split("=", 1) for line in Path(runner["GITHUB_OUTPUT"]).read_text(encoding="utf-8").splitlines()
    )
    assert outputs["exit-code"] == str(int(stale))
    report = Path(outputs["report"])
    assert sorted(p.name for p in report.iterdir()) == ["check.json", "check.md", "check.sarif"]
    assert json.loads((report / "check.json").read_text(encoding="utf-8"))["exit_code"] == int(stale)
    assert Path(runner["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8").startswith("## afd-patchkit check")
    assert ("::error " in done.stdout) == stale
    final = bash(step_of(root, "action.yml", "Result"), sample.root.parent, {"CODE": outputs["exit-code"]})
    assert final.returncode == int(stale)


@needs_bash
@pytest.mark.parametrize("shallow", [False, True])
def test_action_shows_what_a_branch_changes(root, sample, runner, shallow, tmp_path):
    (sample.root / ".gitignore").write_text("generated/generated_acme\n", encoding="utf-8")
    git(sample.root, "init", "-q", "-b", "main")
    git(sample.root, "add", "-A")
    git(sample.root, "commit", "-q", "-m", "base")
    base = git(sample.root, "rev-parse", "HEAD").strip()
    sample.edit("manifests/acme_set/runner.yaml", "len(batch) < 4", "len(batch) < 5")
    git(sample.root, "commit", "-q", "-a", "-m", "change")
    place = sample.root
    if shallow:
        git(sample.root, "config", "uploadpack.allowAnySHA1InWant", "true")
        place = tmp_path / "shallow"
        subprocess.run(
            ["git", "clone", "-q", "--depth=1", sample.root.as_uri(), str(place)], check=True, capture_output=True
        )
    report = tmp_path / "report"
    report.mkdir()
    arguments = f"--offline\n--source=acme={sample.source}"
    environ = {**runner, "PROJECT": str(place), "ARGUMENTS": arguments, "BASE": base, "REPORT": str(report)}
    done = bash(step_of(root, "action.yml", "Generated code against the base"), tmp_path, environ)
    assert done.returncode == 0, done.stderr
    assert "::warning" not in done.stdout
    text = (report / "diff.md").read_text(encoding="utf-8")
    assert "+            if len(batch) < 5:" in text or "+        if len(batch) < 5:" in text
    assert text in Path(runner["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8")


@needs_bash
def test_action_survives_a_base_that_cannot_be_compared(root, sample, runner, tmp_path):
    git(sample.root, "init", "-q", "-b", "main")
    git(sample.root, "commit", "-q", "--allow-empty", "-m", "nothing yet")
    environ = {**runner, "PROJECT": str(sample.root), "ARGUMENTS": "--offline", "BASE": "main", "REPORT": str(tmp_path)}
    done = bash(step_of(root, "action.yml", "Generated code against the base"), tmp_path, environ)
    assert done.returncode == 0
    assert "::warning title=afd-patchkit diff::generated code could not be compared with main" in done.stdout


# ---- the drift workflow, run --------------------------------------------------------------------------------------

GH = """\
#!/bin/sh
case "$1 $2" in
  "issue list") cat "$STATE/titles" ;;
  "issue create") echo "$4" >> "$STATE/titles"; test -s "$8"; echo "$4" >> "$STATE/created" ;;
  "label create") echo "$3" >> "$STATE/labels" ;;
  *) exit 9 ;;
esac
"""
TOOL = """\
#!/bin/sh
if [ "$1" = pins ]; then
  while read -r version; do echo "$3 $version"; done < "$STATE/releases"
else
  echo "# $3" > body.md
  exit "$(cat "$STATE/code")"
fi
"""


class Drift:
    """The workflow's script with a `gh` and a tool that remember."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        program(folder / "bin/gh", GH)
        program(folder / "bin/afd-patchkit", TOOL)
        (folder / "titles").touch()
        self.releases("0.27.1")
        self.code(1)

    def releases(self, *versions: str) -> None:
        (self.folder / "releases").write_text("".join(f"{v}\n" for v in versions), encoding="utf-8")

    def code(self, code: int) -> None:
        (self.folder / "code").write_text(str(code), encoding="utf-8")

    def run(self) -> int:
        environ = {
            "STATE": str(self.folder),
            "PIN": "vllm",
            "LABEL": "upstream-release",
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
        }
        return bash(
            step_of(self.root, f"{TEMPLATES}/drift.yml", "One issue for each new release"), self.folder, environ
        ).returncode

    @property
    def created(self) -> list[str]:
        path = self.folder / "created"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def drift(root, tmp_path) -> Drift:
    return Drift(root, tmp_path)


@needs_bash
def test_one_issue_for_each_release_and_never_one_a_day(drift):
    title = "vllm {}: review of the upgrade"
    for _ in range(3):
        assert drift.run() == 0
    assert drift.created == [title.format("0.27.1")]
    drift.releases("0.27.1", "0.27.10", "0.28.0")  # 0.27.1 is the beginning of 0.27.10
    drift.code(0)
    for _ in range(2):
        assert drift.run() == 0
    assert drift.created == [title.format(v) for v in ("0.27.1", "0.27.10", "0.28.0")]


@needs_bash
def test_no_issue_when_the_upgrade_could_not_be_judged(drift):
    drift.code(3)
    assert drift.run() == 3
    assert drift.created == []


@needs_bash
def test_no_issue_without_a_new_release(drift):
    drift.releases()
    assert drift.run() == 0
    assert drift.created == []


# ---- the hook -----------------------------------------------------------------------------------------------------


def test_hook_names_a_command_that_is_installed(root):
    (hook,) = load(root, ".pre-commit-hooks.yaml")
    from importlib.metadata import entry_points

    program_, command = hook["entry"].split()
    assert program_ in {e.name for e in entry_points(group="console_scripts")} | {"afd-patchkit"}
    from afd_patchkit.cli.group import COMMANDS

    assert command in COMMANDS
    (own,) = load(root, f"{TEMPLATES}/pre-commit-config.yaml")["repos"][0]["hooks"]
    assert own.pop("additional_dependencies") == [f"afd-patchkit=={__version__}"]
    assert own == {key: hook[key] for key in own} | {"entry": f"{hook['entry']} --full"}


@pytest.mark.upstream  # pre-commit installs the tool with what it depends on
def test_hook_through_pre_commit(root, tmp_path):
    pytest.importorskip("pre_commit", reason="pre-commit is not installed")
    made = Sample(tmp_path / "project")
    assert made.regen().exit_code == 0
    git(made.root, "init", "-q", "-b", "main")
    git(made.root, "add", "-A")
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
        "PRE_COMMIT_HOME": str(tmp_path / "home")
    }
    command = [
        sys.executable,
        "-m",
        "pre_commit",
        "try-repo",
        str(root),
        "afd-patchkit-check",
        "--all-files",
        "--verbose",
    ]

    def hook() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=made.root, env=environ, capture_output=True, text=True, check=False)

    good = hook()
    assert good.returncode == 0, good.stdout + good.stderr
    assert "up to date" in good.stdout
    outline = made.outline()
    outline.write_text(outline.read_text(encoding="utf-8") + "# by hand\n", encoding="utf-8")
    git(made.root, "add", "-A")
    bad = hook()
    assert bad.returncode == 1
    assert "PK102" in bad.stdout
