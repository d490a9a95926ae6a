"""Time-outs that a busy machine does not use up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.sim.environments import BARE
from tests.sim.patience import POLL, Patience
from tests.sim.ranks import Rank, RankHung, run_ranks

pytestmark = pytest.mark.vllm

BUSY = "import os\nos.sched_setaffinity(0, {%d})\nwhile True: pass"


@pytest.fixture
def busy_core() -> Iterator[int]:
    """A core on which six others want to run."""
    core = min(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-c", BUSY % core]) for _ in range(6)]
    yield core
    for other in others:
        other.kill()
        other.wait()


def work(rank: Rank, core: int, seconds: float) -> float:
    """Use a core for some time; how long that took."""
    os.sched_setaffinity(0, {core})
    begin, end = time.monotonic(), time.process_time() + seconds
    while time.process_time() < end:
        pass
    return time.monotonic() - begin


def work_in_a_child(rank: Rank, core: int, seconds: float) -> None:
    """Let another process do it."""
    os.sched_setaffinity(0, {core})
    code = f"from tests.sim import test_patience as t; t.work(None, {core}, {seconds})"
    subprocess.run([sys.executable, "-c", code], check=True)


def hang(rank: Rank, core: int) -> None:
    os.sched_setaffinity(0, {core})
    while True:  # as one that looks whether something has come
        time.sleep(0.05)


def test_a_rank_that_waits_for_a_core_has_as_much_time_of_it(busy_core: int) -> None:
    assert all(took > 4.0 for took in run_ranks(work, busy_core, 1.0, timeout=4.0, environment=BARE))


def test_a_rank_that_uses_more_than_its_time_is_ended() -> None:
    core = min(os.sched_getaffinity(0))
    with pytest.raises(RankHung, match="rank 0 did not answer within 1 s"):
        run_ranks(work, core, 1000, world=1, timeout=1, environment=BARE)


def test_what_a_rank_has_started_works_for_it(busy_core: int) -> None:
    run_ranks(work_in_a_child, busy_core, 2.0, world=1, timeout=8, environment=BARE)  # it imports pytest, too


def test_a_rank_that_waits_in_vain_is_ended_on_a_busy_machine_too(busy_core: int) -> None:
    with pytest.raises(RankHung, match="rank 0, rank 1 did not answer within 1 s"):
        run_ranks(hang, busy_core, timeout=1, environment=BARE)


def test_processes_that_have_ended_are_no_reason_to_wait() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    patience = Patience(POLL, lambda: [process.pid])
    time.sleep(POLL)
    assert patience.over()
