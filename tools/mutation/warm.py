"""Runs tests in processes forked from one that has imported vLLM: `python -m tools.mutation.warm`.

Importing takes ten times as long as most tests. One JSON line on standard input is one run: the arguments of pytest, a
limit in seconds, and whether lines are recorded. One JSON line on standard output answers it: exit code (None: the limit was reached) and what failed.
What the tests print goes to standard error.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

PRELOAD = "tests.dbo.conftest"
RANKS, ENVIRONMENTS = "tests.sim.ranks", "tests.sim.environments"
PACKAGE = "afd_backports"


_children: set[int] = set()


class Recorder:
    """A pytest plugin: which tests failed, and the last line of what they said."""

    def __init__(self) -> None:
        self.failed: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._add(report)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._add(report)

    def _add(self, report: Any) -> None:
        crash = getattr(report.longrepr, "reprcrash", None)
        said = crash.message if crash is not None else report.longreprtext.strip().rpartition("\n")[2]
        self.failed.append((report.nodeid, said.strip().partition("\n")[0]))


def main() -> None:
    """Serve until standard input is closed."""
    requests, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    importlib.import_module("pytest")
    importlib.import_module(PRELOAD)
    _start_ranks()
    loaded = [name for name in sys.modules if name.partition(".")[0] == PACKAGE]
    if loaded:
        raise SystemExit(f"{PRELOAD} imports generated modules: {', '.join(loaded)}")
    signal.signal(signal.SIGTERM, _end)
    gc.collect()
    gc.freeze()
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in requests:
        request = json.loads(line)
        print(
            json.dumps(run(request["arguments"], request["limit"], record=request.get("record", False))),
            file=answers,
            flush=True,
        )


def _end(*_: object) -> None:
    """End at once, with all that was started."""
    for child in _children:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
    importlib.import_module(RANKS).stop_all()
    os._exit(0)


def _start_ranks() -> None:
    """The processes that ranks are forked from, which are shared by all runs; they load no generated module."""
    zygote = importlib.import_module(RANKS).Zygote
    for environment in importlib.import_module(ENVIRONMENTS).usual():
        zygote.of(environment)


def run(arguments: list[str], limit: float, *, record: bool = False) -> dict[str, Any]:
    """One run of pytest in a process of its own; `record` says whether it tells which lines are reached."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(arguments, writer, record)
    _children.add(child)
    os.close(writer)
    said, end = b"", time.monotonic() + limit
    with open(reader, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            piece = pipe.read(1 << 16)
            if not piece:
                break
            said += piece
    if not said:
        with contextlib.suppress(ProcessLookupError):  # with all that it has started
            os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    _children.discard(child)
    if not said and time.monotonic() >= end:
        importlib.import_module(RANKS).stop_all()  # its last run may hang there
        _start_ranks()
        return {"code": None, "failed": []}
    answer: dict[str, Any] = json.loads(said) if said else {"code": -1, "failed": [[arguments[-1], "the process died"]]}
    return answer


def _child(arguments: list[str], writer: int, record: bool) -> None:
    """Life of one run; does not return."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    recorder = Recorder()
    code = -1
    try:
        import pytest

        plugins: list[object] = [recorder]
        if record:
            from tools.mutation import hits, phases

            plugins.append(phases.Phases(Path(os.environ[hits.VARIABLE])))
        code = int(pytest.main(arguments, plugins=plugins))
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(writer, json.dumps({"code": code, "failed": recorder.failed}).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
