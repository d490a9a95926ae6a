"""Python interpreters and virtual environments for the project's own checks; needs nothing but Python 3.10."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
"""The Pythons the project supports."""

_ASK = "import sys, json; print(json.dumps([sys.implementation.name, list(sys.version_info[:3]), sys.executable]))"


@dataclass(frozen=True)
class Interpreter:
    """A Python that runs: `3.12`, `3.12.1`, and where it is."""

    minor: str
    version: str
    path: str


def ask(command: Sequence[str]) -> Interpreter | None:
    """The CPython that a command starts; None when it starts none (a shim without a version, say)."""
    try:
        run = subprocess.run([*command, "-c", _ASK], capture_output=True, text=True, timeout=60, check=True)
        name, version, path = json.loads(run.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if name != "cpython":
        return None
    return Interpreter(f"{version[0]}.{version[1]}", ".".join(map(str, version)), path)


def candidates(minor: str) -> Iterator[Sequence[str]]:
    """Commands that may start Python `minor`: PATH, the `py` launcher, pyenv's versions, uv's."""
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == minor:
        yield [sys.executable]
    for name in (f"python{minor}", "python3", "python"):
        if path := shutil.which(name):
            yield [path]
    if os.name == "nt" and shutil.which("py"):
        yield ["py", f"-{minor}"]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    newest = sorted(pyenv.glob(f"{minor}.*"), key=lambda p: [int(n) if n.isdigit() else 0 for n in p.name.split(".")])
    for folder in reversed(newest):
        yield [str(folder / ("python.exe" if os.name == "nt" else "bin/python"))]
    if uv := shutil.which("uv"):
        run = subprocess.run([uv, "python", "find", "--no-project", minor], capture_output=True, text=True, check=False)
        if run.returncode == 0 and run.stdout.strip():
            yield [run.stdout.strip()]


def find(minor: str) -> Interpreter | None:
    """A Python of version `minor`; None when there is none."""
    return next((found for c in candidates(minor) if (found := ask(c)) and found.minor == minor), None)


def supported() -> Interpreter:
    """The running Python if the project supports it, else the best that is there.

    Raises:
        SystemExit: there is none.
    """
    own = ask([sys.executable])
    if own and own.minor in VERSIONS:
        return own
    for minor in ("3.12", "3.11", "3.13", "3.10"):
        if found := find(minor):
            return found
    raise SystemExit(f"no Python of {', '.join(VERSIONS)} here (this one is {sys.version.split()[0]}); install one")


def pinned_version(name: str) -> str:
    """The version of a pin, read before there is a package that reads YAML.

    Raises:
        SystemExit: `manifests/pins.yaml` has no such pin.
    """
    text = (ROOT / "manifests/pins.yaml").read_text(encoding="utf-8")
    found = re.search(rf'^  {re.escape(name)}:\n(?:    .*\n)*?    version: "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"manifests/pins.yaml has no version of a pin {name}")
    return found[1]


def cache_folder() -> Path:
    """The user's cache folder of this project; as `platformdirs` has it."""
    if os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "afd-patchkit" / "Cache"
    elif sys.platform == "darwin":
        base = Path.home() / "Library/Caches/afd-patchkit"
    else:
        home = os.environ.get("XDG_CACHE_HOME", "")
        base = (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "afd-patchkit"
    return base


def python_of(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make(folder: Path, base: Interpreter, requirements: Sequence[str], *, depends: Sequence[str] = ()) -> Path:
    """The interpreter of an environment with these requirements (arguments of `pip install`).

    Made once and found again; an unfinished or outdated one is completed. A stamp says what it was made from.

    Args:
        folder: where; never deleted unless an earlier run made it.
        base: the Python to make it with.
        requirements: arguments of `pip install`, run in the repository's root.
        depends: further texts that the environment depends on.

    Raises:
        SystemExit: it cannot be made; the message says why.
    """
    digest = hashlib.sha256("\0".join([base.version, *requirements, *depends]).encode()).hexdigest()
    stamp, python = folder / "afd-patchkit-stamp", python_of(folder)
    stamped = stamp.read_text(encoding="utf-8").split() if stamp.is_file() else []
    there = ask([str(python)]) if python.exists() else None
    if there and stamped == [base.minor, digest]:
        return python
    if folder.exists() and (there is None or there.minor != base.minor):
        if not stamped and any(folder.iterdir()):
            raise SystemExit(f"{folder} is no environment of Python {base.minor} made by this script; move it away")
        shutil.rmtree(folder)
    print(f"making {folder} with Python {base.version}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    stamp.write_text(f"{base.minor} unfinished\n", encoding="utf-8")
    if not python.exists():
        run(["-m", "venv", str(folder)], base.path, "the module venv does not work; install it (python3-venv)")
    install = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input", *requirements]
    run(install, str(python), "pip could not install what the checks need (is the package index reachable?)")
    stamp.write_text(f"{base.minor} {digest}\n", encoding="utf-8")
    return python


def project() -> Path:
    """The interpreter of `.venv`, in which the project and everything that its checks need are installed.

    Raises:
        SystemExit: it cannot be made.
    """
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return make(ROOT / ".venv", supported(), ["-e", ".[dev]"], depends=[settings, str(ROOT)])


def command(module: str) -> int:
    """Run `main` of a module, in the project's environment where this Python lacks what it imports.

    Raises:
        SystemExit: the environment cannot be made.
    """
    try:
        return int(importlib.import_module(module).main())
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"tools", "afd_patchkit"} or Path(sys.prefix) == ROOT / ".venv":
            raise
        return subprocess.run([project(), *sys.argv], check=False).returncode


def run(arguments: Sequence[str], python: str, problem: str) -> None:
    """Run a Python command in the root.

    Raises:
        SystemExit: it failed.
    """
    done = subprocess.run([python, *arguments], cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"{problem}: {' '.join([python, *arguments])} ended with {done.returncode}")
