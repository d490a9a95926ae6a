"""The command on an invented project: generated, mutated and tested as the real one, without vLLM."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.engine.sample import Sample
from tools.environments import ROOT
from tools.mutation import run as mutation_run
from tools.mutation.deltas import Mutation
from tools.mutation.judge import Judge
from tools.mutation.run import main
from tools.mutation.scratch import Result, Results, Scratch
from tools.mutation.tests import Sight

MANIFEST = """
schema: 1
module: acme_set/total.py
summary: Sums.
pin: acme
entries:
  - symbol: acme.engine:total
    reason: ours is stricter.
    deltas:
      - name: tested
        at: start
        insert: |
          values = [*values, 1]
      - name: not tested
        before: |
          return out
        insert: |
          assert out < 1000
      - name: an end
        parameter:
          add: "end: int = 50"
      - name: stops at the end
        before: |
          return out
        insert: |
          out = min(out, end)
      - name: does nothing
        replace: |
          out = 0
        with: |
          __upstream__
"""
TEST = """
from afd_backports.acme_set.total import total


def test_total():
    assert total([1, 2]) == 4


def test_end():
    while total([60]) != 50:
        pass
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Sample:
    sample = Sample(tmp_path / "project")
    sample.write(
        "pyproject.toml",
        "[tool.afd-patchkit]\n[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\npythonpath = ['.']\n",
    )
    (sample.root / "manifests/acme_set/runner.yaml").unlink()
    sample.manifest(MANIFEST, "total")
    sample.write("tests/dbo/conftest.py", "")
    sample.write("tests/dbo/test_total.py", TEST)
    sample.write(
        "tests/sim/ranks.py",
        "VLLM = None\nclass Zygote:\n    @staticmethod\n    def of(environment): pass\ndef stop_all(): pass\n",
    )
    sample.write("tests/sim/environments.py", "def usual(): return []\n")
    for name in ("__init__", "mutation/__init__", "mutation/warm", "mutation/hits", "mutation/phases"):
        sample.write(f"tools/{name}.py", (ROOT / f"tools/{name}.py").read_text(encoding="utf-8"))
    monkeypatch.setattr(mutation_run, "ROOT", sample.root)
    monkeypatch.setattr(mutation_run, "PAGE", sample.root / "mutations.md")
    monkeypatch.setattr(mutation_run, "REASONS", sample.root / "reasons.tsv")
    monkeypatch.setenv("AFD_PATCHKIT_DONOR_TREE", "none")
    run_tests = Scratch._run

    def patient(self, arguments, changed, limit, **options):
        """What never ends need not be waited for; what ends has all the time of a busy machine."""
        text = changed.get("afd_backports/acme_set/total.py", "min(out, end)")
        return run_tests(self, arguments, changed, limit if "min(out, end)" in text else 0.5, **options)

    monkeypatch.setattr(Scratch, "_run", patient)
    return sample


def run(project: Sample, *arguments: str) -> int:
    return main(
        [
            "acme_set",
            "--python",
            sys.executable,
            "--source",
            f"acme={project.source}",
            "--offline",
            "--limit",
            "600",
            *arguments,
        ]
    )


def test_each_delta_is_dropped_and_the_page_says_who_noticed(project: Sample, capsys):
    before = {p: p.read_bytes() for p in project.root.rglob("*.*") if p.is_file()}
    assert run(project, "--write") == 1
    said = capsys.readouterr().out
    assert "5 mutations: 1 killed, 1 refused, 2 survived, 1 timeout" in said
    assert "survived  manifests/acme_set/total.yaml:13:9  total.py::total/not tested" in said
    text = (project.root / "mutations.md").read_text(encoding="utf-8")
    assert "| `total` | tested | `tests/dbo/test_total.py::test_total` |" in text
    assert "| `total` | not tested | **survived**: 1 test files pass |" in text
    assert "| `total` | an end | `regen`: PK232 |" in text
    assert "| `total` | stops at the end | **timeout**: not done within 600 s |" in text
    assert "| `total` | does nothing | **survived**: the generated code is the same without it |" in text
    after = {p: p.read_bytes() for p in project.root.rglob("*.*") if p.is_file()}
    assert {p for p in after if after[p] != before.get(p)} == {project.root / "mutations.md"}


