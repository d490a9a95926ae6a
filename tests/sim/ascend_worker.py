"""Workers of vllm-ascend on the simulated NPU, made as vLLM's executors make them: by the name in the configuration."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from typing import Any

import torch

from tests.sim.ascend import module

WORKER = "vllm_ascend.worker.worker"
SOC = 220
"""The number of a device that vllm-ascend takes for an A2."""


def make_worker(config: Any) -> Any:
    """The worker that `worker_cls` names, with its device; the groups have been joined.

    Args:
        config: names a subclass of vllm-ascend's worker, or of what stands in for it where the stand-in for vllm-ascend has none.
    """
    from vllm.config import set_current_vllm_config
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    _install()
    arguments = {
        "vllm_config": config,
        "local_rank": 0,
        "rank": 0,
        "distributed_init_method": "",
        "is_driver_worker": True,
        "shared_worker_lock": threading.Lock(),
    }
    wrapper = WorkerWrapperBase(0, 0)
    with set_current_vllm_config(config):
        wrapper.init_worker([arguments])
        wrapper.init_device()
    return wrapper.worker


def _install() -> None:
    if WORKER in sys.modules:
        return
    if importlib.util.find_spec(WORKER) is None:
        module(WORKER, NPUWorker=_stand_in())
        return
    npu = vars(sys.modules["torch.npu"])
    npu.update(device_count=lambda: 2, is_available=lambda: True, get_soc_version=lambda: SOC)
    module("torch_npu.profiler.dynamic_profile")
    importlib.import_module("vllm_ascend.device_allocator")
    module("vllm_ascend.device_allocator.camem", CaMemAllocator=None)  # memory of the device that sleeps
    module("vllm_ascend.worker.model_runner_v1", NPUModelRunner=None)  # asks for packages that are not here
    worker: Any = importlib.import_module(WORKER).NPUWorker
    worker._init_worker_distributed_environment = lambda self: None  # over HCCL


def _stand_in() -> type:
    from vllm.v1.worker.worker_base import WorkerBase

    class NPUWorker(WorkerBase):  # type: ignore[misc]
        """As much of a worker as a plugin derives from."""

        def _init_device(self) -> torch.device:
            return torch.device("npu:0")

        def shutdown(self) -> None:
            """The runner's."""
            self.model_runner.shutdown()

    return NPUWorker
