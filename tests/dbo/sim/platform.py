"""vLLM's platform for the simulated device."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from vllm.platforms.interface import Platform, PlatformEnum


class SimPlatform(Platform):
    """An out-of-tree platform on the CPU."""

    _enum = PlatformEnum.OOT
    device_name = "cpu"
    device_type = "cpu"
    dispatch_key = "CPU"
    dist_backend = "gloo"
    simple_compile_backend = "eager"
    device_control_env_var = "SIM_VISIBLE_DEVICES"
    supported_quantization: ClassVar[list[str]] = []

    def current_stream(self, *args: Any) -> Any:
        return torch.cuda.current_stream()

    def graph_pool_handle(self) -> Any:
        return (0, 0)

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return "sim"

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        return 16 << 30

    @classmethod
    def get_current_memory_usage(cls, device: Any = None) -> float:
        return 0.0

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        torch.manual_seed(seed)

    @classmethod
    def is_pin_memory_available(cls) -> bool:
        return True  # pinning does nothing; it also turns unified memory on

    @classmethod
    def get_attn_backend_cls(cls, *args: Any, **kwargs: Any) -> str:
        return "tests.dbo.sim.attention.SimAttentionBackend"

    @classmethod
    def get_punica_wrapper(cls) -> str:
        return ""

    @classmethod
    def check_if_supports_dtype(cls, dtype: torch.dtype) -> None:
        pass

    @classmethod
    def num_compute_units(cls, device_id: int = 0) -> int:
        return 1

    @classmethod
    def support_hybrid_kv_cache(cls) -> bool:
        return True

    @classmethod
    def import_kernels(cls) -> None:
        pass

    @classmethod
    def check_and_update_config(cls, vllm_config: Any) -> None:
        vllm_config.parallel_config.worker_cls = "none"
        if vllm_config.cache_config.block_size is None:
            vllm_config.cache_config.block_size = 16
