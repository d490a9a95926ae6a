"""The model runner: vLLM's, with lengths on the host."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from vllm.config import VllmConfig
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.worker.gpu import model_runner as vllm_model_runner
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor
from vllm.v1.worker.gpu.input_batch import InputBatch
from vllm.v1.worker.gpu.model_runner import GPUModelRunner

from vllm_ascend.ops.rotary_embedding import set_cos_and_sin, update_cos_sin
from vllm_ascend.worker.v2.aclgraph_utils import ModelAclGraphManager
from vllm_ascend.worker.v2.attn_utils import build_attn_state
from vllm_ascend.worker.v2.input_batch import AscendInputBatch, AscendInputBuffers
from vllm_ascend.worker.v2.utils import torch_cuda_wrapper


class NPUModelRunner(GPUModelRunner):
    """Makes the batches, buffers and graph managers of this package."""

    def __init__(self, vllm_config: VllmConfig, device: torch.device):
        with torch_cuda_wrapper():
            super().__init__(vllm_config, device)
        self.input_buffers = AscendInputBuffers(self.max_num_reqs, self.max_num_tokens, device)
        self.decode_query_len = 1
        set_cos_and_sin(vllm_config, self.max_num_reqs, self.decode_query_len, self.dtype, device)

    def initialize_kv_cache(self, kv_cache_config: KVCacheConfig) -> None:
        """With a graph manager of this package."""
        with graph_manager_wrapper(self):
            super().initialize_kv_cache(kv_cache_config)

    def prepare_inputs(
        self, scheduler_output: SchedulerOutput, batch_desc: BatchExecutionDescriptor
    ) -> AscendInputBatch:
        """With lengths on the host. All padding of a graph is one request, whose length is what another step has left there."""
        buffers = self.input_buffers
        everything = buffers.query_start_loc
        vllm_model_runner.InputBatch, buffers.query_start_loc = InputBatch, everything[:-1]  # as vLLM has them
        try:
            batch = super().prepare_inputs(scheduler_output, batch_desc)
        finally:
            vllm_model_runner.InputBatch, buffers.query_start_loc = AscendInputBatch, everything
        count, scheduled, lengths = batch.num_reqs, batch.num_scheduled_tokens, buffers.seq_lens_np
        padded = batch_desc.cg_mode == CUDAGraphMode.FULL and batch.num_tokens < batch.num_tokens_after_padding
        rows = count + 1 if padded else count
        offsets = np.append(batch.query_start_loc_np[: count + 1], batch.num_tokens_after_padding)[: rows + 1]
        buffers.query_start_loc[: rows + 1] = torch.from_numpy(offsets)
        buffers.query_start_loc[rows + 1 :] = batch.num_tokens
        upper = torch.zeros(rows, dtype=torch.int32)
        upper[:count] = batch.seq_lens_cpu_upper_bound[:count]
        lengths[:count], lengths[rows:] = upper[:count].numpy(), 0
        batch = replace(
            batch, num_reqs_after_padding=rows, query_start_loc=buffers.query_start_loc[: rows + 1], query_start_loc_np=offsets,
            seq_lens=buffers.seq_lens[:rows], seq_lens_cpu_upper_bound=upper,
        )  # fmt: skip
        state = build_attn_state(self.vllm_config, lengths, count, scheduled, scheduled)
        update_cos_sin(batch.positions)
        return AscendInputBatch(**vars(batch), seq_lens_np=lengths, attn_state=state)


@contextmanager
def graph_manager_wrapper(model_runner):
    """vLLM's runner makes another graph manager in the block."""
    native = vllm_model_runner.ModelCudaGraphManager

    def make(vllm_config, device, cudagraph_mode, decode_query_len, lora_capture_cases=None):
        return ModelAclGraphManager(
            vllm_config, device, cudagraph_mode, decode_query_len, model_runner, lora_capture_cases
        )

    vllm_model_runner.ModelCudaGraphManager = make
    try:
        yield
    finally:
        vllm_model_runner.ModelCudaGraphManager = native
