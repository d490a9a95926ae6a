"""Puts the classes of this package where vLLM looks for them."""

from __future__ import annotations

from typing import Any

import torch
from vllm.model_executor.layers.attention import mla_attention
from vllm.v1.worker.gpu import attn_utils, cudagraph_utils, model_runner

from tests.sim.ascend import ACCELERATOR
from vllm_ascend.worker.v2.input_batch import AscendInputBatch
from vllm_ascend.worker.v2.model_states.default import AscendModelState


def _init_model_state(vllm_config: Any, model: Any, encoder_cache: Any, device: Any) -> AscendModelState:
    return AscendModelState(vllm_config, model, encoder_cache, device)


class _NoPrefill:
    """vLLM's kernels for prefills, which are not asked."""

    def __init__(self, **options: Any) -> None:
        pass

    def clone(self) -> _NoPrefill:
        return self


def _prefill_backend(vllm_config: Any) -> type[_NoPrefill]:
    return _NoPrefill


def _reshape(attn_groups: Any, kv_cache_raw_tensors: Any, **options: Any) -> dict[str, Any]:
    found, raw = {}, kv_cache_raw_tensors
    for group in attn_groups:
        spec = group.kv_cache_spec
        for name in group.layer_names:
            blocks = raw[name].numel() // spec.page_size_bytes
            shape = group.backend.get_kv_cache_shape(blocks, spec.block_size, spec.num_kv_heads, spec.head_size)
            found[name] = raw[name].view(spec.dtype).view(shape)
    return found


for _name, _npu in ACCELERATOR.items():
    setattr(torch.accelerator, _name, getattr(torch.npu, _npu))  # type: ignore[attr-defined]
attn_utils._reshape_kv_cache = _reshape  # type: ignore[assignment]
mla_attention.get_mla_prefill_backend = _prefill_backend  # type: ignore[assignment]
cudagraph_utils.InputBatch = model_runner.InputBatch = AscendInputBatch  # type: ignore[misc]
model_runner.init_model_state = _init_model_state
