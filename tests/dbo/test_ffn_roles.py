"""Two attention ranks and two FFN ranks: the same outputs as with the experts in the process; the FFN side does what it is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import ffn_roles
from tests.dbo.ffn_roles import SETUPS, SIZE, WORLD, AttentionLog, FFNLog, Setup
from tests.dbo.graphs import DBO, GRAPHS
from tests.sim.ranks import run_ranks
from tests.sim.scenario import Outcome, Prompt, Scenario
from tests.sim.scheduler import difference
from tests.sim.trace import Mark, overlap

pytestmark = pytest.mark.vllm

REQUESTS = (
    {"a": Prompt((3, 5, 7, 9, 11), 7), "d": Prompt((8, 9), 5), "e": Prompt(tuple(range(21, 32)), 5)},
    {"b": Prompt(tuple(range(10, 31)), 9), "c": Prompt((40, 41), 5), "f": Prompt((22, 23, 24), 9), "g": Prompt((50, 3, 1, 60), 3, step=3)},
)  # fmt: skip
"""A prefill; decodes, evenly; a prefill on one rank, with decodes; decodes, unevenly; in the end rank 0 is idle."""

MANY = (
    {f"{i}": Prompt((3 + i, 7), 4) for i in range(5)},
    {f"{i}": Prompt((40 - i, 9), 4 if i < 9 else 3) for i in range(5, 12)},
)  # fmt: skip
"""A prefill; decodes of 5 and 7 requests, twice; then of 5 and 4, of which the second half would be padding alone."""

OFF = Scenario(REQUESTS, steps=9)
PADDED = "graphs of ubatches, padded"
SCENARIOS = {
    "single batches": OFF,
    "ubatches": replace(OFF, dbo=DBO, races=True),
    "graphs": replace(OFF, graphs=GRAPHS),
    "graphs of ubatches": replace(OFF, dbo=DBO, graphs=GRAPHS, races=True),
    PADDED: Scenario(MANY, steps=4, dbo=DBO, graphs=GRAPHS, races=True),
}

Tokens = dict[int, list[int]]


def whole(*tokens: int) -> Tokens:
    return {0: list(tokens)}


def split(one: int, other: int) -> Tokens:
    return {0: [one, one], 1: [other, other]}  # both ranks are padded to the larger one


EXPECTED: dict[str, list[tuple[str, Tokens]]] = {
    "single batches": [
        ("eager", whole(18, 26)), ("eager", whole(3, 3)), ("eager", whole(3, 3)), ("eager", whole(3, 7)), ("eager", whole(3, 4)),
        ("eager", whole(1, 3)), *[("eager", whole(1, 2))] * 3,
    ],
    "ubatches": [
        ("eager", split(13, 13)), ("eager", split(1, 2)), ("eager", split(1, 2)), ("eager", whole(3, 7)), ("eager", split(2, 2)),
        ("eager", whole(1, 3)), *[("eager", whole(1, 2))] * 3,
    ],
    "graphs": [
        ("eager", whole(18, 26)), ("replay", whole(4, 4)), ("replay", whole(4, 4)), ("eager", whole(3, 7)), ("replay", whole(4, 4)),
        ("replay", whole(4, 4)), *[("replay", whole(2, 2))] * 3,
    ],
    "graphs of ubatches": [
        ("eager", split(13, 13)), ("replay", split(2, 2)), ("replay", split(2, 2)), ("eager", whole(3, 7)), ("replay", split(2, 2)),
        ("replay", whole(4, 4)), *[("replay", whole(2, 2))] * 3,
    ],
    PADDED: [("eager", split(7, 7)), *[("replay", split(4, 4))] * 2, ("replay", whole(8, 8))],
}  # fmt: skip
"""The steps, as they are announced."""

_NATIVES, _TWINS = [whole(n, n) for n in (8, 4, 2, 1)], [split(n, n) for n in (4, 2, 1)]

CAPTURED = {
    "single batches": [],
    "ubatches": [],
    "graphs": _NATIVES,
    "graphs of ubatches": [*_NATIVES, *_TWINS],
    PADDED: [*_NATIVES, *_TWINS],
}
"""The shapes that are captured before, in order."""

names = pytest.mark.parametrize("name", SCENARIOS)


@pytest.fixture(scope="module", params=SETUPS)
def setup(request: pytest.FixtureRequest) -> Setup:
    return SETUPS[request.param]


@pytest.fixture(scope="module")
def logs(setup: Setup) -> list[dict[str, Any]]:
    return run_ranks(ffn_roles.play_apart, SCENARIOS, setup, world=WORLD, environment=setup.environment)


@pytest.fixture(scope="module")
def together(setup: Setup) -> dict[str, Outcome]:
    different = {name: SCENARIOS[name] for name in ("single batches", PADDED)}
    return run_ranks(ffn_roles.play_together, different, setup, world=1, environment=setup.environment)[0]


def attention(logs: list[dict[str, Any]], name: str) -> list[AttentionLog]:
    return [log[name] for log in logs[:SIZE]]


def ffn(logs: list[dict[str, Any]], name: str) -> list[FFNLog]:
    return [log[name] for log in logs[SIZE:]]


@names
def test_outputs_are_those_of_experts_in_the_process(logs, together: dict[str, Outcome], name: str) -> None:
    seen, expected = attention(logs, name), together[name if name in together else "single batches"]
    assert {request: tokens for log in seen for request, tokens in log.outcome.tokens.items()} == expected.tokens
    assert all(expected.tokens.values())
    logits = {place: value for log in seen for place, value in log.outcome.logits.items()}
    assert difference(logits, expected.logits) < 1e-4


@names
def test_the_experts_are_on_the_ffn_ranks_only(logs, name: str) -> None:
    for log in attention(logs, name):
        assert log.parameters == []
        assert {mark.step for mark in (*log.outcome.marks, *log.outcome.capture_marks)} == {"dispatch", "combine"}


@names
def test_every_step_is_announced_first_and_read_as_it_was_announced(logs, name: str) -> None:
    captures = [(kind, tokens) for tokens in CAPTURED[name] for kind in ("warm-up", "capture")]
    for sender, receiver in zip(attention(logs, name), ffn(logs, name), strict=True):
        assert sender.sent == captures + EXPECTED[name]
        assert [(kind, tokens) for kind, tokens, _ in receiver.steps] == sender.sent
        assert not sender.raised


@names
def test_the_ffn_side_does_what_it_is_told(logs, name: str) -> None:
    done = {"eager": "eager", "warm-up": "eager", "capture": "capture", "replay": "replay"}
    for log in ffn(logs, name):
        assert [action for _, _, action in log.steps] == [done[kind] for kind, _, _ in log.steps]


@names
def test_graphs_of_both_sides_are_captured_once_and_replayed_together(logs, name: str) -> None:
    announced = [key(tokens) for kind, tokens in EXPECTED[name] if kind == "replay"]
    expected = {key(tokens): announced.count(key(tokens)) for tokens in CAPTURED[name]}
    for log in ffn(logs, name):
        assert log.captures == len(CAPTURED[name])
        assert log.replays == expected
    for seen in attention(logs, name):
        replays = {
            (sum(stage[0] for stage in tokens.values()), len(tokens)): count for tokens, count in counted(expected)
        }
        assert seen.outcome.replays == replays


def key(tokens: Tokens) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return tuple((stage, tuple(ranks)) for stage, ranks in sorted(tokens.items()))


def counted(expected: dict[Any, int]) -> list[tuple[Tokens, int]]:
    return [({stage: list(ranks) for stage, ranks in shape}, count) for shape, count in expected.items()]


def test_replays_run_no_python_of_the_model(logs) -> None:
    for log in attention(logs, "graphs of ubatches"):
        # A prefill in two stages and one in a single batch; two layers, two marks each.
        assert len(log.outcome.marks) == 8 + 4


def test_one_stage_sends_while_the_other_one_is_away(logs) -> None:
    steps = [Mark(stage, layer, step) for layer, stage, step in [
        (0, 0, "dispatch"), (0, 1, "dispatch"), (0, 0, "combine"), (1, 0, "dispatch"), (0, 1, "combine"), (1, 1, "dispatch"),
        (1, 0, "combine"), (1, 1, "combine"),
    ]]  # fmt: skip
    for log in attention(logs, "ubatches"):
        assert list(log.outcome.marks[:8]) == steps
    # Away: from when a layer is sent until it is received, the other stage has its turn.
    for log in attention(logs, "ubatches"):
        sent = [replace(mark, step="compute") if mark.step == "dispatch" else mark for mark in log.outcome.marks[:24]]
        assert overlap(sent) == 1.0


@pytest.mark.parametrize("name", [name for name, scenario in SCENARIOS.items() if scenario.races])
def test_there_are_no_races(logs, name: str) -> None:
    for log in attention(logs, name):
        assert (*log.outcome.races, *log.outcome.capture_races) == ()
