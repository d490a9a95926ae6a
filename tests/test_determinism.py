"""The same bytes on every Python the project supports, for a sample and for the real manifests.

Each Python found gets a small environment with the run-time dependencies only, below the user's cache folder. One that is
not there is a skip that says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from tests.engine.sample import Sample
from tools import environments, hygiene_check

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OTHERS = [v for v in environments.VERSIONS if v != f"{sys.version_info[0]}.{sys.version_info[1]}"]

WIDE = '''\
"""What Pythons tokenise, parse and position differently."""

from __future__ import annotations

from .tools import helper

count = 0
WIDTH = 12


class Outer:
    size = 3

    def __init__(self, n=size, *, name="größe"):
        super().__init__()
        self.__n = n
        self.name = name

    @property
    def label(self) -> str:
        return f"{self.__n!r:>{WIDTH}}" + f"{count + 1:{WIDTH}.{count}f} größe {{count}} " rf"\\d{helper(count, 1)}"

    @label.setter
    def label(self, value):
        self.__n = value

    async def walk(self, items, /, *rest, limit: "int | None" = None, **more):
        global count
        from . import tools as near
        async for item in items:
            match item:
                case {"kind": "a", **others} if (found := others):
                    count += len(found)
                case [first, *_] | (first, _):
                    yield first, near, rest
                case _:
                    continue
        async with items as handle, \\
                handle as inner:
            yield [x async for x in inner if x > count], more, limit


def text(value):
    doc = """
    count lines
      of a string"""; tail = value if value else f"""{
        count
    } more"""
    if value: return tail
    try: count_down = [n for n in range(3) if n]
    except (OSError, ValueError): raise
    else: return (doc, tail, count_down,  # a comment
                  0x_ff, 1_000.5e-3j, b"raw", ...)
'''
WIDE_MANIFEST = """
schema: 1
module: acme_set/wide.py
summary: "What Pythons tokenise differently: größe"
pin: acme
entries:
  - class:
      name: Wide
      bases: [Outer]
      members:
        - {symbol: "acme.wide:Outer.__init__", reason: r}
        - symbol: acme.wide:Outer.label
          reason: r
          deltas:
            - name: other width
              expr: |
                WIDTH
              with: |
                __upstream__ + 1
              count: 2
        - symbol: acme.wide:Outer.walk
          reason: r
          deltas:
            - name: count more
              within: |
                match item: ...
              replace: |
                count += len(found)
              with: |
                if found:
                    __upstream__
            - name: quiet
              remove: |
                yield first, near, rest
  - symbol: acme.wide:text
    reason: r
    deltas:
      - name: noted
        insert: |
          seen(f"{value=}")
        before: |
          if value: ...
      - name: other fallback
        clause:
          of: |
            try: ...
          replace: "except (OSError, ValueError)"
        with: |
          except OSError as error:
              raise RuntimeError("größe") from error
"""


def python_of(minor: str) -> Path:
    """The interpreter of the environment of one Python; a skip when that Python is not there."""
    base = environments.find(minor)
    if base is None:
        pytest.skip(f"no Python {minor} on this machine (looked in PATH, pyenv's versions and uv's)")
    needs = tomllib.loads((environments.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    folder = environments.cache_folder() / "envs" / f"runtime-{base.version}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        return environments.make(folder, base, needs)


def generated(python: Path | str, root: Path, project: Path, *arguments: str) -> dict[str, bytes]:
    """All that `regen` writes into a project that has nothing generated yet."""
    folder = project / "generated"
    shutil.rmtree(folder, ignore_errors=True)
    command = [str(python), "-m", "afd_patchkit", "regen", *arguments]
    done = subprocess.run(
        command, cwd=project, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def wide(tmp_path: Path) -> Sample:
    sample = Sample(tmp_path / "project")
    sample.upstream("wide", WIDE)
    path = sample.manifest(WIDE_MANIFEST, "wide")
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace(
            "entries:", "imports:\n  - from acme.wide import Outer\n  - from acme_host import seen\nentries:", 1
        ),
        encoding="utf-8",
    )
    (sample.source / "acme/wide.py").write_bytes(WIDE.replace("\n", "\r\n").encode())
    return sample


def test_the_sample_generates(wide, root):
    files = generated(sys.executable, root, wide.root, "--source", f"acme={wide.source}")
    text = files["generated_acme/acme_set/wide.py"].decode()
    assert {"patchkit.lock", "outlines/acme_set/wide.outline"} <= files.keys()
    assert text.count("WIDTH + 1") == 2
    assert "\r" not in text
    compile(text, "wide.py", "exec")


@pytest.mark.upstream
@pytest.mark.parametrize("minor", OTHERS)
def test_a_sample_has_the_same_bytes(minor, wide, root):
    source = f"acme={wide.source}"
    expected = generated(sys.executable, root, wide.root, "--source", source)
    assert generated(python_of(minor), root, wide.root, "--source", source) == expected


@pytest.mark.upstream
@pytest.mark.parametrize("minor", OTHERS)
def test_the_real_manifests_have_the_same_bytes(minor, root, tmp_path):
    project = tmp_path / "project"
    for path in hygiene_check.tracked(root):
        if path.startswith("manifests/") or path == "pyproject.toml":
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / path, project / path)
    expected = generated(sys.executable, root, project)
    assert len([name for name in expected if name.endswith(".py")]) > 1
    assert generated(python_of(minor), root, project) == expected