PART = """
SIZE = 3


def fits(count: int) -> bool:
    return count <= SIZE


def doubled(values: list[int]) -> list[int]:
    kept = values.copy()
    return [2 * value for value in kept]


def unseen(a: bool, b: bool) -> bool:
    return a and b
"""
CODE_TEST = """
import pytest
from afd_backports.acme_set.total import doubled, fits, total


@pytest.fixture(scope="module")
def answer():
    return [fits(3), fits(4)]


def test_fits(answer):
    assert answer == [True, False]


def test_doubled():
    assert doubled([1, 2]) == [2, 4]


def test_total():
    assert total([1, 2]) == 4
"""


def test_code_of_its_own_is_changed_and_the_tests_that_reach_it_are_run(project: Sample, capsys):
    project.edit(
        "manifests/acme_set/total.yaml",
        "entries:\n",
        "entries:\n  - kind: owned\n    part: parts/sizes.py\n    reason: ours.\n",
    )
    project.write("manifests/acme_set/parts/sizes.py", PART)
    project.write("tests/dbo/test_total.py", CODE_TEST)
    assert run(project, "--code", "--write") == 1
    said = capsys.readouterr().out
    copied = "total.py::doubled: kept = values.copy() => kept = values"
    assert "8 mutations: 5 killed, 3 survived" in said, said
    assert "survived  afd_backports/acme_set/total.py:" in said
    assert said.count("no test reaches it") == 2
    assert "test_fits\n" in said
    text = (project.root / "mutations.md").read_text(encoding="utf-8")
    assert "| total | 8 | 5 | 3 |" in text
    assert "| `doubled` | `kept = values.copy() => kept = values` | **survived**: 1 tests pass |" in text

    assert run(project, "--code", "--tests", "tests/dbo/test_gone.py") == 3
    assert "no test files: tests/dbo/test_gone.py" in capsys.readouterr().err

    unseen = [f"total.py::unseen: return a and b => return {name}" for name in "ab"]
    reasons = [f"{name}\tit is so" for name in (copied, *unseen)]
    project.write("reasons.tsv", "\n".join(reasons) + "\n")
    assert run(project, "--code") == 0
    project.write("reasons.tsv", "\n".join([*reasons, "total.py::gone: a => b\tit was so"]) + "\n")
    assert run(project, "--code") == 1
    assert "or it is gone: total.py::gone: a => b" in capsys.readouterr().out
    assert run(project, "--code", "--only", "doubled") == 0
    assert run(project, "--code", "--sample", "2", "--list") == 0
    assert len(capsys.readouterr().out.splitlines()[-2:]) == 2


def test_results_count_again_while_nothing_changes(project: Sample, capsys, monkeypatch):
    assert run(project, "--only", "total/tested") == 0
    capsys.readouterr()
    monkeypatch.setattr(mutation_run.Scratch, "run", lambda *_: pytest.fail("it is known already"))
    assert run(project, "--only", "total/tested") == 0
    assert "1 mutations: 1 killed" in capsys.readouterr().out


def test_a_test_that_fails_anyway_notices_nothing(project: Sample, capsys):
    project.edit("tests/dbo/test_total.py", "== 4", "== 5")
    assert run(project, "--only", "not tested") == 3
    said = capsys.readouterr()
    assert "0 of 1 mutations are noticed by the other tests" in said.out
    assert "these fail without a mutation:\n  tests/dbo/test_total.py: tests/dbo/test_total.py::test_total" in said.err


def test_entries_and_lists(project: Sample, capsys):
    assert run(project, "--list", "--module", "total") == 0
    assert capsys.readouterr().out.splitlines()[0] == "total.py::total/tested"
    assert run(project, "--entries", "--list") == 0
    assert capsys.readouterr().out == "total.py::total\n"


