"""The runner that a plugin would put together from the generated mixins, on vLLM's own instead of an NPU's."""

from __future__ import annotations

from typing import Any

from afd_backports.vllm_v026_mrv2_dbo.host import AFDHost, PlainHost
from afd_backports.vllm_v026_mrv2_dbo.runner import UBatchExecution
from afd_backports.vllm_v026_mrv2_dbo.ubatch_runner import UBatchLifecycle
from vllm.v1.worker.gpu.model_runner import GPUModelRunner


class DboRunner(UBatchLifecycle, UBatchExecution, GPUModelRunner):
    """vLLM's runner with ubatches.

    Attributes:
        host: what takes the plugin's place.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.host: AFDHost = PlainHost()
        super().__init__(*args, **kwargs)

    def make_afd_host(self) -> AFDHost:
        return self.host
