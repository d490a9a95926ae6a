"""The graph manager: a replay waits at each attention until that is updated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import get_forward_context, set_forward_context
from vllm.sequence import IntermediateTensors
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.worker.gpu.block_table import BlockTables
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor, ModelCudaGraphManager
from vllm.v1.worker.gpu.input_batch import InputBuffers
from vllm.v1.worker.gpu.model_states.interface import ModelState
from vllm.v1.worker.utils import AttentionGroup

from vllm_ascend.ascend_forward_context import _EXTRA_CTX
from vllm_ascend.compilation.acl_graph import set_graph_params, update_full_graph_params
from vllm_ascend.worker.v2.utils import communicator_switch


class ModelWithContext(nn.Module):
    """A model that says in its forward context when it is captured."""

    def __init__(self, original_model, is_draft_model=False, is_draft_model_prefill=False):
        super().__init__()
        self.original_model = original_model

    def forward(self, *args, **kwargs):
        """The model's."""
        if torch.npu.is_current_stream_capturing():
            _EXTRA_CTX.capturing = True
        return self.original_model(*args, **kwargs)


class ModelAclGraphManager(ModelCudaGraphManager):
    """Updates the replay of a graph of a whole batch."""

    def __init__(
        self, vllm_config: VllmConfig, device: torch.device, cudagraph_mode: CUDAGraphMode, decode_query_len: int,
        model_runner: Any, lora_capture_cases: list[int] | None = None,
    ):  # fmt: skip
        super().__init__(vllm_config, device, cudagraph_mode, decode_query_len, lora_capture_cases)
        self.model_runner = model_runner
        self.update_stream = torch.npu.Stream() if cudagraph_mode.has_full_cudagraphs() else None
        if self.needs_capture():
            set_graph_params(sorted({desc.num_tokens for descs in self._capture_descs.values() for desc in descs}))

    def run_fullgraph(self, desc: BatchExecutionDescriptor) -> torch.Tensor | tuple[torch.Tensor, list[torch.Tensor]]:
        """Replay, then update."""
        runner = self.model_runner
        self.update_stream.wait_stream(torch.npu.current_stream())
        output = super().run_fullgraph(desc)
        across = torch.full([runner.dp_size], desc.num_tokens)
        with set_forward_context(runner.model_state.attn_metadata, self.vllm_config, desc.num_tokens, across):
            backend = runner.attn_groups[0][0].backend
            update_full_graph_params(
                backend, self.update_stream, get_forward_context(), desc.num_tokens, self.vllm_config
            )
        return output

    def capture(
        self, model: nn.Module, model_state: ModelState, input_buffers: InputBuffers,
        intermediate_tensors: IntermediateTensors | None, block_tables: BlockTables,
        attn_groups: list[list[AttentionGroup]], kv_cache_config: KVCacheConfig, has_lora: bool = False,
        use_aux_hidden_state_outputs: bool = False, lora_capture_hook: Callable[[int, int, int], None] | None = None,
        progress_bar_desc: str = "Capturing CUDA graphs",
    ) -> None:  # fmt: skip
        """With a model that knows of it."""
        inputs = (model_state, input_buffers, intermediate_tensors, block_tables, attn_groups, kv_cache_config)
        with communicator_switch():
            super().capture(
                ModelWithContext(model),
                *inputs,
                has_lora,
                use_aux_hidden_state_outputs,
                lora_capture_hook,
                progress_bar_desc,
            )
