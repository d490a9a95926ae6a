"""Functions on ranks: results, errors, hangs, what is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.sim import ranks
from tests.sim.environments import BARE, Environment
from tests.sim.ranks import LeakedThreads, Rank, RankFailed, RankHung, Team, run_ranks

pytestmark = pytest.mark.vllm


class OwnError(Exception):
    """An error that both sides know."""


def describe(rank: Rank, word: str, *, mark: str = "") -> tuple[str, int, int]:
    (rank.folder / f"seen-{rank.index}").touch()
    return word + mark, rank.index, rank.size


def meet(rank: Rank) -> list[str]:
    """Wait for the other rank's file."""
    (rank.folder / f"seen-{rank.index}").touch()
    while len(list(rank.folder.glob("seen-*"))) < rank.size:
        time.sleep(0.01)
    return sorted(path.name for path in rank.folder.glob("seen-*"))


def process(rank: Rank) -> tuple[int, int, str]:
    return os.getpid(), os.getppid(), os.environ["TRITON_INTERPRET"]


def fail(rank: Rank, who: int) -> None:
    """One rank raises; the other waits for it, as in a collective."""
    print(f"output of {rank.index}")
    if rank.index == who:
        raise OwnError("seven", 7)
    wait_in_vain()


def wait_in_vain() -> None:
    time.sleep(1000)


def hang_in_a_thread(rank: Rank) -> None:
    if rank.index == 1:
        thread = threading.Thread(target=wait_in_vain)
        thread.start()
        thread.join()


def die(rank: Rank) -> None:
    print("last words", file=sys.stderr)
    os.kill(os.getpid(), signal.SIGSEGV)


def leave_quietly(rank: Rank) -> None:
    os._exit(0)


def leak(rank: Rank) -> None:
    threading.Thread(target=time.sleep, args=(60,), name="forgotten", daemon=True).start()


def short_thread(rank: Rank) -> str:
    threading.Thread(target=time.sleep, args=(0.1,)).start()
    return "done"


def raise_foreign(rank: Rank) -> None:
    import zipfile

    raise zipfile.BadZipFile("not here")


def return_a_lambda(rank: Rank) -> object:
    return lambda: None


def test_results_come_in_the_order_of_ranks():
    assert run_ranks(describe, "a", mark="!", world=3, environment=BARE) == [("a!", 0, 3), ("a!", 1, 3), ("a!", 2, 3)]


def test_ranks_run_at_once_and_share_a_folder_that_is_gone_afterwards():
    assert run_ranks(meet, environment=BARE) == [["seen-0", "seen-1"]] * 2
    assert run_ranks(meet, environment=BARE) == [["seen-0", "seen-1"]] * 2


def test_each_rank_of_each_run_has_a_process_of_its_own():
    runs = run_ranks(process, environment=BARE) + run_ranks(process, environment=BARE)
    assert len({pid for pid, _, _ in runs} | {os.getpid()}) == 5
    assert len({parent for _, parent, _ in runs}) == 1
    assert {variable for _, _, variable in runs} == {"1"}


def test_an_error_is_raised_here_with_the_traceback_from_there(capsys):
    with pytest.raises(OwnError) as caught:
        run_ranks(fail, 1, environment=BARE)
    assert caught.value.args == ("seven", 7)
    report = str(caught.value.__cause__)
    assert "rank 1 raised" in report
    assert 'raise OwnError("seven", 7)' in report
    assert "rank 0 hung" in report
    assert "wait_in_vain" in report
    assert "output of 0" in capsys.readouterr().out


def test_an_error_of_a_kind_that_is_unknown_here():
    with pytest.raises(RankFailed, match=r"rank 0: zipfile.BadZipFile: not here"):
        run_ranks(raise_foreign, world=1, environment=BARE)


def test_a_result_that_cannot_be_sent():
    with pytest.raises((AttributeError, RankFailed), match="pickle"):
        run_ranks(return_a_lambda, world=1, environment=BARE)


def test_a_rank_that_hangs_shows_its_threads():
    with pytest.raises(RankHung, match=r"rank 1 did not answer within 1 s") as caught:
        run_ranks(hang_in_a_thread, timeout=1, environment=BARE)
    assert "wait_in_vain" in str(caught.value.__cause__)


@pytest.mark.parametrize(("function", "words"), [(die, "last words"), (leave_quietly, "")])
def test_a_rank_that_dies(function, words):
    with pytest.raises(RankFailed, match="rank 0 died without an answer") as caught:
        run_ranks(function, world=1, environment=BARE)
    assert words in str(caught.value.__cause__)


