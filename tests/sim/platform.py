"""vLLM's platform for the simulated device."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from vllm.platforms.interface import Platform, PlatformEnum

from tests.sim import device, graphs


class SimMembers:
    """What a platform on the simulated device says: CPU tensors, gloo, streams and graphs of the simulation."""

    device_name = device_type = "cpu"
    dispatch_key = "CPU"
    dist_backend = "gloo"
    simple_compile_backend = "eager"
    device_control_env_var = "SIM_VISIBLE_DEVICES"
    supported_quantization: list[str] = []  # noqa: RUF012 - declared so upstream
    device_module: ModuleType = torch.cuda
    """Torch's module of the device, where a platform finds what it does not define."""

    def __getattr__(self, name: str) -> Any:
        """As a platform of this device would; this one says that it is a CPU."""
        return vars(self.device_module).get(name)

    def graph_pool_handle(self) -> graphs.Pool:
        """The memory pool of graphs."""
        return graphs.graph_pool_handle()

    def current_device(self) -> int:
        """Index of the device."""
        return 0

    def mem_get_info(self, device_id: Any = None) -> tuple[int, int]:
        """Free and total bytes."""
        return device.MEMORY

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        """A name for humans."""
        return "simulation"

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Total bytes."""
        return device.MEMORY[1]

    @classmethod
    def get_current_memory_usage(cls, device: Any = None) -> float:
        """Used bytes."""
        return 0.0

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """There is only one."""

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        """Seed torch."""
        torch.manual_seed(seed)

    @classmethod
    def is_pin_memory_available(cls) -> bool:
        """All memory is the host's; vLLM then also maps host buffers into the device."""
        return True

    @classmethod
    def get_punica_wrapper(cls) -> str:
        """No LoRA."""
        return ""

    @classmethod
    def check_if_supports_dtype(cls, dtype: torch.dtype) -> None:
        """All are supported."""

    @classmethod
    def num_compute_units(cls, device_id: int = 0) -> int:
        """Of no meaning."""
        return 1

    @classmethod
    def support_static_graph_mode(cls) -> bool:
        """Graphs are what the simulation is for."""
        return True

    @classmethod
    def support_hybrid_kv_cache(cls) -> bool:
        """Left to vLLM."""
        return True

    @classmethod
    def import_kernels(cls) -> None:
        """There are none."""

    @classmethod
    def get_static_graph_wrapper_cls(cls) -> str:
        """vLLM's own."""
        return "vllm.compilation.cuda_graph.CUDAGraphWrapper"

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """Collectives over gloo."""
        return "tests.sim.communicator.SimCommunicator"


class SimPlatform(SimMembers, Platform):
    """An out-of-tree platform."""

    _enum = PlatformEnum.OOT

    @classmethod
    def get_attn_backend_cls(cls, *args: Any, **kwargs: Any) -> str:
        """The attention backend."""
        return "tests.sim.attention.SimAttentionBackend"

    @classmethod
    def opaque_attention_op(cls) -> bool:
        """Attention is one operator, as on a GPU and on an NPU."""
        return True

    @classmethod
    def get_pass_manager_cls(cls) -> str:
        """None of vLLM's passes."""
        return "tests.sim.compilation.NoPasses"

    @classmethod
    def check_and_update_config(cls, vllm_config: Any) -> None:
        """Fill in what a platform decides."""
        if vllm_config.parallel_config.worker_cls == "auto":
            vllm_config.parallel_config.worker_cls = "tests.sim.worker.SimWorker"
        if vllm_config.cache_config.block_size is None:
            vllm_config.cache_config.block_size = 16
