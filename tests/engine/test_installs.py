"""`installs`: from the manifest over the lock to what a generated package does in a process."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from afd_patchkit.building.files import shipped
from afd_patchkit.cli import main
from afd_patchkit.header import INIT
from tests.engine.sample import Sample
from tests.invented import read_tree, write_tree

CORE = """
import contextlib
import functools

LIMIT = 3


def run(x):
    return x + 1


@contextlib.contextmanager
def session(name):
    yield name


class Engine:
    def __init__(self, size):
        self.size = size

    @staticmethod
    def boot(x):
        return x

    @property
    def room(self):
        return self.size

    @room.setter
    def room(self, value):
        self.size = value

    @functools.cached_property
    def table(self):
        return [self.size]

    def __hidden(self):
        return 1

    def show(self):
        return self.__hidden()
"""

FRONT = """
from acme.core import run, session as opened


def call(x):
    return run(x)
"""

MANIFEST = """
schema: 1
module: acme_set/core.py
summary: What runs.
pin: acme
reason: a test
entries:
  - symbol: acme.core:run
    deltas:
      - name: more
        expr: |
          x + 1
        with: |
          x + 100
  - symbol: acme.core:Engine.boot
    deltas:
      - name: twice
        expr: |
          x
        with: |
          __upstream__ * 2
        within: |
          return x
  - symbol: acme.core:Engine.__hidden
    name: hidden
    deltas: [{name: two, expr: "1", with: "2"}]
  - symbol: acme.core:session
    kind: delegate
    via: original
    body: |
      with __original__(name.upper()) as found:
          yield found
installs:
  - symbol: acme.core:run
  - symbol: acme.core:Engine.boot
  - symbol: acme.core:Engine.__hidden
    with: hidden
  - symbol: acme.core:session
    mode: scope
