"""The attention state of a step."""

from __future__ import annotations

import numpy as np
from vllm.config import VllmConfig

from vllm_ascend.attention.attention_v1 import AscendAttentionState


def build_attn_state(
    vllm_config: VllmConfig, seq_lens_np: np.ndarray, num_reqs, num_scheduled_tokens, num_valid_tokens
):
    """By what is scheduled of each request, and what is in its cache then."""
    if (seq_lens_np[:num_reqs] == num_scheduled_tokens).all():
        return AscendAttentionState.PrefillNoCache
    only_one = (num_scheduled_tokens == 1).all()
    return AscendAttentionState.DecodeOnly if only_one else AscendAttentionState.ChunkedPrefill
