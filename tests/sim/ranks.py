"""Functions in processes of their own, one per rank.

    results = run_ranks(function, *arguments, world=2)

calls `function(Rank(index, size, folder), *arguments)` in `world` fresh processes at once and gives back what they return, in
order. The function has to be importable, what goes in and out picklable. A rank that raises makes `run_ranks` raise the same;
one that hangs is killed and shows where its threads were; one that leaves a thread behind has failed, too. A `Team` keeps the
processes for further calls.
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
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from tests.sim import plugin
from tests.sim.environments import BASE, VLLM, Environment
from tests.sim.patience import POLL, Patience

ROOT = Path(__file__).resolve().parents[2]
# All in seconds of `Patience`: of a machine with nothing else to do.
TIMEOUT = 120.0
"""Far more than any run needs, far less than the patience of a CI job."""
STARTUP = 120.0
"""For the imports."""
GRACE = 5.0
"""What the others have after one rank has failed, and a process for its end."""

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

    def within(self, **roles: int) -> tuple[str, Rank]:
        """The role of this rank, and its place in it; each role has a folder of its own in the common one.

        Args:
            roles: how many ranks there are of each, in the order of the ranks.
        """
        start = 0
        for name, size in roles.items():
            if self.index < start + size:
                folder = self.folder / name
                folder.mkdir(exist_ok=True)
                return name, Rank(self.index - start, size, folder)
            start += size
        raise ValueError(f"rank {self.index} of {self.size} is none of {roles}")


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
        timeout: seconds that it may take on a machine with nothing else to do.
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
    with Team(world, environment) as team:
        return team.call(function, *args, timeout=timeout, **kwargs)


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
        self._control.settimeout(POLL)
        try:
            problem = self._receive(STARTUP)["problem"]
        except (OSError, RankFailed) as error:
            problem = str(error)
        if problem:
            said = (folder / "log").read_text(encoding="utf-8", errors="replace")
            self.stop()
            raise RankFailed(f"no ranks with {environment.name}: {problem}\n{said}")

    @classmethod
    def of(cls, environment: Environment) -> Zygote:
        """The zygote of an environment, started at first use."""
        if environment not in cls._started:
            cls._started[environment] = cls(environment)
        return cls._started[environment]

    def fork(self, rank: Rank) -> tuple[int, Connection]:
        """Start the process of a rank; its id, and the connection to it."""
        ours, theirs = socket.socketpair()
        with theirs:
            request = {"rank": rank.index, "size": rank.size, "folder": str(rank.folder)}
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

    def _receive(self, timeout: float = GRACE * 4) -> dict[str, Any]:
        line, patience = b"", Patience(timeout, lambda: [self._process.pid])
        while not line.endswith(b"\n"):
            try:
                piece = self._control.recv(1 << 16)
            except TimeoutError:
                if patience.over():
                    raise
                continue
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


class Team:
    """Ranks whose processes stay for several calls: what a call leaves in them, such as a group, the next one finds.

    They end with the block, or with the first call that fails.
    """

    def __init__(self, world: int = 2, environment: Environment = VLLM) -> None:
        self.world, self._zygote = world, Zygote.of(environment)
        self._folder = tempfile.TemporaryDirectory(prefix="sim-ranks-")
        self._pids: dict[int, int] = {}
        self._connections: dict[int, Connection] = {}
        self._busy: dict[Connection, int] = {}
        self._answers: dict[int, Answer] = {}
        self._silent: dict[int, str] = {}
        """Ranks without an answer: what became of them."""
        self._logs: dict[int, str] = {}

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    def call(self, function: Callable[..., T], *args: Any, timeout: float = TIMEOUT, **kwargs: Any) -> list[T]:
        """Call `function(rank, *args, **kwargs)` on all ranks, as `run_ranks` does.

        Raises:
            RankFailed: also when the ranks have ended.
        """
        if self._logs:
            raise RankFailed("the ranks have ended")
        task = pickle.dumps((function, args, kwargs))
        for index in range(len(self._pids), self.world):
            rank = Rank(index, self.world, Path(self._folder.name))
            self._pids[index], self._connections[index] = self._zygote.fork(rank)
        self._answers.clear()
        self._busy = {connection: rank for rank, connection in self._connections.items()}
        for connection in self._busy:
            with contextlib.suppress(OSError):  # a rank that has died gives no answer either
                connection.send_bytes(task)
        self._collect(timeout)
        if self._busy or self._silent or any(answer.result is None for answer in self._answers.values()):
            self.end()
            self._judge(timeout)
        return [pickle.loads(answer.result) for _, answer in sorted(self._answers.items()) if answer.result is not None]

    def _collect(self, timeout: float) -> None:
        """Wait for all answers; not long once one of them is an error."""
        patience, failed = Patience(timeout, self._working), False
        while self._busy and not patience.over():
            for connection in wait(list(self._busy), POLL):
                assert isinstance(connection, Connection)
                self._take(connection)
            if not failed and (self._silent or any(answer.result is None for answer in self._answers.values())):
                patience, failed = Patience(GRACE, self._working), True

    def _working(self) -> list[int]:
        return [self._pids[rank] for rank in self._busy.values()]

    def _take(self, connection: Connection) -> None:
        rank = self._busy.pop(connection)
        try:
            self._answers[rank] = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            self._silent[rank] = "died"

    def end(self) -> None:
        """End the ranks: those that still run show their threads, and go."""
        for connection, rank in self._busy.items():
            self._silent[rank] = "hung"
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pids[rank], signal.SIGABRT)
            patience = Patience(GRACE, lambda pid=self._pids[rank]: [pid])  # type: ignore[misc]
            while not wait([connection], POLL):
                if patience.over():
                    os.kill(self._pids[rank], signal.SIGKILL)
                    break
        self._busy.clear()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        for rank, pid in sorted(self._pids.items()):
            self._zygote.reap(pid)
            said = self._logs[rank] = self._log(rank)
            if said:
                print(f"---- rank {rank}\n{said}")
        self._pids.clear()
        self._folder.cleanup()

    def _log(self, rank: int) -> str:
        path = Path(self._folder.name) / f"log-{rank}"
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def _judge(self, timeout: float) -> NoReturn:
        """Raise what went wrong; the first error that a rank reported is taken for the cause."""
        failed = [(rank, answer) for rank, answer in self._answers.items() if answer.result is None]
        parts = [f"rank {rank} raised\n{answer.traceback}" for rank, answer in failed]
        parts += [f"rank {rank} {what}\n{self._logs[rank]}" for rank, what in sorted(self._silent.items())]
        report = RankReport("\n" + "\n".join(parts))
        if failed:
            rank, answer = failed[0]
            last = answer.traceback.strip().rpartition("\n")[2]
            raise (answer.error or RankFailed(f"rank {rank}: {last}")) from report
        names = ", ".join(f"rank {rank}" for rank in sorted(self._silent))
        if "died" in self._silent.values():
            raise RankFailed(f"{names} died without an answer") from report
        raise RankHung(f"{names} did not answer within {timeout:g} s") from report
