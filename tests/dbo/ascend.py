"""The generated runner on vllm-ascend, in the processes of DP ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any
from unittest import mock

import torch

from tests.dbo.configurations import Settings
from tests.sim.ascend import npu_runner
from tests.sim.ranks import Rank
from tests.sim.scenario import Outcome, Scenario, play

MODELS = ("SimMoEForCausalLM",)


def runner_class() -> type:
    """The runner that a plugin would derive from the generated one."""
    from afd_backports.vllm_v026_mrv2_dbo.ascend_runner import AFDNPUAttentionModelRunnerV2

    class Runner(AFDNPUAttentionModelRunnerV2):
        """As a plugin's."""

        def afd_settings(self, config: Any) -> Settings:
            return Settings(num_attention_ranks=2)

        def afd_models(self) -> Collection[str]:
            return MODELS

    return Runner


def dbo_runner(config: Any, device: torch.device) -> Any:
    """A runner with ubatches, from a configuration that is accepted."""
    # While it is judged: at run time vLLM and vllm-ascend want communicators for experts, and the tiny model has its own.
    with mock.patch.object(config.parallel_config, "enable_expert_parallel", True):
        return npu_runner(config, device, runner_class())


def unvalidated(config: Any, device: torch.device) -> Any:
    """The same for a configuration that is not accepted: dense attention with graphs, which happens to work here."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_runner, validation

    assert issubclass(ascend_runner.AFDNPUAttentionModelRunnerV2, validation.AFDValidation)
    with mock.patch.object(validation, "validate"):
        return dbo_runner(config, device)


def play_off_and_on(
    rank: Rank, scenarios: Mapping[str, Scenario], runner: Any = dbo_runner
) -> dict[str, tuple[Outcome, Outcome]]:
    """Each scenario with vllm-ascend's own runner and single batches, and with the generated one and ubatches."""
    return {
        name: (play(rank, dataclasses.replace(scenario, dbo=None), npu_runner), play(rank, scenario, runner))
        for name, scenario in scenarios.items()
    }
