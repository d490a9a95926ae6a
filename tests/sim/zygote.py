"""A process that has imported everything and is forked for each rank: `python -m tests.sim.zygote FD MODULE...`.

Importing vLLM takes many times as long as most runs. Forking is safe as long as the process has one thread and has opened
nothing that its children would share, and the zygote checks the former. It reads requests from a socket, one JSON line each,
with the socket on which the rank answers attached, and replies with a JSON line.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.sim.ranks import Answer, LeakedThreads, Rank

LINE = 1 << 16
SETTLE = 10.0
"""Seconds that a thread may live on after the function that started it; it has been told to end."""


def main() -> None:
    """Serve until the socket is closed; the ranks end with their zygote."""
    control = socket.socket(fileno=int(sys.argv[1]))
    children: set[int] = set()
    try:
        try:
            for name in sys.argv[2:]:
                importlib.import_module(name)
            gc.collect()
            gc.freeze()  # what was imported is no rubbish: looking for some in it copies all its pages
            threads = len(os.listdir("/proc/self/task"))
            problem = "" if threads == 1 else f"{threads} threads run after the imports, so it cannot be forked"
        except BaseException:
            problem = traceback.format_exc()
        _reply(control, problem=problem)
        while True:
            line, files, _, _ = socket.recv_fds(control, LINE, 1)
            if not line:
                return
            request = json.loads(line)
            if "reap" in request:
                os.waitpid(request["reap"], 0)
                children.discard(request["reap"])
                _reply(control)
                continue
            child = os.fork()
            if child == 0:
                control.close()
                _rank(request, files[0])
            children.add(child)
            os.close(files[0])
            _reply(control, pid=child)
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def _reply(control: socket.socket, **answer: Any) -> None:
    control.sendall(json.dumps(answer).encode() + b"\n")


def _rank(request: dict[str, Any], file: int) -> None:
    """Life of one rank; does not return."""
    rank = Rank(request["rank"], request["size"], Path(request["folder"]))
    log = os.open(rank.folder / f"log-{rank.index}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable(2)  # shows all threads when the parent has no patience any more
    connection = Connection(file)
    with contextlib.suppress(EOFError, OSError):  # nobody wants more of it
        while True:
            answer = _answer(rank, connection.recv_bytes())
            connection.send_bytes(pickle.dumps(answer))
            if answer.result is None:
                break  # as far as the others can see, a rank that has failed is gone
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _answer(rank: Rank, task: bytes) -> Answer:
    try:
        function, args, kwargs = pickle.loads(task)
        result = pickle.dumps(function(rank, *args, **kwargs))
        _settle()
        return Answer(result, None, "")
    except BaseException as error:
        text = traceback.format_exc()
        with contextlib.suppress(Exception):
            # An error of a module that the parent has not imported would import it there.
            if type(error).__module__.partition(".")[0] in {"builtins", "tests"}:
                return Answer(None, pickle.loads(pickle.dumps(error)), text)
        return Answer(None, None, text)


def _settle() -> None:
    end = time.monotonic() + SETTLE
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                raise LeakedThreads(f"{thread.name} still runs")


if __name__ == "__main__":
    main()
