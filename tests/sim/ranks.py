"""Functions in processes of their own, one per rank.

    results = run_ranks(function, *arguments, world=2)

calls `function(Rank(index, size, folder), *arguments)` in `world` fresh processes at once and gives back what they return, in
order. The function has to be importable, what goes in and out picklable. A rank that raises makes `run_ranks` raise the same;
one that hangs is killed and shows where its threads were; one that leaves a thread behind has failed, too.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

from tests.sim import plugin
from tests.sim.environments import BASE, VLLM, Environment

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 120.0
"""Seconds; far more than any run needs, far less than the patience of a CI job."""
STARTUP = 300.0
"""Seconds for the imports, on a busy machine."""
GRACE = 5.0
"""Seconds that the others have after one rank has failed."""

T = TypeVar("T")


@dataclass(frozen=True)
class Rank:
    """What a function is told about where it runs.

    Attributes:
        index: number of this rank.
        size: number of ranks.
        folder: an empty folder that the ranks of this run share.
    """

    index: int
    size: int
    folder: Path


class RankFailed(Exception):
    """A rank ended without an answer, or with an error of a kind that is unknown here; `__cause__` has more."""


class RankHung(Exception):
    """A rank did not answer in time; `__cause__` shows where its threads were."""


class LeakedThreads(Exception):
    """A function returned while a thread that it had started still ran."""


class RankReport(Exception):
    """What the ranks said: tracebacks, output. The cause of what `run_ranks` raises."""


@dataclass(frozen=True)
class Answer:
    """What a rank sends back: a pickled result, or an error and its traceback."""

    result: bytes | None
    error: BaseException | None
    traceback: str


def run_ranks(
    function: Callable[..., T],
    *args: Any,
    world: int = 2,
    timeout: float = TIMEOUT,
    environment: Environment = VLLM,
    **kwargs: Any,
) -> list[T]:
    """Call `function(rank, *args, **kwargs)` on all ranks.

    Args:
        function: can be imported by its name.
        args: picklable.
        world: number of ranks.
        timeout: seconds that it may take.
        environment: kind of process.
        kwargs: picklable.

    Returns:
        What the ranks returned, in order.

    Raises:
        RankHung: a rank did not return in time.
        RankFailed: a rank died, or raised what cannot be raised here.
        LeakedThreads: a thread was left behind.
        BaseException: what the first rank that failed raised, if it is built in or of these tests.
    """
    zygote = Zygote.of(environment)
    with tempfile.TemporaryDirectory(prefix="sim-ranks-") as name:
        run = _Run(zygote, Path(name), world, timeout)
        try:
            run.start(pickle.dumps((function, args, kwargs)))
            run.collect()
        finally:
            run.end()
        run.judge()
        return [pickle.loads(answer.result) for _, answer in sorted(run.answers.items()) if answer.result is not None]


class Zygote:
    """The parent's end of a `tests.sim.zygote`."""

    _started: dict[Environment, Zygote] = {}  # noqa: RUF012 - one for the whole process

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._folder = tempfile.TemporaryDirectory(prefix="sim-zygote-")
        folder = Path(self._folder.name)
        plugin.write(folder)
        for package in environment.packages:
            (folder / Path(package).name).symlink_to(package)
        paths = [str(folder), str(ROOT), str(ROOT / "generated"), os.environ.get("PYTHONPATH", "")]
        variables = {
            **os.environ,
            **BASE,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "VLLM_CACHE_ROOT": str(folder / "cache"),
            "VLLM_CONFIG_ROOT": str(folder / "config"),
            **dict(environment.variables),
        }
        self._control, theirs = socket.socketpair()
        with theirs, (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.sim.zygote", str(theirs.fileno()), *environment.preload],
                cwd=ROOT, env=variables, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self._control.settimeout(STARTUP)
        try:
            problem = self._receive()["problem"]
        except (OSError, RankFailed) as error:
            problem = str(error)
        if problem:
            said = (folder / "log").read_text(encoding="utf-8", errors="replace")
            self.stop()
            raise RankFailed(f"no ranks with {environment.name}: {problem}\n{said}")
        self._control.settimeout(GRACE * 4)

    @classmethod
    def of(cls, environment: Environment) -> Zygote:
        """The zygote of an environment, started at first use."""
        if environment not in cls._started:
            cls._started[environment] = cls(environment)
        return cls._started[environment]

    def fork(self, rank: Rank, timeout: float) -> tuple[int, Connection]:
        """Start the process of a rank; its id, and the connection to it."""
        ours, theirs = socket.socketpair()
        with theirs:
            request = {"rank": rank.index, "size": rank.size, "folder": str(rank.folder), "timeout": timeout}
            socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno()])
            return self._receive()["pid"], Connection(ours.detach())

    def reap(self, pid: int) -> None:
        """Let a process that has ended disappear; until then its id stays its own."""
        self._control.sendall(json.dumps({"reap": pid}).encode())
        self._receive()

    def stop(self) -> None:
        """End the zygote, and what is left of its ranks."""
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def _receive(self) -> dict[str, Any]:
        line = b""
        while not line.endswith(b"\n"):
            piece = self._control.recv(1 << 16)
            if not piece:
                self._started.pop(self.environment, None)  # the next run gets another
                raise RankFailed(f"the process of {self.environment.name} that ranks are forked from is gone")
            line += piece
        return dict(json.loads(line))


