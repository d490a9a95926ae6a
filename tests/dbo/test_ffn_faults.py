"""Nobody waits for ever: whatever happens to an attention rank or an FFN rank, all others get an error; or the step is given up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import ascend, eager, ffn_faults
from tests.dbo.ffn_roles import GPU, SETUPS, SIZE, WORLD, Setup
from tests.sim.ranks import run_ranks
from tests.sim.scheduler import Logits, difference

pytestmark = pytest.mark.vllm

LOST, DIVERGED = "PeerLost", "PeerDiverged"
END = ("PeerAborted", LOST)  # the word of an end that gives up may come after its end
ANY = (*END, "RuntimeError")  # of the FFN ranks' own group, or an end of the connector
OWN = ("OwnError: in the middle of a step",)

# Rank 0 and 1 are attention ranks, rank 2 and 3 work for them.
FAULTS: list[tuple[str, int, list[tuple[str, ...]]]] = [
    ("raises", 2, [END, ANY, OWN, ANY]),
    ("says nothing", 2, [(LOST,), ANY, ANY, ANY]),
    ("sends nothing", 0, [(LOST,), ANY, (LOST,), ANY]),
    ("raises", 0, [OWN, ANY, ANY, ANY]),
    ("announces another kind", 1, [END, END, (DIVERGED,), (DIVERGED,)]),
    ("announces other tokens", 1, [END, END, (DIVERGED,), (DIVERGED,)]),
    ("sends other tokens", 1, [ANY, END, ANY, (DIVERGED,)]),
    ("forgets", 3, [ANY, END, ANY, ("FFNControlError: a replay is announced for stage 0",)]),
    ("captures wrongly", 2, [END, ANY, ("OwnError: in a capture",), ANY]),
]
"""What is wrong, with which rank, and what each rank raises."""


RUNNERS = {"vLLM": GPU, "an NPU": SETUPS["an NPU"]}


@pytest.fixture(scope="module", params=RUNNERS)
def setup(request: pytest.FixtureRequest) -> Setup:
    """vLLM's runner; vllm-ascend's, or that of its stand-in."""
    return RUNNERS[request.param]


def disturbed(fault: str, victim: int, folder: Path, setup: Setup) -> dict[int, dict[str, Any]]:
    """What each rank wrote down; a rank that hangs, or has died, wrote nothing."""
    error = None
    try:
        run_ranks(ffn_faults.disturb, fault, victim, str(folder), setup, world=WORLD, environment=setup.environment)
    except Exception as first:
        error = first
    seen = {
        rank: json.loads(file.read_text())
        for rank in range(WORLD)
        if (file := folder / f"{fault} {victim} {rank}").exists()
    }
    assert error is not None, seen
    return seen


@pytest.mark.parametrize(
    ("fault", "victim", "expected"), FAULTS, ids=[f"rank {victim} {fault}" for fault, victim, _ in FAULTS]
)
def test_all_ranks_get_an_error(
    fault: str, victim: int, expected: list[tuple[str, ...]], setup: Setup, tmp_path: Path
) -> None:
    seen = disturbed(fault, victim, tmp_path, setup)
    assert sorted(seen) == list(range(WORLD)), seen
    for rank, errors in enumerate(expected):
        assert seen[rank]["error"].startswith(errors), seen
    for rank in range(SIZE):
        assert not seen[rank]["raised"]  # no flag is
        # Of three. On an NPU the graph is lost whose replay fails; its updates would not be what its layers wait for.
        assert seen[rank]["twins"] == (0 if fault != "forgets" else 2 if setup.npu else 3)


@pytest.mark.parametrize("victim", [0, 2])
def test_the_others_get_an_error_when_a_rank_dies(victim: int, setup: Setup, tmp_path: Path) -> None:
    seen = disturbed("dies", victim, tmp_path, setup)
    assert sorted(seen) == [rank for rank in range(WORLD) if rank != victim], seen
    assert all(result["error"].startswith(ANY) for result in seen.values()), seen
    assert seen[(victim + SIZE) % WORLD]["error"].startswith(LOST), seen


# ---- the attention side gives up a step -----------------------------------------------------------------------


def undisturbed(setup: Setup) -> list[Logits]:
    """Logits of the third step in single batches."""
    alone = ascend.undisturbed if setup.npu else eager.undisturbed
    return run_ranks(alone, environment=setup.environment)


MARKS = [1, 2, 5, 6, 8]
"""Of the eight of a split step."""

SENT = 7
"""The mark by which both stages have sent all their layers."""


@pytest.fixture(scope="module")
def given_up(setup: Setup) -> list[Any]:
    return run_ranks(ffn_faults.give_up, MARKS, setup, world=WORLD, environment=setup.environment)


def test_the_next_step_is_right_after_one_that_is_given_up(given_up: list[Any], setup: Setup) -> None:
    for outcomes, expected in zip(given_up[:SIZE], undisturbed(setup), strict=True):
        assert len(outcomes) == len(MARKS) + 2
        for outcome in outcomes:
            assert outcome["failed"]  # in a replay: the flag was raised, too
            assert not outcome["raised"]
            assert difference(outcome["logits"], expected) < 1e-4
        for outcome in outcomes[len(MARKS) :]:
            assert not outcome["raised after"]
            assert outcome["lost"] == setup.npu


def test_the_ffn_side_reads_a_replay_when_a_replay_is_given_up(given_up: list[Any], setup: Setup) -> None:
    prefill, decode = {0: [4, 4], 1: [5, 5]}, {0: [2, 2], 1: [2, 2]}
    replay = ("replay", decode, "replay")
    for log in given_up[SIZE:]:
        steps = [step for step in log.steps if step[0] not in {"warm-up", "capture"}]
        eager_part: list[Any] = []
        for mark in MARKS:
            # Once both stages have sent all their layers, nothing of the step is missing here.
            first = ("eager", prefill, "eager, given up" if mark < SENT else "eager")
            eager_part += [first, ("eager", prefill, "eager"), replay, replay]
        # A replay that is not done is given up; one that fails after it was done is not.
        next_one = (
            ("replay", {0: [4, 4]}, "replay") if setup.npu else replay
        )  # its native graph, when the other is lost
        replays = [("eager", prefill, "eager"), replay, ("replay", decode, "replay, given up"), next_one]
        replays += [("eager", prefill, "eager"), replay, replay, next_one]
        assert steps == eager_part + replays


# Native graphs: a warm-up and a capture each of four shapes, four marks each. Eight marks are the warm-up of the first twin.
IN_THE_CAPTURE = 4 * 2 * 4 + 8 + 4


@pytest.mark.parametrize("name", SETUPS)
def test_a_shape_whose_capture_failed_is_captured_when_it_is_announced_again(name: str) -> None:
    setup = SETUPS[name]
    seen = run_ranks(ffn_faults.capture_again, IN_THE_CAPTURE, setup, world=WORLD, environment=setup.environment)
    for outcome, expected in zip(seen[:SIZE], undisturbed(setup), strict=True):
        assert outcome["failed"]
        assert outcome["twins"] == []
        assert outcome["replays"] == 2
        for part in ("gone on", "second"):
            assert difference(outcome[part], expected) < 1e-4
    natives, twins = [{0: [n, n]} for n in (8, 4, 2, 1)], [{0: [n, n], 1: [n, n]} for n in (4, 2, 1)]
    # Where a capture moves data the FFN side gives up with the attention side. Elsewhere nobody waits: it has its graph already,
    # hears nothing of the failure, and the second time does nothing at all.
    if setup.capture_moves_data:
        failed, again, known = "capture, given up", "replay", natives
    else:
        failed, again, known = "capture", "keep", [*natives, twins[0]]
    for log in seen[SIZE:]:
        captures = [(tokens, done) for kind, tokens, done in log.steps if kind == "capture"]
        first = [*((tokens, "capture") for tokens in natives), (twins[0], failed)]
        # What was captured the first time is not captured again.
        second = [(tokens, again if tokens in known else "capture") for tokens in (*natives, *twins)]
        assert captures == first + second
        assert log.captures == len(natives) + len(twins)
        assert {done for kind, _, done in log.steps if kind == "warm-up"} == {"eager"}
