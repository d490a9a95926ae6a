"""Rotary factors of the tokens of a step, in buffers from which graphs read them."""

from __future__ import annotations

from typing import Any

import torch

_cos_cache: Any = None
_sin_cache: Any = None
_cos_mla: Any = None
_sin_mla: Any = None
_cos: Any = None  # of dense attention, which the stand-in has not
_sin: Any = None


def _record_cos_and_sin_cache(cos_cache, sin_cache):
    global _cos_cache, _sin_cache
    _cos_cache, _sin_cache = cos_cache, sin_cache


def set_cos_and_sin(vllm_config, max_num_reqs, decode_token_per_req, dtype, device):
    """Make the buffers."""
    global _cos_mla, _sin_mla
    if _cos_mla is None:
        size = vllm_config.model_config.hf_text_config.qk_rope_head_dim
        shape = (vllm_config.scheduler_config.max_num_batched_tokens, 1, 1, size)
        _cos_mla, _sin_mla = torch.ones(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)


def get_cos_and_sin_mla(positions, use_cache=False):
    """Factors of some positions; at the start of the buffers if `use_cache`."""
    cos, sin = (cache[positions][:, None, None] for cache in (_cos_cache, _sin_cache))
    if not use_cache:
        return cos, sin
    count = len(positions)
    _cos_mla[:count], _sin_mla[:count] = cos, sin
    return _cos_mla[:count], _sin_mla[:count]


def update_cos_sin(positions):
    """Of dense attention: nothing."""
