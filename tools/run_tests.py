"""All checks of the project, each as one step; every step runs, and the summary says which failed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools import environments
from tools.environments import ROOT

VLLM = environments.pinned_version("vllm")
SAMPLE = 2000
CHANGES = 80
HOSTILE = 60
VLLM_TESTS = ("tests/dbo", "tests/sim")
REAL_TESTS = (*VLLM_TESTS, "tests/runtime/test_installed_vllm.py")
DONOR = "vllm-donor"
DONOR_VARIABLE = "AFD_PATCHKIT_DONOR_TREE"
RETIRES = "0.30.0"
RETIRED_VARIABLE = "AFD_PATCHKIT_RETIRED"
"""Tells the tests where the Python files of the donor lie."""
_CLOSING = re.compile(r"(?:\x1b\[[\d;]*m)*=*\s*(?:\x1b\[[\d;]*m)*(?:\d+ \w+.* in [\d.]+s|no tests ran)")


@dataclass
class Session:
    """A run of `tools/test`: its environment, and the steps that were run so far."""

    python: Path
    steps: list[tuple[str, bool, float, str]] = field(default_factory=list)
    shared: dict[str, str] = field(default_factory=dict)
    """Environment variables of all further steps."""

    def step(self, name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> bool:
        """Run one command, its output passed on as it comes; pytest's closing line is kept for the summary."""
        print(f"\n---- {name}: {' '.join(map(str, command))}", flush=True)
        start = time.monotonic()
        closing = ""
        color = {"FORCE_COLOR": "1"} if sys.stdout.isatty() and "NO_COLOR" not in os.environ else {}
        full = {**os.environ, "PYTHONUNBUFFERED": "1", **color, **self.shared, **(env or {})}
        with subprocess.Popen(
            list(map(str, command)),
            cwd=ROOT,
            env=full,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        ) as process:
            assert process.stdout
            for raw in process.stdout:
                sys.stdout.buffer.write(raw)
                sys.stdout.flush()
                line = raw.decode("utf-8", "replace").strip()
                closing = line.strip("= ") if _CLOSING.match(line) else closing
        ok = process.returncode == 0
        if not ok:
            print(f"---- {name} failed ({process.returncode})", flush=True)
        self.steps.append((name, ok, time.monotonic() - start, closing))
        return ok

    def skip(self, name: str, why: str) -> None:
        """A step that cannot run because one before it failed: that is a failure."""
        self.steps.append((name, False, 0.0, why))

    def summary(self) -> int:
        """Print all steps; 0 when all passed."""
        print("\n---- summary")
        for name, ok, seconds, closing in self.steps:
            print(f"{'ok    ' if ok else 'FAILED'}  {name:<12} {seconds:6.1f} s  {closing}")
        return 0 if self.steps and all(ok for _, ok, _, _ in self.steps) else 1


def lint(session: Session) -> None:
    """Style, types, and no upstream text in tracked files."""
    python = session.python
    session.step("ruff", [python, "-m", "ruff", "check", "."])
    session.step("format", [python, "-m", "ruff", "format", "--check", "."])
    session.step("mypy", [python, "-m", "mypy"])
    session.step("hygiene", [python, "tools/hygiene"])


