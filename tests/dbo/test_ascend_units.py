"""What is written for vllm-ascend, function by function, on vllm-ascend or its stand-in: who is called, with what, in which order."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import ascend_units
from tests.sim.environments import ascend_or_stand_in
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm


def alone(function: Any) -> Any:
    return run_ranks(function, world=1, environment=ascend_or_stand_in(), timeout=60)[0]


def test_what_a_stage_records_is_kept_as_its_own() -> None:
    seen = alone(ascend_units.recorded)
    assert seen == {
        "before": (0, {0: None}), "stages": 2, "tokens": 4, "workspaces": True,
        **{f"of {stage}": (True,) * 4 for stage in range(2)},
        **{f"kept of {stage}": [{4: []}] * 3 for stage in range(2)},
    }  # fmt: skip


def test_one_context_stands_for_both_stages() -> None:
    seen = alone(ascend_units.merged)
    # Layer by layer, in each stage by stage: as `TwinParams.merged`.
    assert seen["metadata"] == [
        ("b.1.ubatch0", "b of 0"), ("b.1.ubatch1", "b of 1"), ("a.2.ubatch0", "a of 0"), ("a.2.ubatch1", "a of 1"),
    ]  # fmt: skip
    assert seen["slots"] == {"stage": 0}
    assert seen["first"] == {"b.1": "b of 0", "a.2": "a of 0"}
    said = "GraphParamsError: the stages have metadata of different layers: [['a', 'b'], "
    assert seen["others"] == [f"{said}{names}]" for names in (["a"], ["b", "a"], ["a", "c"])]
    assert seen["one of three"] == said.replace("['a', 'b'], ", "['a'], ['a'], ['b']]")
    assert seen["records"].startswith("ValueError: zip()")  # a record too few is no reason to leave others out


def test_vllm_ascend_sees_the_stage_s_context_and_the_graph_s_parameters_while_it_updates() -> None:
    assert alone(ascend_units.in_force) == {
        "context again": True, "update": [(True, "backend", "stream", True, 4, "config")], "in force": True,
        "after None": True, "after KeyError('mine')": True,
    }  # fmt: skip


def test_a_replay_is_updated_after_what_was_issued_before_it() -> None:
    seen = alone(ascend_units.replayed)
    handles = [f"h{layer} of stage {stage}" for layer in range(2) for stage in range(2)]
    layers = [f"layer.{i}.ubatch{stage}" for i in range(2) for stage in range(2)]
    begun = [
        ("update stream waits", "this thread's"), ("replays",), ("updates", "backend", True, layers, 4, "config", {4: handles}),
    ]  # fmt: skip
    given_up = [*[("passes", True)] * 4, ("synchronizes",), ("is lost",)]
    assert seen["well"] == [*begun, ("returns", "output")]
    assert seen["fails"] == [*begun, *given_up, ("ValueError", "mine")]
    assert seen["is interrupted"] == [*begun, *given_up, ("KeyboardInterrupt", "mine")]
    # It may have begun, and wait for updates.
    assert seen["replay fails"] == [begun[0], *given_up, ("ValueError", "in the replay")]
    [(kind, said)] = seen["other layers"]  # before anything is done
    assert kind == "GraphParamsError"
    assert said.endswith("there have to be 1 of each")


def test_graphs_are_made_and_captured_as_vllm_ascend_has_it() -> None:
    assert alone(ascend_units.device) == (
        True,
        [("captures", "graph", {"pool": None, "stream": None}), ("captures", "graph", {"pool": "pool", "stream": "stream"})],
        True,
    )  # fmt: skip


def test_rotary_factors_of_a_stage_begin_where_its_tokens_do() -> None:
    assert alone(ascend_units.rotary_factors) == {
        "block": ([40, 5], [14, 15]), "after None": True, "after ValueError('mine')": True, "written": [0, 1, 2, 3, 40, 5],
        "no MLA": (None, None), "no MLA after": (None, None),
    }  # fmt: skip


def test_a_stage_has_an_attention_state_of_its_own_unless_it_is_captured() -> None:
    seen = alone(ascend_units.metadata)
    fields = ("fields", "batch", "part", seen["part"])
    assert seen["log"] == [
        (*fields, "function"), (*fields, None), ("state", "config", "lengths", 2), ("factors", 3),
    ]  # fmt: skip
    assert seen["control"] == "SilentControl"


def test_a_runner_has_workspaces_for_its_stages() -> None:
    native = ("native", True, "device")
    assert alone(ascend_units.runner) == {
        "on": [native, ("reset",), ("workspaces", "device", 2), "AscendHost"], "off": [native, "AscendHost"],
    }  # fmt: skip


def test_a_graph_manager_keeps_parameters_of_its_own_for_each_twin() -> None:
    seen = alone(ascend_units.graphs)
    assert seen["made"] == [("native", "device", "mode", 1, "runner", [0])]
    assert seen["native"] == seen["again native"] == "native parameters"
    assert seen["captured"] == [
        ("communicator begins",), ("ModelWithContext", "state", "Graphs of two ubatches", True), ("communicator ends",),
    ]  # fmt: skip
    assert seen["before, True"] == ([True], None, False)  # a warm-up records nothing
    assert seen["before, False"] == ([False], 2, True)
    assert seen["nothing recorded"].startswith(
        "GraphParamsError: events, handles and operands of the stages with 2 tokens: [(0"
    )
    assert seen["after"]
    assert seen["released"] == ({}, {})
    assert seen["all released"] == ({}, {}, 0, True)
    assert seen["detached"] == ({}, {}, 0)


def test_a_split_batch_is_replayed_past_the_updates_of_whole_batches() -> None:
    seen = alone(ascend_units.replays)
    assert seen["native"] == seen["single"] == [("vllm-ascend", True), "native"]
    assert seen["split"] == [
        ("parameters", ["first", "second"], {"backend": "backend", "stream": "update stream"}, True), ("vLLM", True), "output",
    ]  # fmt: skip
    assert seen["lost"] == [{}, {}]
