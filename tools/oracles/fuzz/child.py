"""One command in a child of its own, with an end to its time and its memory."""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MEMORY = 2**30
"""Bytes of address space."""
CPU = 30
"""Seconds of processor time."""
PATIENCE = 90.0
"""Seconds without any work after which something that waits is taken for something that hangs, however busy the machine is."""
_KEPT = 200_000  # bytes of output that are looked at


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes:
        code: its exit status; -N for one that signal N ended.
        output: what it wrote, both streams, from the beginning.
        cpu: seconds of processor time.
        memory: bytes that it had at most.
        hung: it did not end.
    """

    code: int
    output: str
    cpu: float
    memory: int
    hung: bool


def warm() -> None:
    """Import what commands import, so that each child begins with it."""
    import importlib
    import pkgutil

    import afd_patchkit

    for module in pkgutil.walk_packages(afd_patchkit.__path__, "afd_patchkit."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("httpx", "libcst", "yaml", "pydantic", "pypi_simple", "bs4", "rich.console"):
        importlib.import_module(name)


def run(arguments: Sequence[str], folder: Path, first: Callable[[], None] | None = None) -> Outcome:
    """Run `afd-patchkit ARGUMENTS` in a folder; `first` is called in the child before it begins."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _child(arguments, folder, writing, first)
    os.close(writing)
    output, hung = bytearray(), False
    worked, since = -1, time.monotonic()
    os.set_blocking(reading, False)
    while True:
        ready, _, _ = select.select([reading], [], [], 5.0)
        if ready:
            piece = os.read(reading, 65536)
            if not piece:
                break
            output += piece[: max(0, _KEPT - len(output))]
        elif (ticks := _ticks(pid)) != worked:
            worked, since = ticks, time.monotonic()
        elif time.monotonic() - since > PATIENCE:
            hung = True
            os.killpg(pid, signal.SIGKILL)
            break
    os.close(reading)
    _, status, usage = os.wait4(pid, 0)
    text = output.decode("utf-8", "replace")
    cpu = usage.ru_utime + usage.ru_stime
    return Outcome(os.waitstatus_to_exitcode(status), text, cpu, usage.ru_maxrss * 1024, hung)


def _ticks(group: int) -> int:
    """Processor time of a process group so far."""
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group:
                found += sum(map(int, fields[11:15]))
    return found


def _child(arguments: Sequence[str], folder: Path, writing: int, first: Callable[[], None] | None) -> None:
    """The command; never returns."""
    code = 70
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in enumerate((nothing, writing, writing)):
            os.dup2(descriptor, number)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        from afd_patchkit.cli import main
        from afd_patchkit.upstream.network import Network

        Network._sleep = lambda *_: None  # type: ignore[method-assign]  # the pauses between two tries
        sys.argv[:] = ["afd-patchkit", *arguments]
        if first is not None:
            first()
        try:
            main()
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)
