"""vLLM's own worker on the simulated device, for runs of the whole engine."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from vllm.config import set_current_vllm_config
from vllm.v1.worker import gpu_worker
from vllm.v1.worker.gpu.model_runner import GPUModelRunner
from vllm.v1.worker.workspace import init_workspace_manager

from tests.sim.runner import scale_weights

gpu_worker.kernel_warmup = lambda worker: None  # it imports kernels


class SimWorker(gpu_worker.Worker):
    """A worker that asks no device about its memory."""

    def init_device(self) -> None:
        """Join the groups and make the model runner."""
        self.device = torch.device("cpu")
        with set_current_vllm_config(self.vllm_config):
            gpu_worker.init_worker_distributed_environment(
                self.vllm_config, self.rank, self.distributed_init_method, self.local_rank, "gloo"
            )
        gpu_worker.set_random_seed(self.model_config.seed)
        init_workspace_manager(self.device, 2)
        self.model_runner = GPUModelRunner(self.vllm_config, self.device)  # type: ignore[assignment]  # V1's by declaration

    def load_model(self, **kwargs: Any) -> None:
        """With weights that matter."""
        super().load_model(**kwargs)
        scale_weights(self.model_runner.model)

    def _maybe_get_memory_pool_context(self, tag: str) -> AbstractContextManager[None]:
        return nullcontext()

    def determine_available_memory(self) -> int:
        """Enough for a few hundred blocks."""
        self.model_runner.profile_run()
        return 4 << 20
