"""The plugin of `examples/afd-plugin` in processes of both roles, as it is installed there: whole runs, and runs that fail."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from tests.dbo.points import OwnError
from tests.sim.ascend import npu_runner, reset_modules
from tests.sim.ascend_config import ENGINE, MLA
from tests.sim.ascend_worker import make_worker
from tests.sim.config import Dbo, make_config
from tests.sim.ranks import Rank
from tests.sim.runner import join_groups, make_runner, scale_weights
from tests.sim.scenario import Outcome, Scenario, play
from tests.sim.scheduler import MiniScheduler

MODEL: Mapping[str, object] = {**MLA, "architectures": ["AfdTinyForCausalLM"], "num_afd_experts": 2}
"""The plugin's model, of the same sizes as that of `tests.sim.ascend_model`."""

AFD: Mapping[str, object] = {"connector": "CAMP2pAFDConnector", "num_attention_ranks": 2}
WORKERS = {"attention": "afd_example.worker.AttentionWorker", "ffn": "afd_example.worker.FFNWorker"}
DBO = Dbo()


@dataclass(frozen=True)
class Log:
    """What an attention rank saw.

    Attributes:
        outcome: tokens, logits, replays.
        raised: whether a flag of the control plane is still raised.
    """

    outcome: Outcome
    raised: bool


Steps = list[tuple[str, int, str]]
"""What an FFN rank did: kinds, numbers of stages, and what was done."""


def with_plugin(scenario: Scenario, folder: Path, role: str = "attention") -> Scenario:
    """A scenario with the plugin's model and configuration. vLLM validates ubatches itself: the plugin has relaxed that."""
    more: dict[str, Any] = {
        **ENGINE,
        "additional_config": {"afd": {**AFD, "role": role, "rendezvous": str(folder)}},
        "data_parallel_size": 2,
        "worker_cls": WORKERS[role],
        "gpu_memory_utilization": 0.5,
    }
    if scenario.dbo is not None:
        more |= {
            "enable_dbo": True,
            "dbo_decode_token_threshold": scenario.dbo.decode,
            "dbo_prefill_token_threshold": scenario.dbo.prefill,
        }
    return replace(scenario, model=MODEL, dbo=None, engine={**scenario.engine, **more})


def plugin_runner(config: Any, device: torch.device) -> Any:
    """The runner of the plugin's worker, which vLLM makes by its name in the configuration."""
    # While it is judged: at run time vLLM and vllm-ascend want communicators for experts, which are on another side.
    with mock.patch.object(config.parallel_config, "enable_expert_parallel", True):
        reset_modules()
        return make_worker(config).model_runner


def make_ffn_worker(place: Rank, folder: Path) -> Any:
    """The worker of an FFN rank, ready to serve; its experts have weights that matter."""
    scenario = with_plugin(Scenario(({}, {})), folder, "ffn")
    config = make_config(MODEL, dp=(place.index, place.size), **scenario.engine)
    join_groups(config, rank=place.index, size=place.size, rendezvous=place.folder / "groups")
    worker = make_worker(config)
    worker.load_model()
    scale_weights(worker.model_runner.model)
    assert worker.get_kv_cache_spec() == {}
    return worker


def serve(place: Rank, folder: Path) -> Steps:
    """An FFN rank from its beginning to the end of the attention side."""
    worker = make_ffn_worker(place, folder)
    worker.compile_or_warm_up_model()
    worker.wait()
    worker.shutdown()
    return list(worker.model_runner.log)


def play_plugin(rank: Rank, scenarios: Mapping[str, Scenario]) -> dict[str, Log] | dict[str, Steps]:
    """Each scenario with the plugin, attention ranks and FFN ranks in processes of their own; then the end of the runners."""
    role, place = rank.within(attention=2, ffn=2)
    folders = {name: rank.folder / "afd" / name for name in scenarios}
    if role == "ffn":
        return {name: serve(place, folder) for name, folder in folders.items()}
    logs = {}
    for name, scenario in scenarios.items():
        runners: list[Any] = []

        def make(config: Any, device: torch.device, runners: list[Any] = runners) -> Any:
            runners.append(plugin_runner(config, device))
            return runners[-1]

        outcome = play(place, with_plugin(scenario, folders[name]), make)
        (runner,) = runners
        connector = runner.connector
        raised = connector.is_warmup or connector.is_graph_capturing or connector.is_graph_replaying
        runner.shutdown()
        logs[name] = Log(outcome, raised)
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

    before = vars(VllmConfig)["__post_init__"]
    scenario = with_plugin(Scenario(({}, {}), dbo=DBO), rank.folder)
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


