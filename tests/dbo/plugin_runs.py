"""The plugin of `examples/afd-plugin` in the processes of DP ranks, as it is installed there: whole runs, and runs that fail."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import torch

from tests.dbo.points import OwnError
from tests.sim.ascend import npu_runner
from tests.sim.ascend_config import ENGINE, MLA
from tests.sim.config import Dbo
from tests.sim.ranks import Rank
from tests.sim.runner import join_groups, make_runner, scale_weights
from tests.sim.scenario import Outcome, Scenario, play
from tests.sim.scheduler import MiniScheduler

MODEL: Mapping[str, object] = {**MLA, "architectures": ["AfdTinyForCausalLM"], "num_afd_experts": 2}
"""The plugin's model, of the same sizes as that of `tests.sim.ascend_model`."""

AFD: Mapping[str, object] = {"role": "attention", "connector": "CAMP2pAFDConnector", "num_attention_ranks": 2}
DBO = Dbo()


@dataclass(frozen=True)
class Log:
    """What a rank saw.

    Attributes:
        outcome: tokens, logits, replays.
        steps: what was announced: kind, and number of stages.
        missing: what was announced and has not come.
        raised: whether a flag of the control plane is still raised.
        open: whether the connector is open, after the runner's end.
    """

    outcome: Outcome
    steps: list[tuple[str, int]]
    missing: int
    raised: bool
    open: bool


def with_plugin(scenario: Scenario) -> Scenario:
    """A scenario with the plugin's model and configuration. vLLM validates ubatches itself: the plugin has relaxed that."""
    more: dict[str, Any] = {**ENGINE, "additional_config": {"afd": dict(AFD)}, "data_parallel_size": 2}
    if scenario.dbo is not None:
        more |= {
            "enable_dbo": True,
            "dbo_decode_token_threshold": scenario.dbo.decode,
            "dbo_prefill_token_threshold": scenario.dbo.prefill,
        }
    return replace(scenario, model=MODEL, dbo=None, engine={**scenario.engine, **more})


def plugin_runner(config: Any, device: torch.device) -> Any:
    """The plugin's runner; its experts have weights that matter."""
    from afd_example.runner import PluginRunner

    class Runner(PluginRunner):
        def make_experts(self) -> Any:
            experts = super().make_experts()
            scale_weights(experts)
            return experts

    # While it is judged: at run time vLLM and vllm-ascend want communicators for experts, which are on another side.
    with mock.patch.object(config.parallel_config, "enable_expert_parallel", True):
        return npu_runner(config, device, Runner)


def play_plugin(rank: Rank, scenarios: Mapping[str, Scenario]) -> dict[str, Log]:
    """Each scenario with the plugin; then the end of its runner."""
    logs = {}
    for name, scenario in scenarios.items():
        runners: list[Any] = []

        def make(config: Any, device: torch.device, runners: list[Any] = runners) -> Any:
            runners.append(plugin_runner(config, device))
            return runners[-1]

        outcome = play(rank, with_plugin(scenario), make)
        (runner,) = runners
        connector, ffn = runner.connector, runner.connector.ffn
        raised = connector.is_warmup or connector.is_graph_capturing or connector.is_graph_replaying
        steps, missing = list(ffn.steps), len(ffn.missing)
        runner.shutdown()
        logs[name] = Log(outcome, steps, missing, raised, connector.ffn is not None)
    return logs


def play_whole(rank: Rank, scenarios: Mapping[str, Scenario]) -> dict[str, Outcome]:
    """The same requests in single batches of vllm-ascend's own runner; the experts are in the model."""
    return {
        name: play(
            rank, replace(scenario, model=MLA, dbo=None, graphs=None, engine={**scenario.engine, **ENGINE}), npu_runner
        )
        for name, scenario in scenarios.items()
    }


