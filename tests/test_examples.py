"""The projects in `examples/` that a README walks through: its commands, run in their order, print what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

EXAMPLES = ("courier-backports",)
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXIT = re.compile(r"\s+# exit code (\d+)$")
_TIME = re.compile(r" in \d[\d.]* m?s\b")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the commands are for a POSIX shell")


@dataclass(frozen=True)
class Step:
    """One command of a README: its exit code and the lines that it prints, `...` for any."""

    command: str
    code: int
    printed: tuple[str, ...]


def steps(readme: str) -> Iterator[Step]:
    """The commands of all console blocks."""
    for block in _BLOCK.findall(readme):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *printed = part.splitlines()
            code = _EXIT.search(command)
            yield Step(_EXIT.sub("", command), int(code[1]) if code else 0, tuple(printed))


def shows(printed: tuple[str, ...], said: str) -> bool:
    """Whether output is as shown; how long something took is not compared."""
    return _same(
        [_TIME.sub("", line).rstrip() for line in printed], [_TIME.sub("", line).rstrip() for line in said.splitlines()]
    )


def _same(shown: list[str], heard: list[str]) -> bool:
    if not shown:
        return not heard
    if shown[0] == "...":
        return any(_same(shown[1:], heard[at:]) for at in range(len(heard) + 1))
    return bool(heard) and shown[0] == heard[0] and _same(shown[1:], heard[1:])


@pytest.fixture
def environment(root: Path, tmp_path: Path) -> dict[str, str]:
    """A shell's, in which `afd-patchkit` and `python` are this checkout's."""
    tool = tmp_path / "bin/afd-patchkit"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nPYTHONPATH="{root}" exec "{sys.executable}" -m afd_patchkit "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    tool.with_name("python").symlink_to(sys.executable)
    keep = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "FORCE_COLOR", "PYTEST_CURRENT_TEST"}}
    return {
        **keep,
        "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_readme_of_an_example_is_what_happens(root, tmp_path, environment, name):
    project = tmp_path / name
    shutil.copytree(
        root / "examples" / name, project, ignore=shutil.ignore_patterns("generated", "report", "__pycache__")
    )
    walked = list(steps((project / "README.md").read_text(encoding="utf-8")))
    assert len(walked) > 3
    for step in walked:
        done = subprocess.run(
            ["sh", "-c", step.command], cwd=project, env=environment, capture_output=True, text=True, check=False
        )
        said = f"$ {step.command}\n{done.stdout}{done.stderr}"
        assert done.returncode == step.code, said
        assert shows(step.printed, done.stdout), "\n".join([said, "---- the README shows", *step.printed])


@pytest.mark.parametrize(
    ("printed", "said", "same"),
    [
        (("a", "b"), "a\nb\n", True),
        (("a",), "a\nb\n", False),
        (("a", "..."), "a\nb\nc\n", True),
        (("a", "..."), "a\n", True),
        (("...", "c"), "a\nc\n", True),
        (("...", "c"), "c\n", True),
        (("...", "c"), "a\nc\nd\n", False),
        (("a", "...", "c"), "a\nc\n", True),
        (("a", "...", "c"), "a\nb\nb\nc\n", True),
        (("a", "...", "c"), "a\nbc\n", False),
        (("done in 0.3 s",), "done in 12 ms\n", True),
        ((), "", True),
        ((), "a\n", False),
    ],
)
def test_output_is_compared(printed, said, same):
    assert shows(printed, said) is same
