"""The attention side on an NPU: the classes of `tests.dbo.ffn_attention` on vllm-ascend, or on its stand-in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from unittest import mock

import torch
from afd_backports.vllm_v026_mrv2_dbo.ascend_graphs import AFDModelAclGraphManagerV2
from afd_backports.vllm_v026_mrv2_dbo.ascend_runner import AFDNPUAttentionModelRunnerV2, AscendMetadata
from afd_backports.vllm_v026_mrv2_dbo.host import AFDHost
from vllm import ModelRegistry
from vllm_ascend.worker.v2 import model_runner
from vllm_ascend.worker.v2.aclgraph_utils import ModelAclGraphManager

from tests.dbo.configurations import Settings
from tests.dbo.ffn_attention import AnnouncedGraphs, AttentionMixin, Host, Remote
from tests.sim.ascend import npu_runner
from tests.sim.ascend_config import MLA
from tests.sim.ascend_model import SimMlaForCausalLM
from tests.sim.connector import AttentionEnd

MODEL: Mapping[str, object] = {**MLA, "architectures": ["SimAfdMlaForCausalLM"]}
"""The tiny model with latent attention, without its experts."""


class SimAfdMlaForCausalLM(Remote, SimMlaForCausalLM):
    """The model proxy."""


def register_model() -> None:
    """Tell vLLM of the model proxy."""
    if "SimAfdMlaForCausalLM" not in ModelRegistry.get_supported_archs():
        ModelRegistry.register_model("SimAfdMlaForCausalLM", SimAfdMlaForCausalLM)


class AnnouncedAclManager(AnnouncedGraphs, ModelAclGraphManager):  # type: ignore[misc]
    """vllm-ascend's own graph manager."""


class AnnouncedAclTwins(AnnouncedGraphs, AFDModelAclGraphManagerV2):  # type: ignore[misc]
    """The one with graphs of split batches."""


class NpuAttentionRunner(AttentionMixin, AFDNPUAttentionModelRunnerV2):  # type: ignore[misc]
    """vllm-ascend's runner."""

    factory_owner, native_manager = model_runner, ModelAclGraphManager
    announced_manager, announced_twins = AnnouncedAclManager, AnnouncedAclTwins

    def afd_settings(self, config: Any) -> Settings:
        return Settings(num_attention_ranks=2)

    def afd_models(self) -> Collection[str]:
        return {"SimAfdMlaForCausalLM"}

    def make_afd_host(self) -> AFDHost:
        host = Host(self.connector)
        host.metadata = AscendMetadata(self.vllm_config)
        return host


def attention_runner(config: Any, device: torch.device, end: AttentionEnd) -> Any:
    """A runner of an attention rank; its configuration is accepted."""

    class Runner(NpuAttentionRunner):
        connector = end

    # While it is judged: at run time vLLM and vllm-ascend want communicators for experts, and the experts are elsewhere.
    with mock.patch.object(config.parallel_config, "enable_expert_parallel", True):
        return npu_runner(config, device, Runner)
