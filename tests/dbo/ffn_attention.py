"""The attention side of a model whose experts live on FFN ranks: as much of a plugin as the generated modules need."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, cast

import torch
from afd_backports.vllm_v026_mrv2_dbo import scopes
from afd_backports.vllm_v026_mrv2_dbo.graph_manager import UBatchModelCudaGraphManager
from afd_backports.vllm_v026_mrv2_dbo.host import AFDHost, PlainMetadata
from afd_backports.vllm_v026_mrv2_dbo.ubatching import current_stage, hand_over
from torch import nn
from vllm import ModelRegistry
from vllm.forward_context import DPMetadata, get_forward_context
from vllm.platforms import current_platform
from vllm.v1.worker.gpu import model_runner
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor, ModelCudaGraphManager

from tests.dbo.runners import DboRunner
from tests.sim.config import MOE
from tests.sim.connector import AttentionEnd, Transfer
from tests.sim.model import SimMoEForCausalLM
from tests.sim.trace import TRACE, Mark

MODEL: Mapping[str, object] = {**MOE, "architectures": ["SimAfdForCausalLM"]}
"""The tiny model without its experts."""


class RemoteExperts(nn.Module):
    """Stands for the experts of a layer: sends, makes way for the other stage, receives."""

    connector: AttentionEnd

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the experts make of some tokens."""
        stage = current_stage() or 0
        TRACE.add(Mark(stage, self.layer, "dispatch"))
        self.connector.send_attn_output(x, Transfer(self.layer, stage))
        hand_over()
        TRACE.add(Mark(stage, self.layer, "combine"))
        return self.connector.recv_ffn_output(x, stage)


class Remote(nn.Module):
    """Mixin for a model: the experts of its layers are elsewhere."""

    layers: nn.ModuleList

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        for number, layer in enumerate(self.layers):
            layer.experts = RemoteExperts(number)

    def connect(self, connector: AttentionEnd) -> None:
        """Use a connector."""
        for module in self.modules():
            if isinstance(module, RemoteExperts):
                module.connector = connector


class SimAfdForCausalLM(Remote, SimMoEForCausalLM):
    """The model proxy."""


def register_model() -> None:
    """Tell vLLM of the model proxy."""
    if "SimAfdForCausalLM" not in ModelRegistry.get_supported_archs():
        ModelRegistry.register_model("SimAfdForCausalLM", SimAfdForCausalLM)


# ---- single batches are the plugin's to announce --------------------------------------------------------------


class AnnouncedGraphs:
    """Mixin for a graph manager: native graphs are announced, too.

    Attributes:
        connector: announces.
        dp_size: number of DP ranks; vLLM's.
        capturing: whether graphs are captured at the time.
    """

    connector: AttentionEnd
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

    def run_fullgraph(self, desc: BatchExecutionDescriptor) -> Any:
        """A native graph is announced here, a twin where it is replayed."""
        native: Any = super()
        if vars(desc).get("num_ubatches", 1) > 1:
            return native.run_fullgraph(desc)
        with scopes.replaying(self.connector):
            across = torch.full((self.dp_size,), desc.num_tokens, dtype=torch.int32)
            self.connector.send({0: DPMetadata(across)})
            return native.run_fullgraph(desc)


class AnnouncedNativeManager(AnnouncedGraphs, ModelCudaGraphManager):
    """vLLM's own graph manager."""


class AnnouncedUBatchManager(AnnouncedGraphs, UBatchModelCudaGraphManager):
    """The one with graphs of split batches."""


class Host:
    """What the generated modules ask of a plugin."""

    def __init__(self, control: AttentionEnd) -> None:
        self.metadata = PlainMetadata()
        self.control = control


class AttentionMixin:
    """Mixin for a runner with ubatches: its model needs FFN ranks, and a step that fails here is given up there.

    Attributes:
        connector: goes to the FFN ranks.
        factory_owner: the module that makes the native graph manager.
        native_manager: its class.
        announced_manager: what is made instead.
        announced_twins: the same with graphs of split batches.
    """

    connector: AttentionEnd
    factory_owner: ModuleType
    native_manager: type
    announced_manager: type
    announced_twins: type
    cudagraph_manager: Any
    parallel_config: Any
    model: Any

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        self._native.load_model(*args, **kwargs)
        self.model.connect(self.connector)
        self.model.register_forward_pre_hook(self._announce)

    @property
    def _native(self) -> Any:
        return super()

    def _announce(self, *args: object) -> None:
        if current_stage() is not None:
            return
        metadata = get_forward_context().dp_metadata
        assert metadata is not None
        if self.announced_graphs().capturing:
            with scopes.capturing(self.connector, not current_platform.is_current_stream_capturing()):
                self.connector.send({0: metadata})
        else:
            self.connector.send({0: metadata})

    def announced_graphs(self) -> AnnouncedGraphs:
        """The graph manager."""
        assert isinstance(self.cudagraph_manager, AnnouncedGraphs)
        return self.cudagraph_manager

    def graph_manager_scope(self) -> AbstractContextManager[None]:
        return scopes.graph_manager_factory(self.factory_owner, self.native_manager, self.announced_twins)

    def initialize_kv_cache(self, *args: Any, **kwargs: Any) -> None:
        if self.parallel_config.use_ubatching:
            self._native.initialize_kv_cache(*args, **kwargs)
        else:
            with scopes.graph_manager_factory(self.factory_owner, self.native_manager, self.announced_manager):
                self._native.initialize_kv_cache(*args, **kwargs)
        self.announced_graphs().connector = self.connector

    def execute_model(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._native.execute_model(*args, **kwargs)
        except BaseException:
            self.connector.abort()
            raise

    def capture_model(self) -> int:
        try:
            return cast(int, self._native.capture_model())
        except BaseException:
            self.connector.abort()
            raise


class AttentionRunner(AttentionMixin, DboRunner):
    """vLLM's runner."""

    factory_owner, native_manager = model_runner, ModelCudaGraphManager
    announced_manager, announced_twins = AnnouncedNativeManager, AnnouncedUBatchManager

    def make_afd_host(self) -> AFDHost:
        return Host(self.connector)
