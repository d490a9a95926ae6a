"""Time-outs that tell a process that is stuck from one that a busy machine lets wait.

Their clock shows the seconds that would pass on a machine with nothing else to do: while a process works, the time that it has
had a core; while none of them works, all time.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

POLL = 0.2
"""Seconds between two looks at the processes."""

IDLE = 30.0
"""Seconds after which processes are stuck of which none has worked meanwhile; no wait of a test is as long."""

PEER = 600.0
"""Seconds that one rank waits for another. Whoever looks at all of them has given them up long before."""

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_WORKS = 0.05
"""Share of a core from which on a process is at work; those that look whether something has come need less."""


class Patience:
    """A time-out of a group of processes, with those that they have started.

    Attributes:
        limit: seconds on a machine with nothing else to do.
        passed: how many of them have passed, as of the last look.
    """

    def __init__(self, limit: float, processes: Callable[[], list[int]]) -> None:
        """It begins now; `processes` gives the ids of those that are waited for."""
        self.limit, self.passed, self._idle, self._processes = limit, 0.0, 0.0, processes
        self._seen, self._at = self._look()[0], time.monotonic()

    def over(self) -> bool:
        """Look at the processes; whether their time is up. Nothing that happens between two looks counts more than once."""
        (used, waiting), now = self._look(), time.monotonic()
        worked = max((seconds - self._seen.get(process, 0.0) for process, seconds in used.items()), default=0.0)
        elapsed = now - self._at
        busy = waiting or worked > _WORKS * elapsed
        self.passed += min(worked, elapsed) if busy else elapsed
        self._idle = 0.0 if busy else self._idle + elapsed
        self._seen, self._at = used, now
        return self.passed >= self.limit or self._idle >= IDLE

    def _look(self) -> tuple[dict[int, float], bool]:
        """Seconds that each process has had a core, and whether a thread of one has or wants one, or waits for a disk."""
        used, waiting = {}, False
        for process in self._processes():
            for one in _family(process):
                with contextlib.suppress(OSError):  # it has ended
                    used[one] = sum(map(int, _stat(Path(f"/proc/{one}"))[11:13])) * _TICK
                    waiting |= any(_stat(task)[0] in "RD" for task in Path(f"/proc/{one}/task").iterdir())
        return used, waiting


def _family(process: int) -> Iterator[int]:
    """A process and all that it has started, directly and indirectly."""
    yield process
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def _stat(folder: Path) -> list[str]:
    """The fields behind the name of a process or thread: its state is the first."""
    return (folder / "stat").read_text().rpartition(")")[2].split()
