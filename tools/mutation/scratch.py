"""Copies of the project in which manifests are changed, modules generated and tests run; the working tree is only read."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afd_patchkit.api import RunOptions, load_project, regen
from afd_patchkit.files import replace_file
from afd_patchkit.upstream.options import SourceOptions
from tools.mutation.hits import VARIABLE, prepare
from tools.mutation.lines import Record

LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "dist", "build", "*.egg-info")


def copied(root: Path, folder: Path, names: Sequence[str] = ()) -> None:
    """Copy the project, or the parts of it that are named."""
    for path in [root / name for name in names] if names else sorted(root.iterdir()):
        if path.is_dir() and not LEFT_OUT(str(root), [path.name]):
            shutil.copytree(path, folder / path.name, ignore=LEFT_OUT)
        elif path.is_file():
            shutil.copy2(path, folder / path.name)


# ---- generated code -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Generated:
    """What `regen` makes of one state of the manifests.

    Attributes:
        modules: texts by path below the generated root.
        refused: codes of its errors and warnings: with either it fails.
        said: the first of them.
    """

    modules: Mapping[str, str]
    refused: tuple[str, ...] = ()
    said: str = ""


class Generator:
    """A copy of what decides the generated code, in which manifests are changed.

    Attributes:
        project: the copy.
    """

    def __init__(self, root: Path, folder: Path, options: SourceOptions) -> None:
        own = load_project(root)
        copied(root, folder, [own.shown(own.settings), own.shown(own.manifests)])
        self.project, self.options = load_project(folder), options

    def manifests(self, name: str) -> Iterator[tuple[str, bytes]]:
        """The manifests of a set: paths below the root, and contents."""
        for path in self.project.manifest_files():
            shown = self.project.shown(path)
            if f"/{name}/" in shown:
                yield shown, path.read_bytes()

    def generate(self, changed: Mapping[str, bytes]) -> Generated:
        """Generate with other contents of some manifests."""
        root = self.project.root
        kept = {name: (root / name).read_bytes() for name in changed}
        try:
            for name, data in changed.items():
                (root / name).write_bytes(data)
            report = regen(self.project, RunOptions(sources=self.options, jobs=1))
        finally:
            for name, data in kept.items():
                (root / name).write_bytes(data)
        told = [f for f in report.findings if f.exit_code]
        if told:
            return Generated({}, tuple(sorted({f.code for f in told})), f"{told[0].code}: {told[0].message}")
        folder = self.project.generated
        paths = sorted((folder / self.project.package).rglob("*.py"))
        return Generated({path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths})


# ---- tests --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """What running a test file gave.

    Attributes:
        failed: the first test that failed, and what it said; empty when all passed.
        timeout: whether it was ended because it took too long.
    """

    failed: tuple[str, str] | tuple[()] = ()
    timeout: bool = False


class Results:
    """Results by the digest of all that decides them; kept between runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, digest: str) -> Result | None:
        """A result, when there is one."""
        try:
            found = json.loads((self.folder / f"{digest}.json").read_text(encoding="utf-8"))
            return Result(tuple(found["failed"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, digest: str, result: Result) -> None:
        """Keep a result; not that of a machine that was too slow."""
        if result.timeout:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{digest}.json"
        replace_file(path, json.dumps({"failed": result.failed}).encode(), durable=False)


class Scratch:
    """A copy of the project with a process that runs tests there; see `tools.mutation.warm`.

    Attributes:
        folder: the copy.
    """

    def __init__(
        self, root: Path, folder: Path, base: Mapping[str, str], python: Path, variables: Mapping[str, str]
    ) -> None:
        self.folder, self.base = folder, base
        copied(root, folder)
        project = load_project(folder)
        self.generated, self.package = project.generated, project.package_folder
        shutil.rmtree(self.package, ignore_errors=True)
        self._write(base)
        self._hits = folder.with_suffix(".hits")
        self._hits.mkdir()
        paths = os.pathsep.join([str(self.generated), str(folder)])
        self._log = (folder.with_suffix(".log")).open("w")
        self._process = subprocess.Popen(
            [str(python), "-m", "tools.mutation.warm"], cwd=folder, text=True,
            env={**os.environ, **variables, "PYTHONPATH": paths, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", VARIABLE: str(self._hits)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip
        self._ready = self._busy = False

    def run(self, tests: Sequence[str], changed: Mapping[str, str], limit: float) -> Result:
        """Run tests until one fails, with some generated modules changed.

        Raises:
            RuntimeError: the process that runs them has ended.
        """
        answer = self._run(["-x", *tests], changed, limit)
        if answer["code"] is None:
            return Result(timeout=True)
        if answer["failed"]:
            name, said = answer["failed"][0]
            return Result((name, said))
        if answer["code"] != 0:
            return Result((tests[-1], f"pytest ended with {answer['code']}"))
        return Result()

    def record(self, file: str, modules: Mapping[str, str], limit: float) -> Record | None:
        """Run a test file with instrumented modules; None when it does not end.

        Raises:
            RuntimeError: the process that runs them has ended.
        """
        prepare(self._hits)
        answer = self._run([file], modules, limit, record=True)
        return None if answer["code"] is None else Record.read(self._hits)

    def _run(
        self, arguments: Sequence[str], changed: Mapping[str, str], limit: float, *, record: bool = False
    ) -> dict[str, Any]:
        if not self._ready:
            self._answer()
            self._ready = True
        try:
            self._write(changed)
            self._busy = True  # until there is an answer: in the middle of a test it does not look at its input
            self._send(
                {
                    "arguments": ["-q", "--no-header", "-p", "no:cacheprovider", *arguments],
                    "limit": limit,
                    "record": record,
                }
            )
            answer = self._answer()
            self._busy = False
            return answer
        finally:
            self._write({name: self.base[name] for name in changed})

    def close(self) -> None:
        """End the process; it ends those that it has started."""
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        patience = 0 if self._busy else 10
        for stop in (self._process.terminate, self._process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
            if self._process.poll() is None:
                stop()
            patience = 10
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()

    def _write(self, modules: Mapping[str, str]) -> None:
        """Write modules, and forget what Python has compiled of those that were there: it looks at whole seconds only."""
        for name, text in modules.items():
            path = self.generated / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for cache in self.package.rglob("__pycache__"):
            shutil.rmtree(cache, ignore_errors=True)

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin
        print(json.dumps(request), file=self._process.stdin, flush=True)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            said = Path(self._log.name).read_text(encoding="utf-8", errors="replace")[-2000:]
            raise RuntimeError(f"the process that runs the tests has ended:\n{said}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as name:
        yield Path(name)
