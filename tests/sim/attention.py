"""Paged attention in torch: shapes that do not depend on values, nothing read by the host, so it can be captured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadata,
    AttentionMetadataBuilder,
)


@dataclass
class SimMetadata(AttentionMetadata):
    """What the attention of one step needs; tensors of the batch, not copies."""

    num_actual_tokens: int
    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    slot_mapping: torch.Tensor


class SimBuilder(AttentionMetadataBuilder[SimMetadata]):
    """Takes the metadata from the batch."""

    _cudagraph_support = AttentionCGSupport.ALWAYS

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)  # abstract there

    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> SimMetadata:
        """The metadata of one step."""
        m = common_attn_metadata
        return SimMetadata(m.num_actual_tokens, m.query_start_loc, m.seq_lens, m.block_table_tensor, m.slot_mapping)


class SimImpl(AttentionImpl[SimMetadata]):
    """The attention of one layer."""

    def __init__(
        self, num_heads: int, head_size: int, scale: float, num_kv_heads: int | None = None, *args: Any, **kwargs: Any
    ) -> None:
        self.num_heads, self.head_size, self.scale = num_heads, head_size, scale
        self.num_kv_heads = num_kv_heads or num_heads
        self.kv_cache_dtype = "auto"

    def forward(
        self, layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, kv_cache: Any,
        attn_metadata: SimMetadata | None, output: torch.Tensor, output_scale: Any = None, output_block_scale: Any = None,
    ) -> torch.Tensor:  # fmt: skip
        """Write keys and values to the cache, then attend to all of it that is before each token."""
        if attn_metadata is None:  # a profiling run
            return output.fill_(0)
        m, count = attn_metadata, attn_metadata.num_actual_tokens
        keys, values = self.caches(kv_cache)
        slots = m.slot_mapping[:count].clamp(min=0)  # padding goes to the null block
        page, offset = slots // keys.shape[1], slots % keys.shape[1]
        keys.index_put_((page, offset), key[:count])
        values.index_put_((page, offset), value[:count])
        output[:count].copy_(self.attend(query[:count], keys, values, m))
        return output

    def caches(self, kv_cache: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Views of keys and of values: block, offset in the block, head, element."""
        if isinstance(kv_cache, (tuple, list)):  # vllm-ascend keeps two tensors
            return kv_cache[0], kv_cache[1]
        if kv_cache.dim() == 5:  # our shape, as vLLM 0.26 keeps it
            return kv_cache[:, 0], kv_cache[:, 1]
        both = kv_cache.permute(0, 2, 1, 3)  # vLLM 0.30: block, head, offset, keys and values
        return both[..., : self.head_size], both[..., self.head_size :]

    def attend(self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, m: SimMetadata) -> torch.Tensor:
        """The output of each token."""
        request, position = owners(m, query.shape[0])
        pages = m.block_table[: m.seq_lens.shape[0]].long().clamp(0, keys.shape[0] - 1)
        repeat = self.num_heads // keys.shape[2]

        def gathered(cache: torch.Tensor) -> torch.Tensor:  # token, position, head, element
            return cache[pages].flatten(1, 2)[request].repeat_interleave(repeat, 2)

        scores = torch.einsum("thd,tshd->ths", query, gathered(keys)) * self.scale
        later = torch.arange(scores.shape[-1]) > position[:, None, None]
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), -1)
        return torch.einsum("ths,tshd->thd", torch.nan_to_num(weights), gathered(values))


def owners(m: SimMetadata, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Per token: the request that it belongs to, and its position in it."""
    requests = m.seq_lens.shape[0]
    starts = m.query_start_loc[: requests + 1].long()
    token = torch.arange(count)
    request = torch.searchsorted(starts[1:].contiguous(), token, right=True).clamp(max=requests - 1)
    computed = m.seq_lens.long() - starts.diff()
    return request, computed[request] + token - starts[request]


class SimAttentionBackend(AttentionBackend):
    """The backend of the simulated platform."""

    supported_dtypes = [torch.float32, torch.float16, torch.bfloat16]  # noqa: RUF012 - declared so upstream

    @staticmethod
    def get_name() -> str:
        """A name in vLLM's table of backends."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[SimImpl]:
        """The attention of a layer."""
        return SimImpl

    @staticmethod
    def get_builder_cls() -> type[SimBuilder]:
        """The metadata builder."""
        return SimBuilder

    @staticmethod
    def get_kv_cache_shape(
        num_blocks: int, block_size: int, num_kv_heads: int, head_size: int, cache_dtype_str: str = "auto"
    ) -> tuple[int, ...]:
        """Keys and values of a block lie together."""
        return (num_blocks, 2, block_size, num_kv_heads, head_size)
