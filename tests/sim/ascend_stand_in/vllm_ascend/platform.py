"""The platform: what goes into each forward context."""

from __future__ import annotations

from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.platforms.interface import Platform, PlatformEnum

_MASK = torch.zeros(1024, dtype=torch.bool)


class NPUPlatform(Platform):
    """Decides little; streams, memory and collectives are the simulation's."""

    _enum = PlatformEnum.OOT
    device_name: str = "npu"
    device_type: str = "npu"
    dispatch_key: str = "PrivateUse1"
    simple_compile_backend: str = "eager"
    supported_quantization: list[str] = []  # noqa: RUF012 - declared so upstream
    device_control_env_var: str = "ASCEND_RT_VISIBLE_DEVICES"
    ray_device_key: str = "NPU"
    ray_noset_device_env_vars: list[str] = []  # noqa: RUF012

    @classmethod
    def check_and_update_config(cls, vllm_config: VllmConfig) -> None:
        """A worker, which nobody makes."""
        if vllm_config.parallel_config.worker_cls == "auto":
            vllm_config.parallel_config.worker_cls = "tests.sim.worker.SimWorker"

    @classmethod
    def get_attn_backend_cls(cls, selected_backend, attn_selector_config, num_heads: int | None = None):
        """Latent attention."""
        if not attn_selector_config.use_mla:
            raise NotImplementedError("the stand-in for vllm-ascend has no dense attention")
        return "vllm_ascend.attention.mla_v1.AscendMLABackend"

    @classmethod
    def set_additional_forward_context(
        cls, attn_metadata: dict[str, Any], vllm_config: VllmConfig, dp_metadata, num_tokens: int = 0,
        num_tokens_across_dp: torch.Tensor | None = None, cudagraph_runtime_mode=None, batch_descriptor=None, ubatch_slices=None,
    ) -> dict[str, Any]:  # fmt: skip
        """Numbers of tokens, and a mask that is a view of one buffer."""
        most = num_tokens if dp_metadata is None else int(dp_metadata.num_tokens_across_dp_cpu.max())
        mask = _MASK[:most]
        mask[:num_tokens], mask[num_tokens:] = True, False
        return {
            "capturing": False,
            "num_tokens": num_tokens,
            "max_tokens_across_dp": most,
            "mc2_mask": mask,
            "is_draft_model": False,
        }
