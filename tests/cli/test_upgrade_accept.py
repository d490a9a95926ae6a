"""`accept`, `aliases` and `inventory` on a small project."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile

import pytest

from tests.engine.sample import Sample

SEAM = (
    "        desc = self.dispatch(batch)\n",
    "        batch = self.sort(batch)\n        desc = self.dispatch(batch)\n",
)


@pytest.fixture
def sample(tmp_path, run, monkeypatch) -> Sample:
    made = Sample(tmp_path / "project")
    assert made.regen().exit_code == 0
    folder = tmp_path / "acme-1.1"
    shutil.copytree(made.source, folder)
    engine = folder / "acme/engine.py"
    text = engine.read_text(encoding="utf-8")
    assert text.count(SEAM[0]) == 1
    engine.write_text(text.replace(*SEAM), encoding="utf-8")
    monkeypatch.chdir(made.root)
    return made


@pytest.fixture
def options(sample) -> list[str]:
    return ["--offline", f"--source=acme@1.0={sample.source}", f"--source=acme@1.1={sample.root.parent / 'acme-1.1'}"]


# ---- accept -----------------------------------------------------------------------------------------------------


def test_accept_settles_a_review(run, sample, options):
    before = run("upgrade", *options, "--pin=acme=1.1")
    assert before.exit_code == 1
    done = run("accept", *options, "--pin=acme=1.1", "Runner.step", "--why", "sorting changes nothing here")
    assert done.exit_code == 0, done.output
    assert "accepted acme_set/runner.py::Runner.step" in done.stdout
    assert "recorded in manifests/accepted.json" in done.stdout
    after = run("upgrade", *options, "--pin=acme=1.1", "--format", "json")
    entry = next(e for e in json.loads(after.stdout)["targets"][0]["entries"] if e["entry"].endswith("Runner.step"))
    assert (entry["accepted"], entry["blocks"], after.exit_code) == (True, False, 0)
    assert "sorting changes nothing here" in (sample.root / "manifests/accepted.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["step", "runner::Runner.step", "runner.py::Runner.step", "acme_set/runner.py::Runner.step"]
)
def test_accept_takes_any_part_of_a_name_that_is_unique(run, sample, options, name):
    done = run("accept", *options, "--pin=acme=1.1", name, "--why", "fine")
    assert done.exit_code == 0, done.output
    assert "accepted acme_set/runner.py::Runner.step" in done.stdout


def test_accept_several_at_once_or_none(run, sample, options):
    before = run("upgrade", *options, "--pin=acme=1.1", "--format", "json")
    entry = next(e for e in json.loads(before.stdout)["targets"][0]["entries"] if e["entry"].endswith("Runner.step"))
    open_deltas = [d["name"] for d in entry["deltas"] if d["status"] == "review"]
    assert open_deltas
    failed = run("accept", *options, "--pin=acme=1.1", f"step/{open_deltas[0]}", "total", "--why", "fine")
    assert failed.exit_code == 2
    assert not (sample.root / "manifests/accepted.json").exists()
    done = run("accept", *options, "--pin=acme=1.1", *(f"step/{d}" for d in open_deltas), "step", "--why", "fine")
    assert done.exit_code == 0, done.output
    assert run("upgrade", *options, "--pin=acme=1.1").exit_code == 0


def test_accept_proposes_the_nearest_name(run, sample, options):
    failed = run("accept", *options, "--pin=acme=1.1", "Runer.step", "--why", "fine")
    assert failed.exit_code == 2
    assert "Did you mean acme_set/runner.py::Runner.step?" in failed.output


def test_the_upgrade_prints_the_command(run, sample, options):
    said = run("upgrade", *options, "--pin=acme=1.1").stdout
    command = next(line for line in said.splitlines() if line.strip().startswith("accept "))
    words = shlex.split(command)
    assert words[:5] == ["accept", "afd-patchkit", "accept", "--pin", "acme=1.1"]
    assert words[5:-3] == options, "what is pasted reads the same upstreams"
    assert words[-3:] == ["step", "--why", "..."]
    done = run(*words[2:])
    assert done.exit_code == 0, done.output
    shown = next(line for line in said.splitlines() if line.startswith("See a change: "))
    assert "+        batch = self.sort(batch)\n" in run(*shlex.split(shown)[4:]).stdout


def test_accept_means_the_last_upgrade(run, sample, options):
    run("upgrade", *options, "--pin=acme=1.1")
    assert run("accept", *options, "Runner.step", "--why", "fine").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["Runner.step"], 2, "Say why: --why"),
        (["--why", "fine"], 2, "walk through all that is open with -i"),
        (["-i", "--format", "json", "--pin=acme=1.1"], 2, "takes neither --format nor --output"),
        (["Runner.step", "--why", "  ", "--pin=acme=1.1"], 2, "PK094"),
        (["Runner.step", "--why", "fine"], 2, "PK096"),
        (["Runner.leap", "--why", "fine", "--pin=acme=1.1"], 2, "PK093"),
        (["total", "--why", "fine", "--pin=acme=1.1"], 2, "PK094"),
        (["Runner.step", "--why", "fine", "--pin=acme=1.1", "--pin=acme=1.2"], 2, "given two versions"),
    ],
)
def test_what_cannot_be_accepted(run, sample, options, arguments, code, said):
    result = run("accept", *options, *arguments)
    assert result.exit_code == code
    assert said in result.output
    assert not (sample.root / "manifests/accepted.json").exists()


@pytest.mark.parametrize(
    ("arguments", "typed", "code", "reason"),
    [
        ([], "sorted anyway\n", 0, "sorted anyway"),
        (["step"], "d\n  sorted anyway \n", 0, "sorted anyway"),
        (["--why", "sorted anyway"], "\n", 0, "sorted anyway"),
        ([], "\n", 1, None),
        (["--why", "sorted anyway"], "s\n", 1, None),
        ([], "q\n", 1, None),
        ([], "", 130, None),
    ],
)
def test_walking_through_what_is_open(run, sample, options, arguments, typed, code, reason):
    result = run("accept", "-i", *options, "--pin=acme=1.1", *arguments, input=typed)
    assert result.exit_code == code, result.output
    assert "acme 1.0 -> 1.1: 1 entry is open" in result.stdout
    assert "1 of 1: review acme_set/runner.py::Runner.step" in result.stdout
    assert ("+        batch = self.sort(batch)" in result.stdout) is typed.startswith("d")
    file = sample.root / "manifests/accepted.json"
    if reason is None:
        assert not file.exists()
        return
    assert {row["why"] for row in json.loads(file.read_text(encoding="utf-8"))["accepted"]} == {reason}
    assert "0 entries are left open" in result.stdout
    again = run("accept", "-i", *options, "--pin=acme=1.1")
    assert (again.exit_code, again.stdout) == (0, "acme 1.0 -> 1.1: 0 entries are open\n")


def test_nothing_is_left_in_the_temporary_folder(run, sample, options, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    for arguments in (
        ["regen", f"--source=acme={sample.source}", "--full"],
        ["check", "--full", f"--source=acme={sample.source}"],
        ["upgrade", *options[1:], "--pin=acme=1.1"],
        ["accept", *options[1:], "step", "--why", "fine"],
        ["upgrade", *options[1:], "--pin=acme=1.1", "--write"],
        ["diff", f"--source=acme={sample.root.parent / 'acme-1.1'}"],
        ["inventory"],
    ):
        offline = [] if arguments[0] == "inventory" else ["--offline"]
        assert run(*arguments, *offline).exit_code < 2, arguments
        assert list(folder.iterdir()) == []


def test_accept_as_json(run, sample, options):
    result = run("accept", *options, "--pin=acme=1.1", "Runner.step", "--why", "fine", "--format", "json")
    assert json.loads(result.stdout)["written"] == ["manifests/accepted.json"]


# ---- aliases ----------------------------------------------------------------------------------------------------


@pytest.fixture
def holders(sample) -> Sample:
    """Modules that hold `acme.tools:helper` in every way there is."""
    for name, text in {
        "plain": "from acme.tools import helper\n",
        "renamed": "from .tools import helper as h\n",
        "tried": "try:\n    from acme.tools import helper\nexcept ImportError:\n    helper = None\n",
        "starred": "from acme.tools import *\n",
        "late": "def f():\n    from acme.tools import helper\n    return helper\n",
        "typed": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from acme.tools import helper\n",
        "passed": "from acme.renamed import h as again\n",
        "module": "from acme import tools\nimport acme.tools\n",
        "other": "from acme.log import init_logger as helper\n",
        "broken": "from acme.tools import helper\ndef (:\n",
    }.items():
        sample.upstream(name, text)
    return sample


def aliases(run, sample, *arguments):
    return run("aliases", "--offline", f"--source=acme={sample.source}", *arguments)


def test_aliases_of_every_kind(run, holders):
    result = aliases(run, holders, "acme.tools:helper", "--format", "json")
    assert result.exit_code == 0
    found = {a["module"]: (a["name"], a["kind"], a["source"]) for a in json.loads(result.stdout)["aliases"]}
    assert found == {
        "acme.engine": ("helper", "name", "acme.tools"),
        "acme.late": ("helper", "local", "acme.tools"),
        "acme.passed": ("again", "name", "acme.renamed"),
        "acme.plain": ("helper", "name", "acme.tools"),
        "acme.renamed": ("h", "name", "acme.tools"),
        "acme.starred": ("helper", "star", "acme.tools"),
        "acme.tried": ("helper", "name", "acme.tools"),
        "acme.typed": ("helper", "typing", "acme.tools"),
    }
    assert "acme/broken.py" in result.stderr


def test_aliases_as_tables(run, holders):
    text = aliases(run, holders, "acme.tools:helper").stdout
    assert text.splitlines()[0].split() == ["module", "name", "kind", "imported", "from", "line", "pin"]
    assert text.endswith("6 modules hold acme.tools:helper from import on\n")
    markdown = aliases(run, holders, "acme.tools:helper", "--format", "markdown").stdout
    assert "| `acme.renamed` | `h` | name | `acme.tools` | 1 | `acme` |" in markdown


def test_nobody_holds_it(run, holders):
    result = aliases(run, holders, "acme.engine:total")
    assert (result.exit_code, result.stdout) == (0, "0 modules hold acme.engine:total from import on\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["acme.tools"], 2, "package.module:name"),
        (["acme.tools:helper", "--in", "other"], 2, "no pin or distribution is named other"),
        (["acme.gone:helper"], 1, "PK205: no pin that was searched (acme) has a module acme.gone"),
        (["acme.tool:helper"], 1, "near: acme.tools"),
        (["acme.tools:helpr"], 1, "near: acme.tools:helper"),
        (["acme.engine:Engine.stepp"], 0, ""),  # its base may have it
        (["acme.engine:Base.stepp"], 1, "near: acme.engine:Base.step"),
        (["acme.engine:Engin.step"], 1, "near: acme.engine:Engine.step"),
        (["acme.engine:helper"], 0, ""),  # imported, and passed on from there
    ],
)
def test_what_aliases_cannot_find(run, holders, arguments, code, said):
    result = aliases(run, holders, *arguments)
    assert result.exit_code == code
    assert said in result.output


STATIC = ("acme.engine", "acme.passed", "acme.plain", "acme.renamed", "acme.starred", "acme.tried")


@pytest.mark.parametrize(
    ("rebound", "said"),
    [
        (STATIC, []),
        (
            STATIC[1:],
            ["error PK319: acme.engine holds acme.tools:helper as `helper` (acme/engine.py:7), and is not rebound"],
        ),
        (
            [*STATIC, "acme.late", "acme.gone"],
            [
                f"error PK320: {module} is rebound, but does not hold acme.tools:helper: what is set there is never read"
                for module in ("acme.late", "acme.gone")
            ],
        ),
    ],
)
def test_a_list_of_rebound_modules(run, holders, rebound, said):
    result = aliases(run, holders, "acme.tools:helper", *(f"--rebound={module}" for module in rebound))
    assert [line for line in result.stderr.splitlines() if line.startswith("error")] == said
    assert result.exit_code == bool(said)
    assert result.stdout.endswith("6 modules hold acme.tools:helper from import on\n")


def test_a_rebind_list_is_not_judged_by_half_a_search(run, holders):
    result = aliases(run, holders, "acme.gone:helper", "--rebound=acme.plain")
    assert result.exit_code == 1
    assert "PK205" in result.output
    assert "PK320" not in result.output


@pytest.mark.upstream
def test_aliases_of_a_real_release(run, root):
    symbol = "vllm.forward_context:set_forward_context"
    result = run("aliases", "--project", str(root), "--in", "vllm", "--vllm", "0.26.0", symbol, "--format", "json")
    assert result.exit_code == 0, result.output
    assert len({a["module"] for a in json.loads(result.stdout)["aliases"] if a["static"]}) == 16


# ---- inventory --------------------------------------------------------------------------------------------------


def test_inventory_says_what_there_is(run, sample):
    result = run("inventory")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "written: docs/inventory.md" in result.stderr
    text = (sample.root / "docs/inventory.md").read_text(encoding="utf-8")
    for said in (
        "2 entries with 3 deltas in 1 module.",
        "| `generated_acme.acme_set.runner:Runner.step` | `acme.engine:Engine.step` | copy | 3 |",
        "- Reason: acme runs one batch per step.",
        "- Guard: `acme` `1.0` only; the lock holds the digests",
        "- Removal: no condition",
        "- Installed where: `generated_acme.acme_set.runner:total`",
        "  - own rank (`call`)",
        "- Deltas: none, upstream verbatim",
        "[manifests/acme\\_set/runner.yaml](<../manifests/acme_set/runner.yaml>)",
    ):
        assert said in text


def test_check_fails_when_the_inventory_is_stale(sample, run):
    run("inventory")
    assert sample.check().exit_code == 0
    path = sample.root / "docs/inventory.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert sample.check().findings == ()
    sample.edit("manifests/acme_set/runner.yaml", "acme runs one batch per step", "acme runs a single batch per step")
    assert sample.regen().exit_code == 0
    (found,) = sample.check().findings
    assert (found.code, found.generated.file) == ("PK113", "docs/inventory.md")
    assert found.generated.line > 0
    run("inventory")
    assert sample.check().findings == ()


def test_an_edit_by_hand_is_stale_too(sample, run):
    run("inventory")
    sample.edit(
        "docs/inventory.md",
        "- Removal: no condition\n- Installed where: `generated_acme.acme_set.runner:total`",
        "- Removal: soon",
    )
    assert [f.code for f in sample.check().findings] == ["PK113"]


def test_a_change_that_the_inventory_does_not_show_leaves_it_valid(sample, run):
    run("inventory")
    path = sample.root / "docs/inventory.md"
    body, seal = path.read_text(encoding="utf-8").rsplit("<!-- ", 1)
    sample.edit("manifests/acme_set/runner.yaml", "len(batch) < 4", "len(batch) < 5")
    assert [f.code for f in sample.check().findings if f.code == "PK113"] == []
    assert path.read_text(encoding="utf-8") == f"{body}<!-- {seal}"
    assert sample.regen().exit_code == 0
    assert sample.check().findings == ()
    again, renewed = path.read_text(encoding="utf-8").rsplit("<!-- ", 1)
    assert again == body
    assert renewed != seal
    run("inventory")
    assert path.read_text(encoding="utf-8") == f"{body}<!-- {renewed}"


@pytest.mark.parametrize("spoilt", ["manifests", "page"])
def test_a_seal_is_renewed_only_where_all_is_well(sample, run, spoilt):
    run("inventory")
    path = sample.root / "docs/inventory.md"
    if spoilt == "page":
        sample.edit("docs/inventory.md", "2 entries with 3 deltas", "3 entries with 3 deltas")
    before = path.read_bytes()
    sample.edit(
        "manifests/acme_set/runner.yaml", "len(batch) < 4", "len(batch) <" if spoilt == "manifests" else "1 < 2"
    )
    assert bool(sample.regen().exit_code) == (spoilt == "manifests")
    assert path.read_bytes() == before


def test_without_an_inventory_nothing_is_checked(sample, run):
    run("inventory", "-o", "elsewhere.md")
    assert "# Inventory of patches" in (sample.root / "elsewhere.md").read_text(encoding="utf-8")
    sample.edit("manifests/acme_set/runner.yaml", "acme runs one batch per step", "x")
    sample.regen()
    assert sample.check().findings == ()


def test_inventory_to_standard_output(sample, run):
    result = run("inventory", "-o", "-")
    assert result.stdout.startswith("# Inventory of patches\n")
    assert not (sample.root / "docs").exists()


def test_broken_manifests_are_told_once(sample, run):
    run("inventory")
    sample.write("manifests/acme_set/runner.yaml", "schema: [")
    assert "PK113" not in [f.code for f in sample.check().findings]
    assert run("inventory").exit_code == 2


def test_the_repositorys_own_inventory_is_there(root):
    assert (root / "docs/inventory.md").is_file()