def disturbed(rank: Rank) -> Any:
    """Each exchange of a step fails, on the attention side; the step is given up on both, and the next one works; the end."""
    role, place = rank.within(attention=2, ffn=2)
    if role == "ffn":
        return serve(place, rank.folder / "afd")
    runner, scheduler = _decoding(place, rank.folder / "afd")
    connector, seen = runner.connector, dict[str, Any](errors=[])
    native = connector.send_attn_output
    for number in range(1, 5):
        calls: list[tuple[int, int]] = []

        def fails(
            hidden_states: torch.Tensor, context: tuple[int, int], number: int = number, calls: Any = calls
        ) -> None:
            calls.append(context)
            if len(calls) == number:
                raise OwnError(f"at exchange {number}")
            native(hidden_states, context)

        connector.send_attn_output = fails
        try:
            scheduler.step()
        except OwnError as error:
            seen["errors"].append(str(error))
        connector.send_attn_output = native
        scheduler.step()
    seen["logits"] = bool(scheduler.outputs["a"])
    runner.shutdown()
    runner.connector.close()
    with contextlib.suppress(_closed()):
        runner.connector.send({})
        seen["open"] = True
    return seen


def ffn_fails(rank: Rank) -> dict[str, Any]:
    """The experts of an FFN rank fail: its worker says so, and its attention rank hears of it at once."""
    from afd_example.connector import StepGivenUp

    role, place = rank.within(attention=2, ffn=2)
    seen: dict[str, Any] = {}
    if role == "ffn":
        worker = make_ffn_worker(place, rank.folder / "afd")
        forward = worker.model_runner.model.forward
        calls: list[int] = []

        def fails(layer: int, x: torch.Tensor) -> Any:
            calls.append(layer)
            if len(calls) == 7:  # of the second step's two layers and two stages
                raise OwnError("experts")
            return forward(layer, x)

        worker.model_runner.model.forward = fails
        worker.compile_or_warm_up_model()
        try:
            worker.wait()
        except RuntimeError as error:
            seen["error"] = str(error.__cause__)
        worker.shutdown()
        return seen
    runner, scheduler = _decoding(place, rank.folder / "afd")
    try:
        scheduler.step()
    except StepGivenUp as error:
        seen["error"] = str(error)
    runner.shutdown()
    return seen


def _decoding(place: Rank, folder: Path) -> tuple[Any, MiniScheduler]:
    """An attention rank whose requests are decoded from the next step on."""
    scenario = with_plugin(Scenario(({}, {}), dbo=DBO), folder)
    config = make_config(MODEL, dp=(place.index, 2), **scenario.engine)
    join_groups(config, rank=place.index, size=2, rendezvous=place.folder / "groups")
    runner = make_runner(config, plugin_runner, blocks=256)
    scheduler = MiniScheduler(runner)
    for name in ("a", "b", "c"):
        scheduler.add(name, [3, 5, 7])
    scheduler.step()
    return runner, scheduler


def _closed() -> type[Exception]:
    from afd_example.connector import ConnectorClosed

    return ConnectorClosed


def not_announced(rank: Rank) -> list[str]:
    """What the FFN side says to an announcement too many or too few: the ends of a connector, without workers."""
    from afd_example import connector
    from afd_example.connector import CAMP2pAFDConnector, FFNEnd, NotAnnounced, Tokens

    connector.PATIENCE = 0.5  # nobody listens to an end that has failed
    step = {0: Tokens(torch.tensor([3, 5]))}
    said = []
    for number in range(5):
        end = FFNEnd(0, 4) if rank.index else CAMP2pAFDConnector(0)
        end.rendezvous(str(rank.folder / str(number)))
        if rank.index:
            try:
                while end.next_step() is not None:
                    end.send_ffn_output(*end.recv_attn_output(0, layer_idx=0))
                said.append("nothing")
            except NotAnnounced as error:
                said.append(str(error))
            end.abort()
        else:
            x = torch.zeros(4 if number == 3 else 3, 4)
            for _ in range((0, 2, 1, 1, 1)[number]):
                end.send(step)
            end.send_attn_output(x, (0, 1 if number == 2 else 0))
            if number == 4:
                assert end.recv_ffn_output(x).shape == x.shape
        end.close()
    return said
