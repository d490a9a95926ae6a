"""Batches that have their lengths on the host, too."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import torch
from vllm.v1.worker.gpu.input_batch import InputBatch, InputBuffers

from vllm_ascend.attention.attention_v1 import AscendAttentionState
from vllm_ascend.ops.rotary_embedding import update_cos_sin


class AscendInputBuffers(InputBuffers):
    """With lengths on the host, for as many requests as there may be; and with offsets for one more, which is padding."""

    def __init__(self, max_num_reqs: int, max_num_tokens: int, device: torch.device):
        super().__init__(max_num_reqs, max_num_tokens, device)
        self.query_start_loc = torch.zeros(max_num_reqs + 2, dtype=torch.int32, device=device)
        self.seq_lens_np = np.zeros(max_num_reqs, dtype=np.int32)


@dataclass
class AscendInputBatch(InputBatch):
    """With lengths on the host, longer than the batch, and the state of its attention."""

    seq_lens_np: np.ndarray
    attn_state: AscendAttentionState | None = None

    @classmethod
    def make_dummy(cls, num_reqs: int, num_tokens: int, input_buffers: AscendInputBuffers) -> "AscendInputBatch":  # noqa: UP037
        """A copy, not views of the buffers; for a graph this matters."""
        made = InputBatch.make_dummy(num_reqs, num_tokens, input_buffers)
        lengths = input_buffers.seq_lens_np
        lengths[:num_reqs], lengths[num_reqs:] = made.num_scheduled_tokens, 0
        update_cos_sin(made.positions)
        return cls(**asdict(made), seq_lens_np=lengths[:num_reqs], attn_state=AscendAttentionState.DecodeOnly)