"""


@pytest.fixture
def project(sample: Sample) -> Sample:
    (sample.root / "manifests/acme_set/runner.yaml").unlink(missing_ok=True)
    sample.upstream("core", CORE)
    sample.upstream("front", FRONT)
    sample.manifest(MANIFEST, "core")
    return sample


def wrong(report) -> list[str]:
    return [f"{f.code}: {f.message}" for f in report.findings if f.exit_code]


def change(project: Sample, old: str, new: str) -> None:
    project.edit("manifests/acme_set/core.yaml", old, new)


@pytest.fixture
def package(project: Sample):
    """The generated package, imported, with upstream as a distribution of its own."""
    assert wrong(project.regen()) == []
    write_tree(project.source, {"acme-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n"})
    project.load("core")
    package = importlib.import_module("generated_acme")
    yield package
    package.uninstall()


def test_a_package_installs_itself(package):
    core, front = importlib.import_module("acme.core"), importlib.import_module("acme.front")
    report = package.install()
    assert report.ok, str(report)
    assert (core.run(1), front.call(1), core.Engine.boot(2), core.Engine(1).show()) == (101, 101, 4, 2)
    with front.opened("x") as found:
        assert found == "x"
    with package.scope(), front.opened("x") as found:
        assert found == "X"
    package.uninstall()
    assert (core.run(1), front.call(1), core.Engine.boot(2), core.Engine(1).show()) == (2, 2, 2, 1)
    assert {row.state for row in package.verify().rows} == {"off"}


def test_the_runtime_needs_no_engine(project):
    assert wrong(project.regen()) == []
    code = "import sys, generated_acme; print([m for m in sys.modules if m.startswith(('afd_', 'acme'))]); generated_acme.verify()"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=project.root / "generated", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_what_installs_it_is_shipped(project):
    assert wrong(project.regen()) == []
    names = set(shipped(project.project))
    assert {
        "generated_acme/_installs.py",
        "generated_acme/_runtime/installer.py",
        "generated_acme/acme_set/core.py",
    } <= names


def test_what_is_locked_and_checked(project):
    assert wrong(project.regen()) == []
    (run, boot, hidden, session) = json.loads(project.lock.read_text())["modules"]["acme_set/core.py"]["installs"]
    assert run["sites"] == [["acme.front", "run"]]
    assert (run["layers"], run["roots"]) == (0, ["acme"])
    assert boot["symbol"] == "acme.core:Engine.boot"
    assert hidden["symbol"] == "acme.core:Engine._Engine__hidden"
    assert (session["mode"], session["sites"]) == ("scope", [["acme.front", "opened"]])
    assert "contextlib" in session["roots"]
    assert wrong(project.check()) == wrong(project.check(full=True)) == []
    state = project.state()
    assert wrong(project.regen(full=True)) == []
    assert project.state() == state
    for name in ("_installs.py", "_runtime/gate.py", "__init__.py"):
        path = project.root / "generated/generated_acme" / name
        text = path.read_text()
        path.write_text(text + "\n")
        assert [code.partition(":")[0] for code in wrong(project.check())] == ["PK102"], name
        path.unlink()
        assert [code.partition(":")[0] for code in wrong(project.check())] == ["PK103"], name
        assert wrong(project.regen()) == []
        assert path.read_text() == text


def test_without_installs_nothing_of_it_is_there(project):
    assert wrong(project.regen()) == []
    text = (project.root / "manifests/acme_set/core.yaml").read_text()
    project.manifest(text.partition("installs:")[0], "core")
    assert [code.partition(":")[0] for code in wrong(project.check())] == ["PK101"]
    report = project.regen()
    assert wrong(report) == []
    names = {p.name for p in (project.root / "generated/generated_acme").iterdir()}
    assert {"__init__.py", "acme_set"} <= names
    assert not names & {"_installs.py", "_runtime"}
    assert (project.root / "generated/generated_acme/__init__.py").read_bytes() == INIT


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("symbol: acme.core:run\n  - symbol: acme.core:Engine.boot\n  - symbol: acme.core:Engine.__h",
         "symbol: acme.core:ran\n    with: run\n  - symbol: acme.core:Engine.boot\n  - symbol: acme.core:Engine.__h",
         "PK336: acme.core:ran cannot be replaced: acme.core has no ran"),
        ("    mode: scope", "    mode: scope\n  - symbol: acme.core:LIMIT\n    with: run",
         "PK336: acme.core:LIMIT cannot be replaced: acme.core:LIMIT is a constant: who has read it keeps its value"),
        ("    mode: scope", "    mode: scope\n  - symbol: acme.core:Engine.gone\n    with: run", "PK205: "),
        ("    mode: scope", "    mode: scope\n  - symbol: other.core:run\n    with: run",
         "PK336: other.core:run cannot be replaced: no target pin has a module other.core"),
        ("    with: hidden", "    with: hiden", "PK032: `installs`: acme_set/core.py binds no `hiden`"),
        ("    with: hidden", "    with: hidden\n  - symbol: acme.core:Engine", "PK032: `installs`: no entry of acme.core:Engine"),
        ("    mode: scope", "    mode: scope\n  - symbol: acme.core:run", "PK033: `installs` replaces acme.core:run, and that at"),
        ("    mode: scope", "    mode: scope\n  - symbol: acme.core:Engine\n    with: run",
         "PK033: `installs` replaces acme.core:Engine, and acme.core:Engine.boot at"),
        ("    mode: scope", "    mode: scope\n    aliases: []",
         "PK319: acme.front holds acme.core:session as `opened` (acme/front.py:1), and is not rebound"),
        ("    mode: scope", "    mode: scope\n    aliases: [acme.front, acme.gone]",
         "PK320: acme.gone is rebound, but does not hold acme.core:session"),
        ("    mode: scope", "    mode: scope\n    native: [acme.gone]",
         "PK320: acme.gone stays native, but does not hold acme.core:session"),
        ("    mode: scope", "    mode: scope\n    aliases: [acme.front]\n    native: [acme.front]",
         "PK032: acme.front stands in `aliases` and in `native`"),
        ("    with: hidden", "    with: hidden\n    aliases: [acme.front]",
         "PK032: `aliases` of a member: acme.core:Engine.__hidden"),
        ("    mode: scope", "    mode: always", "PK00"),
        ("module: acme_set/core.py", "module: scope/core.py",
         "PK015: scope/core.py has the name of the package's function `scope`"),
        ("module: acme_set/core.py", "module: _runtime/core.py",
         "PK014: `module: _runtime/core.py` takes the name of what installs the package"),
    ],
)  # fmt: skip
def test_what_is_refused(project, old, new, said):
    change(project, old, new)
    for report in (project.regen(), project.check(full=True)):
        (first, *_) = wrong(report)
        assert first.startswith(said), first
        assert any(f.manifest is not None and f.manifest.line for f in report.findings)
    assert not project.lock.exists()


def test_aliases_that_stay_native_are_said(project, package):
    package.uninstall()
    change(project, "    mode: scope", "    mode: process\n    aliases: []\n    native: [acme.front]")
    assert wrong(project.regen()) == []
    project.load("core")
    package = importlib.import_module("generated_acme")
    front = importlib.import_module("acme.front")
    report = package.install()
    assert report.ok
    assert report.rows[-1].native == ("acme.front.opened",)
    with front.opened("x") as found:
        assert found == "x"
    package.uninstall()


def test_a_new_alias_of_upstream_is_noticed(project):
    change(project, "    mode: scope", "    mode: process\n    aliases: [acme.front]")
    assert wrong(project.regen()) == []
    project.upstream("later", "from acme.core import session, run\n")
    found = wrong(project.check(full=True))
    assert found[0].startswith("PK319: acme.later holds acme.core:session as `session`")


def test_what_keeps_the_original_is_a_note(project):
    project.upstream(
        "keeper",
        "from acme import core\n\n\ndef call(f=core.run):\n    return f(1)\n\n\ngo = core.run\nTABLE = {1: core.run}\n",
    )
    report = project.regen()
    assert wrong(report) == []
    assert {f.code for f in report.findings} == {"PK666"}
    assert sorted(f.message for f in report.findings) == [
        "acme.keeper keeps acme.core:run in `TABLE` (value, acme/keeper.py:9), where it cannot be replaced",
        "acme.keeper keeps acme.core:run in `call(f)` (default, acme/keeper.py:4), where it cannot be replaced",
    ]
    (run, *_) = json.loads(project.lock.read_text())["modules"]["acme_set/core.py"]["installs"]
    assert run["sites"] == [["acme.front", "run"], ["acme.keeper", "go"]]


def test_a_name_that_a_module_imports(project):
    change(
        project,
        "    mode: scope",
        "    mode: process\n  - symbol: acme.front:opened\n    with: session\n    mode: scope",
    )
    change(project, "  - symbol: acme.core:session\n    mode: process\n", "")
    assert wrong(project.regen()) == []
    record = json.loads(project.lock.read_text())["modules"]["acme_set/core.py"]["installs"][-1]
    assert (record["symbol"], record["original"]) == ("acme.front:opened", "acme.core:session")
    assert record["aliases"] == []
    write_tree(project.source, {"acme-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n"})
    project.load("core")
    package = importlib.import_module("generated_acme")
    core, front = importlib.import_module("acme.core"), importlib.import_module("acme.front")
    with package.scope(), core.session("x") as one, front.opened("x") as other:
        assert (one, other) == ("x", "X")
    with front.opened("x") as other:
        assert other == "x"


def test_what_retires_is_not_installed(project):
    change(
        project,
        "  - symbol: acme.core:run\n    deltas:",
        "  - symbol: acme.core:run\n    remove_when: [{defines: acme.core:done}]\n    deltas:",
    )
    assert wrong(project.regen()) == []
    older = write_tree(project.root.parent / "older", read_tree(project.source))
    project.release("core", "LIMIT = 3\n", "LIMIT = 3\n\n\ndef done():\n    pass\n")
    sources = {"acme@1.0": older, "acme@1.1": project.source}
    assert wrong(project.regen(overrides={"acme": "1.1"}, sources=sources)) == []
    found = (project.root / "generated-acme-1.1/generated_acme/_installs.py").read_text()
    assert "Engine.boot" in found.replace("', '", ".")
    assert "'run'" not in found
    assert "Gate('acme', '1.1')" in found


def test_a_class_for_the_whole_process_is_a_note(project):
    change(
        project,
        "  - symbol: acme.core:Engine.boot\n  - symbol: acme.core:Engine.__hidden\n    with: hidden\n",
        "  - symbol: acme.core:Engine\n    with: hidden\n",
    )
    report = project.regen()
    assert [f.code for f in report.findings] == ["PK665"]
    assert wrong(report) == []


def told(project, *arguments):
    return CliRunner().invoke(main, ["install", *arguments, "--project", str(project.root)])


def test_the_plan_is_printed_without_upstream(project, monkeypatch):
    assert told(project, "--explain").exit_code == 1
    change(
        project,
        "  - symbol: acme.core:run\n  - symbol: acme.core:Engine.boot\n",
        "  - symbol: acme.core:run\n  - symbol: acme.core:Engine.boot\n    mode: subclass\n",
    )
    assert wrong(project.regen()) == []
    shutil.rmtree(project.source)
    shutil.rmtree(project.root / "generated/generated_acme")
    result = told(project, "--explain")
    assert result.exit_code == 0, result.output
    digest = json.loads(project.lock.read_text())["modules"]["acme_set/core.py"]["installs"][0]["parts"][0][1]
    assert (
        f"""acme.core:run
  by        generated_acme.acme_set.core:run
  mode      process
  only if   acme==1.0
  and if    acme.core:run has the source {digest[:16]}
  also      acme.front:run
  also      whatever else in loaded modules and classes is this very object