def processes(rank: Rank) -> dict[str, Any]:
    """What the entry point has done in this process, when a configuration was made."""
    from vllm import ModelRegistry
    from vllm.config import VllmConfig

    from tests.sim.config import make_config

    before = vars(VllmConfig)["__post_init__"]
    scenario = with_plugin(Scenario(({}, {}), dbo=DBO))
    config = make_config(MODEL, dp=(rank.index, 2), **scenario.engine)
    seen: dict[str, Any] = {
        "ubatches": config.parallel_config.num_ubatches,
        "registered": "AfdTinyForCausalLM" in ModelRegistry.get_supported_archs(),
        "relaxed": vars(VllmConfig)["__post_init__"] is not before,
    }
    without = {key: value for key, value in scenario.engine.items() if key != "additional_config"}
    try:
        seen["without AFD"] = make_config(MODEL, **without).parallel_config.num_ubatches
    except ValueError as error:
        seen["without AFD"] = str(error)
    try:
        make_config(MODEL, **{**scenario.engine, "additional_config": {"afd": {"rolle": "attention"}}})
    except ValueError as error:
        seen["wrong"] = str(error)
    return seen


def disturbed(rank: Rank) -> dict[str, Any]:
    """A connector that fails in each stage of a step: the step is given up, and the next one works; a capture that fails; the end."""
    from afd_example.connector import CAMP2pAFDConnector, ConnectorClosed

    from tests.sim.config import make_config

    scenario = with_plugin(Scenario(({}, {}), dbo=DBO))
    config = make_config(MODEL, dp=(rank.index, 2), **scenario.engine)
    join_groups(config, rank=rank.index, size=2, rendezvous=rank.folder / "groups")
    runner = make_runner(config, plugin_runner, blocks=256)
    scheduler = MiniScheduler(runner)
    for name in ("a", "b", "c"):
        scheduler.add(name, [3, 5, 7])
    scheduler.step()
    ffn, seen = runner.connector.ffn, dict[str, Any](errors=[], kinds=[])
    experts = ffn.experts
    for number in range(1, 5):
        calls: list[int] = []

        def fails(layer: int, x: torch.Tensor, number: int = number, calls: list[int] = calls) -> torch.Tensor:
            calls.append(layer)
            if len(calls) == number:
                raise OwnError(f"at exchange {number}")
            result: torch.Tensor = experts(layer, x)
            return result

        ffn.experts = fails
        try:
            scheduler.step()
        except OwnError as error:
            seen["errors"].append((str(error), len(ffn.missing)))
        ffn.experts = experts
        scheduler.step()
        seen["kinds"].append(ffn.steps[-1])
    seen["missing"] = len(ffn.missing)
    runner.shutdown()
    runner.connector.close()
    with contextlib.suppress(ConnectorClosed):
        runner.connector.send({})
        seen["open"] = True
    with contextlib.suppress(ConnectorClosed):
        CAMP2pAFDConnector(0).send({})
        seen["open"] = True
    return seen


def not_announced(rank: Rank) -> dict[str, str]:
    """What the other side says to an announcement too many or too few."""
    from afd_example.connector import CAMP2pAFDConnector, NotAnnounced
    from vllm.forward_context import DPMetadata

    connector = CAMP2pAFDConnector(0)
    connector.rendezvous(lambda layer, x: x + layer, 2)
    x, metadata = torch.zeros(3, 4), DPMetadata(torch.tensor([3, 5], dtype=torch.int32))

    def exchange(layer: int, stage: int, hidden_states: torch.Tensor = x) -> None:
        connector.send_attn_output(hidden_states, (layer, stage))
        connector.recv_ffn_output(hidden_states, stage)

    said = {}
    for name, step in {
        "not announced": lambda: exchange(0, 0),
        "twice": lambda: [connector.send({0: metadata}) for _ in range(2)],
        "another stage": lambda: exchange(0, 1),
        "too many tokens": lambda: exchange(0, 0, torch.zeros(4, 4)),
        "again": lambda: [exchange(0, 0), exchange(0, 0)],
    }.items():
        try:
            step()
        except NotAnnounced as error:
            said[name] = str(error)
    exchange(1, 0)
    connector.send({0: metadata})
    connector.abort()
    connector.send({0: metadata, 1: metadata})
    return said
