"""The model runner of an attention rank, as a worker makes it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Any

import torch
from afd_backports.vllm_v026_mrv2_dbo import scopes
from afd_backports.vllm_v026_mrv2_dbo.ascend_graphs import AFDModelAclGraphManagerV2
from afd_backports.vllm_v026_mrv2_dbo.ascend_runner import AFDNPUAttentionModelRunnerV2
from afd_backports.vllm_v026_mrv2_dbo.host import AFDHost
from afd_backports.vllm_v026_mrv2_dbo.ubatching import current_stage
from vllm.forward_context import DPMetadata, get_forward_context
from vllm_ascend.worker.v2 import model_runner
from vllm_ascend.worker.v2.aclgraph_utils import ModelAclGraphManager

from afd_example import ARCHITECTURE
from afd_example.connector import CAMP2pAFDConnector
from afd_example.host import PluginHost
from afd_example.settings import Settings, parse

# ---- single batches are the plugin's to announce: native graphs here, all else where the model is called ----------


class Announced:
    """Mixin for a graph manager.

    Attributes:
        connector: announces; set when there is a graph manager.
        capturing: whether graphs are captured at the time.
    """

    connector: CAMP2pAFDConnector
    dp_size: int
    capturing = False

    def capture(self, *args: Any, **kwargs: Any) -> None:
        """Natively; what the model announces meanwhile is a warm-up or a capture."""
        native: Any = super()
        self.capturing = True
        try:
            native.capture(*args, **kwargs)
        finally:
            self.capturing = False

    def run_fullgraph(self, desc: Any) -> Any:
        """A graph of a single batch is announced; that of a split one by the generated code, where it is replayed.

        With ubatches in the configuration both come as an `AFDBatchExecutionDescriptor`: its number of ubatches tells.
        """
        native: Any = super()
        if vars(desc).get("num_ubatches", 1) > 1:
            return native.run_fullgraph(desc)
        with scopes.replaying(self.connector):
            self.connector.send({0: DPMetadata(torch.full((self.dp_size,), desc.num_tokens, dtype=torch.int32))})
            return native.run_fullgraph(desc)


class AnnouncedUBatchManager(Announced, AFDModelAclGraphManagerV2):
    """With graphs of split batches."""


class AnnouncedNativeManager(Announced, ModelAclGraphManager):
    """vllm-ascend's own, when there are no ubatches in the configuration."""


class PluginRunner(AFDNPUAttentionModelRunnerV2):
    """vllm-ascend's runner with ubatches and a connector.

    Attributes:
        connector: both planes.
    """

    def __init__(self, vllm_config: Any, device: torch.device) -> None:
        super().__init__(vllm_config, device)
        self.connector = CAMP2pAFDConnector(vllm_config.parallel_config.data_parallel_rank)

    # ---- what the generated runner asks for ----

    def afd_settings(self, config: Any) -> Settings | None:
        """The AFD part of the configuration."""
        return parse(config)

    def afd_models(self) -> Collection[str]:
        """Architectures that there is a proxy for."""
        return {ARCHITECTURE}

    def make_afd_host(self) -> AFDHost:
        """Once, when the KV cache is there."""
        return PluginHost(self.vllm_config, self.connector)

    def graph_manager_scope(self) -> AbstractContextManager[None]:
        """Let the native runner make the graph manager that announces."""
        return scopes.graph_manager_factory(model_runner, ModelAclGraphManager, AnnouncedUBatchManager)

    # ---- life cycle of the connector ----

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        """Load, then meet the FFN side."""
        super().load_model(*args, **kwargs)
        settings = parse(self.vllm_config)
        assert settings is not None
        self.connector.rendezvous(settings.rendezvous)
        self.model.connect(self.connector)
        self.model.register_forward_pre_hook(self._announce)

    def initialize_kv_cache(self, *args: Any, **kwargs: Any) -> None:
        """The generated runner enters the scope above; without ubatches it leaves the native graph manager alone."""
        if self.parallel_config.use_ubatching:
            super().initialize_kv_cache(*args, **kwargs)
        else:
            with scopes.graph_manager_factory(model_runner, ModelAclGraphManager, AnnouncedNativeManager):
                super().initialize_kv_cache(*args, **kwargs)
        if self.cudagraph_manager is not None:
            self.cudagraph_manager.connector = self.connector

    def execute_model(self, *args: Any, **kwargs: Any) -> Any:
        """A step that fails is given up on the FFN side, too."""
        try:
            return super().execute_model(*args, **kwargs)
        except BaseException:
            self.connector.abort()
            raise

    def capture_model(self, *args: Any, **kwargs: Any) -> Any:
        """The same for a capture."""
        try:
            return super().capture_model(*args, **kwargs)
        except BaseException:
            self.connector.abort()
            raise

    def shutdown(self) -> None:
        """The FFN side is let go, whatever happens."""
        try:
            super().shutdown()
        finally:
            self.connector.close()

    # ---- announcements ----

    def _announce(self, *args: Any) -> None:
        """Tell the FFN side of a single batch, before the model runs; of a split one it has been told."""
        context = get_forward_context()
        if context.ubatch_slices is not None or current_stage() is not None:
            return
        if self.cudagraph_manager is not None and self.cudagraph_manager.capturing:
            with scopes.capturing(self.connector, not torch.npu.is_current_stream_capturing()):  # type: ignore[attr-defined]
                self.connector.send({0: context.dp_metadata})
        else:
            self.connector.send({0: context.dp_metadata})
