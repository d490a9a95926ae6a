"""The environment with the real vLLM: pure Python, CPU, pinned; made once below the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tools import environments
from tools.environments import ROOT, Interpreter

VLLM = environments.pinned_version("vllm")
REQUIREMENTS = ROOT / "tools" / "vllm_requirements.txt"
PYTHONS = ("3.11", "3.12", "3.13")
"""Best first; the pinned numpy wants 3.11."""
BUILD = {
    "VLLM_TARGET_DEVICE": "empty",  # no kernels
    "VLLM_VERSION_OVERRIDE": VLLM,  # else it calls itself VERSION+empty, and pip refuses what it did not ask for
}
STAMP = "afd-patchkit-stamp"

HELP = f"""\
usage: tools/vllm_env

Makes the environment in which tests/dbo run: torch for the CPU, vLLM {VLLM} built as pure Python, and what these two
import, as pinned in tools/vllm_requirements.txt. An environment that is there already is found again, an interrupted
one is completed. The last line of the output is its interpreter; what is done meanwhile is told on standard error.
"""


def say(text: str) -> None:
    """Tell what is done; standard output holds the answer alone."""
    print(text, file=sys.stderr, flush=True)


def base_python() -> Interpreter:
    """The Python to make it with.

    Raises:
        SystemExit: there is none.
    """
    for minor in PYTHONS:
        if found := environments.find(minor):
            return found
    raise SystemExit(f"tools/vllm_env needs one of Python {', '.join(PYTHONS)}; install one")


def steps(python: Path) -> Sequence[tuple[str, Sequence[str], Mapping[str, str]]]:
    """What makes the environment, in order: name, arguments of its interpreter, variables."""
    pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    names = [line.split(";")[0].strip() for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines()]
    torch = next(name for name in names if name.startswith("torch=="))
    check = f"import torch; from importlib.metadata import version; assert version('vllm') == '{VLLM}', version('vllm')"
    return [
        # On its own, for it is by far the largest: its progress is worth seeing.
        (torch, [*pip, torch], {}),
        ("the packages that vLLM imports", [*pip, "-q", "-r", str(REQUIREMENTS)], {}),
        (f"vllm=={VLLM}", [*pip, "-q", "--no-binary", "vllm", "--no-build-isolation", "--no-deps", f"vllm=={VLLM}"], BUILD),
        ("a first import", ["-c", f"{check}; import vllm.v1.worker.gpu.dp_utils"], {"CUDA_VISIBLE_DEVICES": "", "VLLM_LOGGING_LEVEL": "ERROR"}),
    ]  # fmt: skip


def run(python: Path | str, arguments: Sequence[str], variables: Mapping[str, str], name: str) -> None:
    """Run one step.

    Args:
        python: the interpreter.
        arguments: what it is to run.
        variables: environment variables in addition to ours.
        name: the step, for messages.

    Raises:
        SystemExit: it failed.
    """
    done = subprocess.run(
        [str(python), *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=sys.stderr,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"tools/vllm_env: {name} failed ({done.returncode}); run it again to go on from here")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Two runs make one environment one after the other."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as file:
        with contextlib.suppress(ImportError):  # Windows, where vLLM does not run either
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                say(f"waiting for another run that makes {folder}")
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make(folder: Path, base: Interpreter) -> Path:
    """The interpreter of the environment in `folder`; steps that its stamp names are done already."""
    python, stamp = environments.python_of(folder), folder / STAMP
    done = stamp.read_text(encoding="utf-8").splitlines() if stamp.is_file() else []
    if "venv" not in done or environments.ask([str(python)]) is None:
        if folder.exists():
            shutil.rmtree(folder)  # below our own cache folder, and of no use
        say(f"making {folder} with Python {base.version}")
        run(base.path, ["-m", "venv", str(folder)], {}, "making the virtual environment")
        done = ["venv"]
        stamp.write_text("venv\n", encoding="utf-8")
    for name, arguments, variables in steps(python):
        if name in done:
            continue
        say(f"installing {name}" if arguments[0] == "-m" else f"trying {name}")
        start = time.monotonic()
        run(python, arguments, variables, name)
        with stamp.open("a", encoding="utf-8") as file:
            file.write(name + "\n")
        say(f"done in {time.monotonic() - start:.0f} s")
    return python


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `tools/vllm_env`."""
    rest = list(sys.argv[1:] if arguments is None else arguments)
    if rest:
        wanted = bool(set(rest) & {"-h", "--help"})
        print(HELP, end="", file=sys.stdout if wanted else sys.stderr)
        return 0 if wanted else 2
    base = base_python()
    decides = [base.version, VLLM, REQUIREMENTS.read_text(encoding="utf-8")]
    digest = hashlib.sha256("\0".join(decides).encode()).hexdigest()[:16]
    folder = environments.cache_folder() / "envs" / digest
    with alone(folder):
        python = make(folder, base)
    print(python)
    return 0
