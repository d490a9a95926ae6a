"""The operators of `torch_npu` that dense attention of vllm-ascend calls, in torch.

They are opaque to the tape: as on the device, what they were given is baked in, lists of lengths too, until a task group
update gives them something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tests.sim.npu import emit

CAUSAL = 3
"""`sparse_mode` of a causal mask that ends at the last key."""


def scatter_kv(
    key: torch.Tensor, value: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor, slot_mapping: torch.Tensor
) -> None:  # fmt: skip
    """Write keys and values where the slots say; negative slots are padding."""
    count = slot_mapping.shape[0]
    real = (slot_mapping >= 0)[:, None, None]
    slots = slot_mapping.clamp(min=0).long()
    for source, target in ((key, key_cache), (value, value_cache)):
        rows = target.view(-1, *target.shape[2:])
        rows[slots] = torch.where(real, source[:count], rows[slots])


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out: torch.Tensor, *, block_table: torch.Tensor | None,
    actual_seq_lengths: Sequence[int], actual_seq_lengths_kv: Sequence[int], num_key_value_heads: int, scale: float,
    sparse_mode: int, query_rope: torch.Tensor | None = None, key_rope: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
) -> None:  # fmt: skip
    """Attention of all requests: keys from the cache if there is a block table, else as they are given.

    Args:
        query: token, head, element.
        key: block, offset, (head,) element; or token, head, element.
        value: as `key`.
        out: as `query`; written.
        block_table: blocks per request.
        actual_seq_lengths: where the queries of each request end.
        actual_seq_lengths_kv: keys of each request in the cache; or where its keys end.
        num_key_value_heads: heads of keys and values.
        scale: of the scores.
        sparse_mode: `CAUSAL`, or no mask.
        query_rope: as `query`: a positional part, if it is apart.
        key_rope: as `key`, likewise.
        lse: token, head, 1; written: logarithms of the sums of the weights.
    """
    if query_rope is not None and key_rope is not None:
        query, key = torch.cat([query, query_rope], -1), torch.cat([key, key_rope], -1)
    heads, size = query.shape[1:]
    start = key_start = 0
    for request, stop in enumerate(actual_seq_lengths):
        end = int(actual_seq_lengths_kv[request])
        if block_table is None:
            keys, values = key[key_start:end], value[key_start:end]
            key_start = end
        else:
            pages = block_table[request].long().clamp(min=0)
            keys, values = (cache[pages].reshape(-1, num_key_value_heads, size)[:end] for cache in (key, value))
        if stop > start and len(keys):
            repeat = heads // num_key_value_heads
            scores = torch.einsum("qhd,khd->hqk", query[start:stop], keys.repeat_interleave(repeat, 1)) * scale
            if sparse_mode == CAUSAL:
                last = torch.arange(stop - start)[:, None] + len(keys) - (stop - start)
                scores = scores.masked_fill(torch.arange(len(keys)) > last, float("-inf"))
            weights = torch.nan_to_num(torch.softmax(scores, -1))
            if lse is not None:
                lse[start:stop, :, 0] = torch.logsumexp(scores, -1).T
            out[start:stop] = torch.einsum("hqk,khd->qhd", weights, values.repeat_interleave(repeat, 1))
        start = stop


# ---- as torch_npu has them ------------------------------------------------------------------------------------


def npu_scatter_pa_kv_cache(
    key: torch.Tensor, value: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor, slot_mapping: torch.Tensor,
    **options: Any,
) -> None:  # fmt: skip
    """Write keys and values."""
    emit(lambda: scatter_kv(key, value, key_cache, value_cache, slot_mapping))


def _npu_reshape_and_cache(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_indices: torch.Tensor,
) -> None:
    npu_scatter_pa_kv_cache(key, value, key_cache, value_cache, slot_indices)


_IGNORED = frozenset({
    "antiquant_mode", "antiquant_scale", "atten_mask", "block_size", "input_layout", "next_tokens", "num_heads", "pre_tokens",
    "softmax_lse_flag", "workspace",
})  # fmt: skip
"""What says how, not what; the mask follows from `sparse_mode`."""


class FusedInferAttentionScore:
    """`npu_fused_infer_attention_score` with its variant `.out`."""

    def __call__(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        if not options.pop("softmax_lse_flag", False):
            out = torch.zeros_like(query)
            self.out(query, key, value, out=[out], **options)
            return out, None
        out = query.new_zeros(*query.shape[:2], value.shape[-1])
        # Of tokens without keys, minus infinity: they do not count when parts are put together.
        lse = query.new_full((*query.shape[:2], 1), float("-inf"))
        self.out(query, key, value, out=[out], lse=lse, **{"block_table": None, **options})
        return out, lse

    def out(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, out: Sequence[torch.Tensor], **options: Any
    ) -> None:  # fmt: skip
        """Write the result into `out[0]`."""
        given = {name: option for name, option in options.items() if name not in _IGNORED}
        assert options["input_layout"] == "TND", options["input_layout"]
        emit(lambda: attention(query, key, value, out[0], **given))


def _npu_fused_infer_attention_score_get_max_workspace(**options: Any) -> torch.Tensor:
    return torch.zeros(1)


OPERATORS = {
    "_npu_fused_infer_attention_score_get_max_workspace": _npu_fused_infer_attention_score_get_max_workspace,
    "_npu_reshape_and_cache": _npu_reshape_and_cache,
    "npu_fused_infer_attention_score": FusedInferAttentionScore(),
    "npu_scatter_pa_kv_cache": npu_scatter_pa_kv_cache,
}
