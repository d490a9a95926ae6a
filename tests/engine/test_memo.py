"""Entries that an earlier run generated: found again when all that makes them is the same, and only then."""

from __future__ import annotations

import importlib
import json
import py_compile
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from afd_patchkit.assemble import memo, sources
from afd_patchkit.assemble.module import ModuleMaker
from tests.engine.sample import ENGINE, LOG, TOOLS, Sample, codes
from tests.invented import write_tree
from tests.upstream.packages import make_wheel

WATCHER = """
schema: 1
module: acme_set/watcher.py
summary: Owned code.
pin: acme
entries:
  - kind: owned
    part: parts/watcher.py
    reason: acme has no such thing.
    watch: [acme.tools:helper]
"""


@pytest.fixture
def project(sample: Sample) -> Sample:
    """The sample on a wheel, with a third module of owned code; regenerated once."""
    sample.manifest(WATCHER, "watcher")
    sample.write("manifests/acme_set/parts/watcher.py", "def watch():\n    return 1\n")
    release(sample)
    assert sample.regen(sources=wheel(sample)).exit_code == 0
    return sample


def wheel(sample: Sample) -> dict[str, Path]:
    return {"acme": sample.root.parent / "acme-1.0-py3-none-any.whl"}


def release(sample: Sample, engine: str = ENGINE, tools: str = TOOLS) -> None:
    files = {"acme/__init__.py": "", "acme/engine.py": engine, "acme/tools.py": tools, "acme/log.py": LOG}
    wheel(sample)["acme"].write_bytes(
        make_wheel({path: text.lstrip("\n") for path, text in files.items()}, padding=False)
    )


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The entries that are generated from now on."""
    seen: list[str] = []
    native = ModuleMaker._entry

    def counted(self, entry, group, provided):  # type: ignore[no-untyped-def]
        seen.append(self.manifest.ref(entry, group).partition("::")[2])
        return native(self, entry, group, provided)

    monkeypatch.setattr(ModuleMaker, "_entry", counted)
    return seen


def edit(file: str, old: str, new: str) -> Callable[[Sample], None]:
    return lambda sample: sample.edit(f"manifests/{file}", old, new)


STEP, TOTAL, WATCH = "Runner.step", "total", "parts/watcher.py"
RUNNER = "acme_set/runner.yaml"
CHANGES: dict[str, tuple[Callable[[Sample], None], list[str]]] = {
    "one entry": (edit(RUNNER, "needed beside the runner", "needed"), [TOTAL]),
    "a comment": (edit(RUNNER, "summary:", "# moves every line\nsummary:"), []),
    "the summary": (edit(RUNNER, "Step loop with seams.", "Another."), []),
    "code of a delta": (edit(RUNNER, "{rank: \"self.rank\"}", "{rank: \"self.rank + 0\"}"), [STEP]),
    "name of the class": (edit(RUNNER, "name: Runner", "name: Loop"), ["Loop.step", TOTAL]),
    "what the module imports": (edit(RUNNER, "from acme_host import allowed", "from acme_host import allowed, more"), [STEP, TOTAL]),
    "removal condition": (edit(RUNNER, "pin: acme\n", 'pin: acme\nremove_when: [{defines: "acme.engine:gone"}]\n'), [STEP, TOTAL]),
    "version of the pin": (
        lambda s: s.edit("manifests/pins.yaml", '"1.0"', '"1.0"\n    commit: "' + 40 * "a" + '"'), [STEP, TOTAL, WATCH],
    ),
    "owned text": (lambda s: s.edit("manifests/acme_set/parts/watcher.py", "return 1", "return 2"), [WATCH]),
    "the artifact": (lambda s: release(s, tools=TOOLS + "\n\nMORE = 1\n"), [STEP, TOTAL, WATCH]),
    "fence marker": (lambda s: s.edit("pyproject.toml", "package =", 'marker = "# PATCH"\npackage ='), [STEP, TOTAL, WATCH]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_only_what_has_other_inputs_is_generated(project: Sample, made: list[str], name: str) -> None:
    change, expected = CHANGES[name]
    change(project)
    if name == "the artifact":
        project.lock.unlink()  # it names the artifact, and would refuse another
    report = project.regen(sources=wheel(project))
    assert report.exit_code == 0, report.findings
    assert sorted(set(made)) == sorted(expected)
    found, findings = project.state(), report.findings
    shutil.rmtree(project.root.parent / "cache")
    again = project.regen(sources=wheel(project), full=True)
    assert project.state() == found  # as without anything kept
    assert set(findings) <= set(again.findings)
    assert project.check(sources=wheel(project), full=True).exit_code == 0


def test_findings_are_kept_with_their_place(project: Sample, made: list[str]) -> None:
    project.edit(f"manifests/{RUNNER}", "summary:", "# one more line\nsummary:")
    kept = project.regen(sources=wheel(project))
    assert made == []
    assert codes(kept) == ["PK633"]
    fresh = project.regen(sources=wheel(project), full=True)
    assert made != []
    assert kept.findings == fresh.findings


def test_full_generates_everything(project: Sample, made: list[str]) -> None:
    project.regen(sources=wheel(project), full=True)
    assert made == [STEP, TOTAL, WATCH]


def test_a_tree_may_change_at_any_time(sample: Sample, made: list[str]) -> None:
    sample.regen()
    sample.edit(f"manifests/{RUNNER}", "needed beside the runner", "needed")
    made.clear()
    sample.regen()
    assert made == [STEP, TOTAL]


def test_a_damaged_cache_costs_time_only(project: Sample, made: list[str]) -> None:
    kept = sorted((project.root.parent / "cache").rglob("entries/*"))
    assert len(kept) == 3
    for file in kept:
        file.write_bytes(file.read_bytes().replace(b"upstream", b"downstream"))
    project.edit(f"manifests/{RUNNER}", "summary:", "# moves every line\nsummary:")
    assert project.regen(sources=wheel(project)).exit_code == 0
    assert made == [STEP, TOTAL]


def test_another_tool_or_engine_finds_nothing(
    project: Sample, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memo, "ENGINE", memo.ENGINE + 1)
    project.edit(f"manifests/{RUNNER}", "summary:", "# moves every line\nsummary:")
    project.regen(sources=wheel(project))
    assert made == [STEP, TOTAL]


def test_the_lock_is_the_same_without_an_old_one(project: Sample) -> None:
    """What all files of a pin were searched for belongs in it, whoever has the answer: the lock, the cache, a worker."""
    found = project.lock.read_bytes()
    assert json.loads(found)["modules"]["acme_set/runner.py"]["asks"] == ["acme"]
    assert "set" in json.loads(found)["pins"]["acme"]
    for more in ({}, {"jobs": 2}, {"jobs": 2, "full": True}):
        project.lock.unlink()
        project.regen(sources=wheel(project), **more)
        assert project.lock.read_bytes() == found, more


def test_the_lock_does_not_hold_what_nobody_asks(project: Sample) -> None:
    """The cache knows the answer from another run, or the lock does; this project has no use for it."""
    for path in (project.root / "manifests/acme_set").glob("*.yaml"):
        if path.stem != "watcher":
            path.unlink()
    edit("acme_set/watcher.yaml", "    watch: [acme.tools:helper]\n", "")(project)
    project.regen(sources=wheel(project))
    found = project.lock.read_bytes()
    assert "set" not in json.loads(found)["pins"]["acme"]
    for full in (False, True):
        project.lock.unlink()
        project.regen(sources=wheel(project), full=full)
        assert project.lock.read_bytes() == found, full


def test_another_engine_of_the_same_number_shares_nothing(
    project: Sample, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.lock.unlink()
    project.regen(sources=wheel(project))
    assert made == []
    monkeypatch.setattr(memo, "engine_digest", lambda: "another")
    project.lock.unlink()
    project.regen(sources=wheel(project))
    assert made == [STEP, TOTAL, WATCH]


def test_an_engine_that_cannot_be_read_keeps_nothing(
    project: Sample, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memo, "engine_digest", lambda: None)
    for _ in range(2):
        project.lock.unlink()
        project.regen(sources=wheel(project))
    assert made == [STEP, TOTAL, WATCH] * 2


@pytest.mark.parametrize("how", ["folder", "compiled", "archive"])
def test_the_digest_of_an_engine_is_that_of_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Wherever it is installed: as files, as compiled files alone, in an archive."""
    digests = {}
    for name, code in {"one": "x = 1\n", "same": "x = 1\n", "other": "x = 2\n"}.items():
        folder = tmp_path / name / "acme_engine"
        write_tree(folder, {"__init__.py": "", "made/part.py": code})
        place = folder.parent
        if how == "compiled":
            for path in folder.rglob("*.py"):
                py_compile.compile(
                    str(path),
                    str(path.with_suffix(".pyc")),
                    dfile=path.name,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )
                path.unlink()
        elif how == "archive":
            place = tmp_path / f"{name}.zip"
            with zipfile.ZipFile(place, "w") as archive:
                for path in sorted(folder.rglob("*.py")):
                    info = zipfile.ZipInfo(path.relative_to(folder.parent).as_posix())
                    archive.writestr(info, path.read_bytes())
        monkeypatch.syspath_prepend(str(place))
        monkeypatch.delitem(sys.modules, "acme_engine", raising=False)
        package = importlib.import_module("acme_engine")
        assert str(place) in str(package.__file__)
        digests[name] = sources.digest_of(package)
        monkeypatch.delitem(sys.modules, "acme_engine")
    assert digests["one"] == digests["same"] != digests["other"]
    assert digests["one"]