@pytest.mark.parametrize("more", [["--entries"], ["--list"], ["--code", "--sample", "2"], ["--code", "--only", "x"]])
def test_a_page_is_not_written_of_parts_of_a_module(more, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--write", *more])
    assert "whole modules" in capsys.readouterr().err


def test_what_the_page_says_of_other_deltas_stays(project: Sample, capsys):
    arguments = ["--write", "--only", "total/tested", "--only", "an end"]
    assert run(project, *arguments) == 3
    said = capsys.readouterr().err
    assert "not on the page, or not noticed there" in said
    assert "total/not tested\n  total.py::total/stops at the end\n  total.py::total/does nothing\n" in said
    rows = "| `total` | not tested | `tests/dbo/test_other.py::test` |\n| `total` | stops at the end | `regen`: PK203 PK232 |\n"
    project.write("mutations.md", f"## total\n\n{rows}| `total` | does nothing | **survived** |\n")
    assert run(project, *arguments) == 3
    assert capsys.readouterr().err.endswith("asked for:\n  total.py::total/does nothing\n")
    project.write(
        "mutations.md", f"## total\n\n{rows}| `total` | does nothing | `tests/dbo/test_other.py::test_it` |\n"
    )
    assert run(project, *arguments) == 0
    text = (project.root / "mutations.md").read_text(encoding="utf-8")
    assert "| total | 5 | 3 | 2 | 0 |" in text
    assert all(row in text for row in rows.splitlines())
    assert "| `total` | tested | `tests/dbo/test_total.py::test_total` |" in text


def test_a_set_that_is_not_there(project: Sample, capsys):
    assert main(["other_set", "--source", f"acme={project.source}", "--offline"]) == 3
    assert "no set other_set" in capsys.readouterr().err


def test_manifests_that_are_wrong_anyway(project: Sample, capsys):
    project.edit(
        "manifests/acme_set/total.yaml",
        "return out\n        insert: |\n          assert",
        "return nothing\n        insert: |\n          assert",
    )
    assert run(project) == 3
    assert "the manifests as they are: PK" in capsys.readouterr().err


def test_closing_ends_the_test_that_runs(project: Sample, tmp_path: Path):
    started = tmp_path / "started"
    project.write("tests/dbo/test_total.py", f"""
        import os, pathlib


        def test_endless():
            pathlib.Path({str(started)!r} + ".part").write_text(str(os.getpid()))
            os.rename({str(started)!r} + ".part", {str(started)!r})
            while True:
                pass
        """)  # fmt: skip
    (tmp_path / "scratch").mkdir()
    scratch = Scratch(project.root, tmp_path / "scratch", {}, Path(sys.executable), {})
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(scratch.run, ["tests/dbo/test_total.py"], {}, 600)
        while not started.exists():
            assert not running.done(), running.result()
            time.sleep(0.01)
        scratch.close()
        with pytest.raises(RuntimeError, match="has ended"):
            running.result(600)
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


class Stub:
    """In the place of a scratch copy: what fails, by test file or test."""

    def __init__(self, failing: dict[str, str]) -> None:
        self.failing, self.ran = failing, []

    def run(self, tests, changed, limit):
        self.ran += tests
        failed = [(test, said) for test, said in self.failing.items() if changed and test.startswith(tests[0])]
        return Result(failed[0]) if failed else Result()


def test_the_test_that_noticed_before_runs_first_and_alone(tmp_path: Path):
    for name in ("a", "b"):
        path = tmp_path / f"tests/dbo/test_{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from afd_backports.set import m\n")
    base = {"afd_backports/set/m.py": "x = 1\n"}
    mutation = Mutation("set/m.py", "set/m.py::f", "d", None)
    known = {"m.py::f/d": "tests/dbo/test_b.py::test_y"}

    def judged(tests: Stub, folder: str):
        judge = Judge(Sight(tmp_path, base, ["tests/dbo"]), Results(tmp_path / folder), known, (), 5)
        return judge.verdict(mutation, "afd_backports/set/m.py", {"afd_backports/set/m.py": "x = 2\n"}, tests)

    tests = Stub({"tests/dbo/test_b.py::test_y": "no"})
    assert judged(tests, "one").by == "tests/dbo/test_b.py::test_y"
    assert tests.ran == ["tests/dbo/test_b.py::test_y", "tests/dbo/test_b.py"]  # and that file without the mutation
    tests = Stub({"tests/dbo/test_a.py::test_x": "no"})
    assert judged(tests, "two").by == "tests/dbo/test_a.py::test_x"
    assert tests.ran == [
        "tests/dbo/test_b.py::test_y",
        "tests/dbo/test_b.py",
        "tests/dbo/test_a.py",
        "tests/dbo/test_a.py",
    ]
    tests = Stub({})
    assert judged(tests, "three").outcome == "survived"