acme.core:Engine.boot
  by        generated_acme.acme_set.core:boot
  mode      subclass
"""
        in result.output
    )
    assert result.output.endswith("4 targets, 5 names of upstream's bound\n")
    data = json.loads(told(project, "--explain", "--format", "json").output)
    assert data["format"] == "afd-patchkit/install/1"
    assert [item["symbol"] for item in data["installs"]] == [
        "acme.core:run", "acme.core:Engine.boot", "acme.core:Engine._Engine__hidden", "acme.core:session",
    ]  # fmt: skip
    assert data["installs"][3]["bound"] == ["acme.front:opened"]
    change(project, "    mode: subclass\n", "")
    assert "core.yaml changed" in told(project, "--explain").output
    assert told(project).exit_code == 2
    assert "generated_acme.install()" in told(project).output


def test_the_inventory_says_what_is_bound(project):
    change(project, "    mode: scope", "    mode: scope\n    aliases: [acme.front]")
    result = CliRunner().invoke(main, ["inventory", "-o", "-", "--project", str(project.root)])
    assert "- `acme.core:run` by `generated_acme.acme_set.core:run`, process" in result.output
    assert (
        "- `acme.core:session` by `generated_acme.acme_set.core:session`, scope; also in `acme.front`" in result.output
    )
