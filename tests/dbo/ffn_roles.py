"""Attention ranks and FFN ranks, in processes of their own: whole runs, and runs that are disturbed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tests.sim.ascend_config import ENGINE, MLA
from tests.sim.config import MOE, make_config
from tests.sim.environments import VLLM, Environment, ascend_or_stand_in
from tests.sim.ranks import Rank
from tests.sim.runner import join_groups
from tests.sim.scenario import Outcome, Scenario, play

SIZE = 2
"""Ranks of each role."""

WORLD = 2 * SIZE


@dataclass
class FFNLog:
    """What an FFN rank did.

    Attributes:
        steps: kind as announced, tokens of all ranks by stage, what was done.
        captures: number of graphs.
        replays: per tokens of all ranks by stage, how often its graph was replayed.
    """

    steps: list[tuple[str, dict[int, list[int]], str]] = field(default_factory=list)
    captures: int = 0
    replays: dict[tuple[tuple[int, tuple[int, ...]], ...], int] = field(default_factory=dict)


@dataclass(frozen=True)
class AttentionLog:
    """What an attention rank saw.

    Attributes:
        outcome: tokens, logits, marks, replays.
        sent: what it announced.
        raised: whether a flag is still raised.
        parameters: names of the experts' parameters that it holds.
    """

    outcome: Outcome
    sent: list[tuple[str, dict[int, list[int]]]]
    raised: bool
    parameters: list[str]


def ends(rank: Rank, **more: Any) -> tuple[str, Rank, Any]:
    """The role of a rank, its place in it, and its end of the connector."""
    from tests.sim.connector import AttentionEnd, FFNEnd

    role, place = rank.within(attention=SIZE, ffn=SIZE)
    common: dict[str, Any] = {"index": place.index, "size": SIZE, "layers": MOE["num_hidden_layers"], **more}
    if role == "attention":
        return role, place, AttentionEnd(rank.folder, **common)
    common["hidden"] = MOE["hidden_size"]
    return role, place, FFNEnd(rank.folder, **common)


@dataclass(frozen=True)
class Setup:
    """What all ranks of a run are.

    Attributes:
        npu: whether they run on vllm-ascend, or its stand-in.
        capture_moves_data: whether the connector moves hidden states while a graph is captured.
    """

    npu: bool = False
    capture_moves_data: bool = True

    @property
    def environment(self) -> Environment:
        """What the ranks run in."""
        return ascend_or_stand_in() if self.npu else VLLM


GPU = Setup()

SETUPS = {
    "vLLM": GPU,
    "vLLM, captures move no data": Setup(capture_moves_data=False),
    "an NPU": Setup(npu=True, capture_moves_data=False),
}
"""vLLM's own runner, and vllm-ascend's or that of its stand-in, whose connector is the device's."""


def make_ffn(place: Rank, connector: Any, setup: Setup = GPU) -> Any:
    """The runner of an FFN rank."""
    from tests.dbo.ffn_side import FFNRunner

    config = (
        make_config(MLA, dp=(place.index, place.size), **ENGINE)
        if setup.npu
        else make_config(MOE, dp=(place.index, place.size))
    )
    join_groups(config, rank=place.index, size=place.size, rendezvous=place.folder / "groups")
    return FFNRunner(config, connector, setup.npu)


def attention_runner(end: Any, setup: Setup = GPU) -> Any:
    """Makes an attention rank's runner from configuration and device."""
    if setup.npu:
        from tests.dbo import ffn_npu

        return partial(ffn_npu.attention_runner, end=end)
    from tests.dbo.ffn_attention import AttentionRunner

    class Runner(AttentionRunner):
        connector = end

    return Runner


def remote_model(setup: Setup) -> dict[str, Any]:
    """The model of an attention rank, and engine arguments that it needs."""
    if setup.npu:
        from tests.dbo import ffn_npu

        ffn_npu.register_model()
        return {"model": ffn_npu.MODEL, "engine": ENGINE}
    from tests.dbo import ffn_attention

    ffn_attention.register_model()
    return {"model": ffn_attention.MODEL}


def play_apart(rank: Rank, scenarios: Mapping[str, Scenario], setup: Setup = GPU) -> dict[str, Any]:
    """Scenarios of the attention ranks, one after the other; an `AttentionLog` or an `FFNLog` of each."""
    role, place, end = ends(rank, capture_moves_data=setup.capture_moves_data)
    if role == "ffn":
        return {name: make_ffn(place, end, setup).serve() for name in scenarios}
    model = remote_model(setup)
    logs = {}
    for name, scenario in scenarios.items():
        end.sent.clear()
        runners: list[Any] = []

        def make(config: Any, device: Any, runners: list[Any] = runners) -> Any:
            runners.append(attention_runner(end, setup)(config, device))
            return runners[-1]

        outcome = play(place, replace(scenario, **model), make)
        sent = [(payload.kind, payload.tokens) for payload in end.sent]
        names = [name for name, _ in runners[0].model.named_parameters() if "experts" in name]
        logs[name] = AttentionLog(outcome, sent, end.raised, names)
        end.end()
    return logs


def play_together(rank: Rank, scenarios: Mapping[str, Scenario], setup: Setup = GPU) -> dict[str, Outcome]:
    """The requests of all ranks on one rank, with the native runner, in single batches; the experts are in the process."""
    merged, model = {}, {"model": MLA} if setup.npu else {}
    runner: Any = None
    if setup.npu:
        from tests.sim.ascend import npu_runner as runner
    for name, scenario in scenarios.items():
        prompts = {request: prompt for part in scenario.prompts for request, prompt in part.items()}
        engine = {**(ENGINE if setup.npu else {}), "max_num_seqs": len(prompts)}
        single: dict[str, Any] = {
            "prompts": (prompts,),
            "dbo": None,
            "graphs": None,
            "races": False,
            "engine": engine,
            **model,
        }
        merged[name] = play(rank, replace(scenario, **single), runner)
    return merged
