"""The model runner: vLLM's, with lengths on the host."""

from __future__ import annotations

from contextlib import contextmanager

import torch
from vllm.config import VllmConfig
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

    def prepare_inputs(self, scheduler_output: SchedulerOutput, batch_desc: BatchExecutionDescriptor) -> AscendInputBatch:
        """With lengths on the host."""
        vllm_model_runner.InputBatch = InputBatch
        try:
            batch, lengths = super().prepare_inputs(scheduler_output, batch_desc), self.input_buffers.seq_lens_np
        finally:
            vllm_model_runner.InputBatch = AscendInputBatch
        count, scheduled = batch.num_reqs, batch.num_scheduled_tokens
        lengths[:count], lengths[count:] = batch.seq_lens_cpu_upper_bound[:count].numpy(), 0
        state = build_attn_state(self.vllm_config, lengths, count, scheduled, scheduled)
        update_cos_sin(batch.positions)
        return AscendInputBatch(**vars(batch), seq_lens_np=lengths, attn_state=state)


@contextmanager
def graph_manager_wrapper(model_runner):
    """vLLM's runner makes another graph manager in the block."""
    native = vllm_model_runner.ModelCudaGraphManager

    def make(vllm_config, device, cudagraph_mode, decode_query_len, lora_capture_cases=None):
        return ModelAclGraphManager(vllm_config, device, cudagraph_mode, decode_query_len, model_runner, lora_capture_cases)

    vllm_model_runner.ModelCudaGraphManager = make
    try:
        yield
    finally:
        vllm_model_runner.ModelCudaGraphManager = native
