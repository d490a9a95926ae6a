"""Paged attention in plain torch, and vLLM's classes around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from vllm.v1.attention.backend import AttentionBackend, AttentionCGSupport, AttentionImpl, AttentionMetadataBuilder


@dataclass
class SimMetadata:
    """What the kernel reads."""

    num_actual_tokens: int
    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    slot_mapping: torch.Tensor


class SimBuilder(AttentionMetadataBuilder[SimMetadata]):
    """Passes the common metadata on."""

    _cudagraph_support = AttentionCGSupport.ALWAYS

    def __init__(self, kv_cache_spec: Any, layer_names: Any, vllm_config: Any, device: Any) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> SimMetadata:
        common = common_attn_metadata
        return SimMetadata(
            common.num_actual_tokens, common.query_start_loc, common.seq_lens, common.block_table_tensor, common.slot_mapping
        )


class SimImpl(AttentionImpl[SimMetadata]):
    """Each token attends to its request's cache up to its own position."""

    def __init__(self, num_heads: int, head_size: int, scale: float, num_kv_heads: int | None = None, *args: Any, **kwargs: Any) -> None:
        self.num_heads, self.head_size, self.scale = num_heads, head_size, scale
        self.num_kv_heads = num_kv_heads or num_heads
        self.kv_cache_dtype = "auto"

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None, output_block_scale=None):
        if attn_metadata is None:  # a profile run
            return output.fill_(0)
        count = attn_metadata.num_actual_tokens
        keys, values = kv_cache[:, 0], kv_cache[:, 1]  # each: blocks, tokens of a block, heads, size
        block_size = keys.shape[1]
        slots = attn_metadata.slot_mapping[:count].clamp(min=0)  # padding goes to the null block
        keys.index_put_((slots // block_size, slots % block_size), key[:count])
        values.index_put_((slots // block_size, slots % block_size), value[:count])
        groups = self.num_heads // self.num_kv_heads
        starts, lengths = attn_metadata.query_start_loc.tolist(), attn_metadata.seq_lens.tolist()
        output[:count].zero_()
        for request, length in enumerate(lengths):
            begin, end = starts[request], starts[request + 1]
            if begin == end:
                continue
            blocks = attn_metadata.block_table[request].long()
            past_keys, past_values = (
                cache[blocks].reshape(-1, self.num_kv_heads, self.head_size)[:length].repeat_interleave(groups, 1)
                for cache in (keys, values)
            )
            positions = torch.arange(length - (end - begin), length)
            scores = torch.einsum("thd,shd->ths", query[begin:end], past_keys) * self.scale
            later = torch.arange(length)[None, None] > positions[:, None, None]
            weights = torch.softmax(scores.masked_fill(later, float("-inf")), -1)
            output[begin:end] = torch.einsum("ths,shd->thd", weights, past_values)
        return output


class SimAttentionBackend(AttentionBackend):
    """The backend that the platform names."""

    supported_dtypes: ClassVar = [torch.float32]

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"  # layers look it up in an enumeration

    @staticmethod
    def get_impl_cls() -> type[SimImpl]:
        return SimImpl

    @staticmethod
    def get_builder_cls() -> type[SimBuilder]:
        return SimBuilder

    @staticmethod
    def get_kv_cache_shape(
        num_blocks: int, block_size: int, num_kv_heads: int, head_size: int, cache_dtype_str: str = "auto"
    ) -> tuple[int, ...]:
        return (num_blocks, 2, block_size, num_kv_heads, head_size)