def browser() -> None:
    """Chromium, where this machine lets us install it; without it the tests of the HTML report say why they are skipped."""
    if shutil.which("chromium") and shutil.which("chromedriver"):
        return
    apt = shutil.which("apt-get")
    if apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        print("\n---- no chromium with chromedriver here, and no root with apt-get to install them", flush=True)
        return
    print("\n---- installing chromium", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    packages = ["chromium", "chromium-driver", "fonts-dejavu-core"]
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        done = subprocess.run(
            [apt, "-qq", *command], env=env, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            print(f"---- apt-get {command[0]} ended with {done.returncode}: no browser", flush=True)
            return


def unit(session: Session, arguments: Sequence[str], *, fast: bool) -> None:
    """The tests that need no vLLM; with `fast` only those that need no package index either, and no soak."""
    marks = "not vllm and not upstream and not slow" if fast else "not vllm"
    workers = ["-n", str(min(os.cpu_count() or 1, 4))]
    ignored = [f"--ignore={folder}" for folder in REAL_TESTS]
    session.step("pytest", [session.python, "-m", "pytest", "-q", *workers, "-m", marks, *ignored, *arguments])


def last_line(session: Session, *command: str) -> str:
    """The answer of one of our tools, which stands in the last line of its output; empty when it failed."""
    found = subprocess.run([session.python, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    lines = [line.strip() for line in found.stdout.splitlines() if line.strip()]
    return lines[-1] if lines and found.returncode == 0 else ""


def retired(session: Session, folder: Path) -> str:
    """The package that is generated into `folder` where the backport retires."""
    command = [str(session.python), "-m", "afd_patchkit", "regen", "-q", "--vllm", RETIRES, "--into", str(folder)]
    subprocess.run(command, cwd=ROOT, check=False)  # a test reads what there is
    return str(folder / "afd_backports")


def real(session: Session) -> None:
    """The main command on the real vLLM, then its generated modules on the real vLLM."""
    tool: list[str | Path] = [session.python, "-m", "afd_patchkit"]
    # before anything is written: the committed lock and outlines are what the manifests give
    session.step("drift", [*tool, "check", "--full"])
    if not session.step("regen", [*tool, "regen", "--vllm", VLLM]):
        session.skip("vllm tests", "nothing generated")
        return
    session.step("check", [*tool, "check"])
    print("\n---- environment with the real vLLM", flush=True)
    python = last_line(session, "tools/vllm_env")
    tree = last_line(session, "tools/pin_tree", DONOR)
    if not python or not tree:
        session.skip("vllm tests", f"{'tools/pin_tree' if python else 'tools/vllm_env'} failed")
        return
    parts = sorted(ROOT.glob("manifests/*/parts"))
    types: list[str | Path] = [
        "--config-file",
        "tools/mypy-parts.ini",
        "--python-executable",
        python,
        "--cache-dir",
        ".mypy_cache/parts",
    ]
    session.step("mypy parts", [session.python, "-m", "mypy", *types, *parts])
    paths = os.pathsep.join([str(ROOT / "generated"), str(ROOT)])
    with tempfile.TemporaryDirectory(prefix="afd-retired-") as folder:
        variables = {"PYTHONPATH": paths, DONOR_VARIABLE: tree, RETIRED_VARIABLE: retired(session, Path(folder))}
        session.step("vllm tests", [python, "-m", "pytest", "-q", *REAL_TESTS], variables)
    session.shared["AFD_PATCHKIT_VLLM_PYTHON"] = python


HELP = """\
usage: tools/test [--fast | --lint] [PYTEST-ARGUMENT...]

Without arguments: lint, types, hygiene, all tests, `regen` on the real vLLM, tests of its modules there, samples of the sweep and of changes of meaning.

  --fast   only the tests that need neither the package index nor vLLM, and no soak (`slow`)
  --lint   only ruff, mypy and hygiene
  others   go to pytest, and only pytest runs: tools/test tests/delta -k wrap
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `tools/test`."""
    rest = list(sys.argv[1:] if arguments is None else arguments)
    chosen = set()
    while rest and rest[0] in {"--fast", "--lint", "-h", "--help"}:
        chosen.add(rest.pop(0))
    if chosen & {"-h", "--help"}:
        print(HELP, end="")
        return 0
    if "--lint" in chosen and ("--fast" in chosen or rest):
        print("tools/test: --lint stands alone\n" + HELP, file=sys.stderr, end="")
        return 2
    session = Session(environments.project())
    if "--lint" in chosen:
        lint(session)
    elif rest or "--fast" in chosen:
        unit(session, rest, fast="--fast" in chosen)
    else:
        lint(session)
        real(session)
        browser()
        unit(session, [], fast=False)
        session.step("sweep", [session.python, "tools/sweep", f"vllm=={VLLM}", "--sample", str(SAMPLE), "--seed", "26"])
        session.step("meaning", [session.python, "tools/meaning", "--count", str(CHANGES)])
        session.step("fuzz", [session.python, "tools/fuzz", "--count", str(HOSTILE)])
    return session.summary()
