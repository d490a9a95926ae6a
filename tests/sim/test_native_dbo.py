"""vLLM 0.30.0's own dual batch overlap on the simulated device: the oracle, and what the simulation notices about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="runs in the environment that tools/vllm_env makes")

from tests.sim import bugs, oracle
from tests.sim.config import Dbo, Graphs
from tests.sim.prompts import DBO, DBO_GRAPHS, GRAPHS, PLAIN, UNEVEN
from tests.sim.ranks import Rank, RankFailed, RankHung, run_ranks
from tests.sim.scenario import Outcome, Scenario, assert_equal, play, play_all
from tests.sim.scheduler import difference
from tests.sim.trace import overlap

pytestmark = pytest.mark.vllm

UNEVEN_DBO = Scenario(UNEVEN, steps=9, dbo=Dbo())
SCENARIOS = {
    "plain": replace(PLAIN, races=True),
    "dbo": replace(DBO, races=True),
    "graphs": replace(GRAPHS, races=True),
    "dbo graphs": replace(DBO_GRAPHS, races=True),
    "chunked": replace(DBO, chunk=4, steps=8),
    "uneven": UNEVEN_DBO,
    "uneven graphs": replace(UNEVEN_DBO, graphs=Graphs((2, 4), "FULL_DECODE_ONLY")),
    "never": replace(DBO, dbo=Dbo(decode=100, prefill=100)),
}
TARGET = {"plain": PLAIN, "chunked": replace(PLAIN, chunk=4, steps=8), "uneven": replace(UNEVEN_DBO, dbo=None)}
"""The same requests without ubatches, for vLLM 0.26.0."""


@pytest.fixture(scope="module")
def native() -> dict[str, list[Outcome]]:
    return oracle.ask(SCENARIOS)


@pytest.fixture(scope="module")
def target() -> dict[str, list[Outcome]]:
    ranks = run_ranks(play_all, TARGET)
    return {name: [outcomes[name] for outcomes in ranks] for name in TARGET}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_oracle_agrees_with_plain_steps_of_the_target(native, target, name):
    assert_equal(native[name], target[name.partition(" ")[0] if name.startswith(("uneven", "chunked")) else "plain"])


def test_stages_take_turns(native):
    for outcome in native["dbo"]:
        assert outcome.ubatches == {0, 1}
        assert overlap(outcome.marks) == 1
        assert len(outcome.marks) == DBO.steps * 2 * 2 * 4, "steps, layers, ubatches, marks of an exchange"


@pytest.mark.parametrize("name", ["plain", "graphs", "never"])
def test_without_ubatches_nothing_overlaps(native, name):
    for outcome in native[name]:
        assert outcome.ubatches == {0}
        assert overlap(outcome.marks) == 0


def test_decode_steps_replay_graphs_of_two_ubatches(native):
    for outcome in native["dbo graphs"]:
        assert {key: count for key, count in outcome.replays.items() if count} == {(2, 2): 5}
        assert overlap(outcome.marks) == 1, "the prefill runs eagerly"
        assert len(outcome.marks) == 16


def test_a_rank_without_requests_is_not_split(native):
    for outcome in native["uneven"]:
        assert outcome.ubatches == {0, 1}
        assert 0 < overlap(outcome.marks) < 1
    for outcome in native["uneven graphs"]:
        assert {key: count for key, count in outcome.replays.items() if count} == {(2, 1): 5}


@pytest.mark.parametrize("name", ["plain", "dbo", "graphs", "dbo graphs"])
def test_no_races_in_steps(native, name):
    assert [outcome.races for outcome in native[name]] == [(), ()]


def test_races_while_capturing(native):
    assert all(outcome.capture_races == () for name in ("plain", "dbo", "graphs") for outcome in native[name])
    # The inputs of a warm-up are filled on one stream and read on another, and nothing orders the two. The values of a
    # warm-up are of no interest, so it does no harm.
    assert all(outcome.capture_races for outcome in native["dbo graphs"])


# ---- injected bugs --------------------------------------------------------------------------------------------


def with_bug(rank: Rank, bug: bugs.Bug, scenario: Scenario) -> Outcome:
    """Play a scenario with a bug in vLLM."""
    with bug(rank.index):
        return play(rank, scenario)


class Buggy:
    """Runs with a bug."""

    def __init__(self, bug: bugs.Bug, plain: list[Outcome]) -> None:
        self.bug, self.plain = bug, plain

    def play(self, scenario: Scenario) -> list[Outcome]:
        return run_ranks(
            with_bug, self.bug, replace(scenario, races=True), environment=oracle.donor_or_skip(), timeout=60
        )

    def worst(self, outcomes: list[Outcome]) -> float:
        return max(difference(one.logits, other.logits) for one, other in zip(outcomes, self.plain, strict=True))


def wrong_logits(buggy: Buggy, scenario: Scenario) -> None:
    """The logits differ, far beyond the tolerance."""
    outcomes = buggy.play(scenario)
    assert buggy.worst(outcomes) > 1
    assert [outcome.races for outcome in outcomes] == [(), ()], "what the race checker does not see"


def wrong_logits_in_graphs(buggy: Buggy) -> None:
    """The logits differ when graphs are replayed, and only then."""
    assert buggy.worst(buggy.play(DBO)) < 1e-4
    wrong_logits(buggy, DBO_GRAPHS)


def wrong_logits_eagerly(buggy: Buggy) -> None:
    """The logits differ."""
    wrong_logits(buggy, DBO)


def a_race(buggy: Buggy) -> None:
    """Here the work is done in program order, so the logits are right; a device need not."""
    outcomes = buggy.play(DBO)
    assert buggy.worst(outcomes) < 1e-4
    assert all(outcome.races for outcome in outcomes)
    with pytest.raises(RuntimeError) as caught:
        buggy.play(DBO_GRAPHS)
    rules = "the capture ends with unjoined work", "waits for an event"
    assert any(rule in str(caught.value.__cause__) for rule in rules)


def no_overlap(buggy: Buggy) -> None:
    """All is right, except that nothing overlaps."""
    outcomes = buggy.play(DBO)
    assert buggy.worst(outcomes) < 1e-4
    assert [overlap(outcome.marks) for outcome in outcomes] == [0, 0]


def no_end(buggy: Buggy) -> None:
    """The ranks wait for different things."""
    with pytest.raises((RankHung, RankFailed, RuntimeError)):
        buggy.play(DBO)


NOTICED: dict[bugs.Bug, Callable[[Buggy], None]] = {
    bugs.untruncated_lengths: wrong_logits_eagerly,
    bugs.shared_buffer: wrong_logits_eagerly,
    bugs.moving_buffer: wrong_logits_in_graphs,
    bugs.wrong_order: wrong_logits_eagerly,
    bugs.unsliced_slots: wrong_logits_eagerly,
    bugs.missing_join: a_race,
    bugs.missing_compute_wait: a_race,
    bugs.no_handoff: no_overlap,
    bugs.lonely_vote: no_overlap,
    bugs.disagreeing_vote: no_end,
}
"""How each bug shows. The bugs of updating graph parameters are injected in `test_npu` and `test_ascend`."""


@pytest.mark.parametrize("bug", NOTICED, ids=lambda bug: bug.__name__)
def test_an_injected_bug_is_noticed(native, bug):
    NOTICED[bug](Buggy(bug, native["plain"]))