@atexit.register
def stop_all() -> None:
    """End all zygotes."""
    while Zygote._started:
        Zygote._started.popitem()[1].stop()


class _Run:
    """One call of `run_ranks`."""

    def __init__(self, zygote: Zygote, folder: Path, world: int, timeout: float) -> None:
        self.zygote, self.folder, self.world, self.timeout = zygote, folder, world, timeout
        self.answers: dict[int, Answer] = {}
        self.silent: dict[int, str] = {}
        """Ranks without an answer: what became of them."""
        self._open: dict[Connection, int] = {}
        self._pids: dict[int, int] = {}
        self._end = 0.0

    def start(self, task: bytes) -> None:
        """Start all ranks."""
        for index in range(self.world):
            self._pids[index], connection = self.zygote.fork(Rank(index, self.world, self.folder), self.timeout)
            self._open[connection] = index
        self._end = time.monotonic() + self.timeout
        for connection in self._open:
            connection.send_bytes(task)

    def collect(self) -> None:
        """Wait for all answers; not long once one of them is an error."""
        # A rank shows its threads and ends by itself when its time is up.
        late = GRACE
        while self._open:
            ready = wait(list(self._open), max(0.0, self._end + late - time.monotonic()))
            if not ready:
                return
            for connection in ready:
                assert isinstance(connection, Connection)
                self._take(connection)
            if any(answer.result is None for answer in self.answers.values()) or self.silent:
                self._end, late = min(self._end, time.monotonic() + GRACE), 0.0

    def _take(self, connection: Connection) -> None:
        rank = self._open.pop(connection)
        try:
            self.answers[rank] = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            shown = "Timeout (" in self._log(rank)  # faulthandler's word for it
            self.silent[rank] = "hung" if shown else "died"
        connection.close()

    def end(self) -> None:
        """End the ranks that still run: they show their threads, and go."""
        for connection, rank in self._open.items():
            self.silent[rank] = "hung"
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pids[rank], signal.SIGABRT)
            if not wait([connection], GRACE):
                os.kill(self._pids[rank], signal.SIGKILL)
            connection.close()
        self._open.clear()
        for pid in self._pids.values():
            self.zygote.reap(pid)
        self.logs = {rank: self._log(rank) for rank in range(self.world)}
        for rank, said in self.logs.items():
            if said:
                print(f"---- rank {rank}\n{said}")

    def _log(self, rank: int) -> str:
        path = self.folder / f"log-{rank}"
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def judge(self) -> None:
        """Raise what went wrong; the first error that a rank reported is taken for the cause."""
        failed = [(rank, answer) for rank, answer in self.answers.items() if answer.result is None]
        if not failed and not self.silent:
            return
        parts = [f"rank {rank} raised\n{answer.traceback}" for rank, answer in failed]
        parts += [f"rank {rank} {what}\n{self.logs[rank]}" for rank, what in sorted(self.silent.items())]
        report = RankReport("\n" + "\n".join(parts))
        if failed:
            rank, answer = failed[0]
            last = answer.traceback.strip().rpartition("\n")[2]
            raise (answer.error or RankFailed(f"rank {rank}: {last}")) from report
        names = ", ".join(f"rank {rank}" for rank in sorted(self.silent))
        if "died" in self.silent.values():
            raise RankFailed(f"{names} died without an answer") from report
        raise RankHung(f"{names} did not answer within {self.timeout:g} s") from report
