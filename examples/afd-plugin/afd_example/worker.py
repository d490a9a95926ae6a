"""Workers, as vLLM's configuration takes them: `worker_cls`."""

from __future__ import annotations

import threading
from typing import Any

import torch
from vllm.v1.worker.worker_base import CompilationTimes
from vllm.v1.worker.workspace import init_workspace_manager
from vllm_ascend.worker.worker import NPUWorker

from afd_example.ffn import FFNRunner
from afd_example.runner import PluginRunner


class AttentionWorker(NPUWorker):
    """vllm-ascend's worker with the plugin's runner: `afd_example.worker.AttentionWorker`."""

    def init_device(self) -> None:
        """As vllm-ascend's, with another runner."""
        self.device = self._init_device()
        init_workspace_manager(self.device, 1)  # the runner makes it two with ubatches
        self.model_runner = PluginRunner(self.vllm_config, self.device)


class FFNWorker(NPUWorker):
    """A worker whose steps come from the connector, not from a scheduler: `afd_example.worker.FFNWorker`."""

    def init_device(self) -> None:
        """Without anything of attention."""
        self.device = self._init_device()
        init_workspace_manager(self.device, 1)
        self.model_runner = FFNRunner(self.vllm_config, self.device)
        self._loop = threading.Thread(target=self._serve, name="afd-ffn", daemon=True)
        self._error: BaseException | None = None

    def load_model(self, **options: Any) -> None:
        """The experts."""
        self.model_runner.load_model()

    def get_kv_cache_spec(self) -> dict[str, Any]:
        """There is no KV cache."""
        return {}

    def determine_available_memory(self) -> int:
        """For none."""
        return 0

    def initialize_from_config(self, kv_cache_config: Any) -> None:
        """Nothing to initialise."""

    def compile_or_warm_up_model(self) -> CompilationTimes:
        """The engine is ready: serve. Warm-up and capture are announced as all other steps are."""
        self._loop.start()
        return CompilationTimes(language_model=0.0, encoder=0.0)

    def execute_model(self, scheduler_output: Any) -> Any:
        """No request comes to this side.

        Raises:
            RuntimeError: one has come.
        """
        raise RuntimeError("an FFN rank gets its steps from the connector: send requests to the attention side")

    def check_health(self) -> None:
        """The engine asks.

        Raises:
            RuntimeError: serving has ended with an error.
        """
        if self._error is not None:
            raise RuntimeError("the FFN rank has failed") from self._error

    def wait(self) -> None:
        """Until the attention side has closed the connector.

        Raises:
            RuntimeError: serving has ended with an error.
        """
        self._loop.join()
        self.check_health()

    def _serve(self) -> None:
        try:
            torch.npu.set_device(self.device)  # type: ignore[attr-defined]  # a thread selects it for itself
            self.model_runner.serve()
        except BaseException as error:
            self._error = error