def test_a_thread_left_behind_is_an_error():
    with pytest.raises(LeakedThreads, match="forgotten"):
        run_ranks(leak, world=1, environment=BARE)
    assert run_ranks(short_thread, world=1, environment=BARE) == ["done"]


def count(rank: Rank, seen: list[int] = []) -> tuple[int, int]:  # noqa: B006 - what stays is what is tested
    seen.append(1)
    return len(seen), os.getpid()


def test_the_processes_of_a_team_stay():
    with Team(environment=BARE) as team:
        calls = [team.call(count) for _ in range(3)]
    assert [[number for number, _ in call] for call in calls] == [[1, 1], [2, 2], [3, 3]]
    assert len({process for call in calls for _, process in call}) == 2
    assert not any(Path(f"/proc/{process}").exists() for _, process in calls[0])
    with pytest.raises(RankFailed, match="the ranks have ended"):
        team.call(count)


@pytest.mark.parametrize("function", [fail, die])
def test_a_team_ends_with_its_first_failure(function):
    with Team(world=1, environment=BARE) as team:
        ((_, process),) = team.call(count)
        with pytest.raises((OwnError, RankFailed)):
            team.call(function, *([0] if function is fail else []))
        assert not Path(f"/proc/{process}").exists()
        with pytest.raises(RankFailed, match="the ranks have ended"):
            team.call(count)


def test_a_rank_that_dies_between_two_calls_is_missed():
    with Team(world=1, environment=BARE) as team:
        ((_, process),) = team.call(count)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(RankFailed, match="rank 0 died without an answer"):
            team.call(count)


def test_an_environment_that_cannot_be_imported():
    with pytest.raises(RankFailed, match=r"(?s)no ranks with nothing.*No module named 'nowhere'"):
        run_ranks(describe, "a", environment=Environment("nothing", ("nowhere",)))


def test_an_environment_with_threads_is_not_forked(tmp_path: Path):
    (tmp_path / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
    )
    with pytest.raises(RankFailed, match="2 threads run after the imports"):
        run_ranks(describe, "a", environment=Environment("threaded", ("threaded",), (str(tmp_path / "threaded.py"),)))


def test_nothing_is_left_when_the_parent_goes(tmp_path: Path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import threading, os, time\n"
        "from tests.sim import ranks, test_ranks\n"
        "from tests.sim.environments import BARE\n"
        "def run():\n"
        "    ranks.run_ranks(test_ranks.note_pid, os.environ['NOTE'], environment=BARE)\n"
        "threading.Thread(target=run, daemon=True).start()\n"
        "while len(os.listdir(os.environ['NOTE'])) < 2: time.sleep(0.02)\n"
        "os._exit(0)\n"
    )
    (tmp_path / "pids").mkdir()
    env = {**os.environ, "NOTE": str(tmp_path / "pids"), "PYTHONPATH": str(ranks.ROOT)}
    subprocess.run([sys.executable, str(script)], env=env, check=True, timeout=60)
    pids = [int(path.name) for path in (tmp_path / "pids").iterdir()]
    assert len(pids) == 2
    for _ in range(200):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return
        time.sleep(0.05)
    pytest.fail(f"{pids} are still there")


def note_pid(rank: Rank, folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    wait_in_vain()


def test_ranks_have_roles(tmp_path: Path) -> None:
    roles = {"attention": 2, "ffn": 1}
    found = [Rank(index, 3, tmp_path).within(**roles) for index in range(3)]
    assert found == [
        ("attention", Rank(0, 2, tmp_path / "attention")), ("attention", Rank(1, 2, tmp_path / "attention")), ("ffn", Rank(0, 1, tmp_path / "ffn")),
    ]  # fmt: skip
    assert all(place.folder.is_dir() for _, place in found)
    with pytest.raises(ValueError, match="rank 3 of 4 is none of"):
        Rank(3, 4, tmp_path).within(**roles)


def fail_or_watch(rank: Rank, seen: str) -> None:
    """One rank fails; the other one waits until it is gone."""
    (rank.folder / f"{rank.index} {os.getpid()}").touch()
    if rank.index == 0:
        raise OwnError
    while not (files := list(rank.folder.glob("0 *"))):
        time.sleep(0.01)
    status = Path(f"/proc/{files[0].name.partition(' ')[2]}/stat")
    while status.read_text().rpartition(")")[2].split()[0] != "Z":  # it stays so until its parent looks
        time.sleep(0.01)
    Path(seen).touch()


def test_a_rank_that_has_failed_is_gone(tmp_path: Path) -> None:
    with pytest.raises(OwnError):
        run_ranks(fail_or_watch, str(tmp_path / "seen"), environment=BARE, timeout=20)
    assert (tmp_path / "seen").exists()
