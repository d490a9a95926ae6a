"""The operators of `torch_npu` that latent attention (MLA) of vllm-ascend calls, in torch.

Only fused attention is opaque to the tape, as in `tests.sim.ascend_ops`: it is what task groups hold. All others are recorded
kernel by kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from tests.sim.npu import emit


def npu_kv_rmsnorm_rope_cache(
    kv: torch.Tensor, gamma: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, index: torch.Tensor,
    k_cache: torch.Tensor, ckv_cache: torch.Tensor, *, epsilon: float, is_output_kv: bool = False, **options: Any,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Norm of the latent part, rotation of the positional part, both into their caches.

    Returns:
        The caches, positional part first, and what went into them if `is_output_kv`.
    """
    assert options.get("cache_mode") == "PA"
    latent, positional = kv.split([ckv_cache.shape[-1], k_cache.shape[-1]], -1)
    latent = F.rms_norm(latent, latent.shape[-1:], gamma, epsilon)
    positional = npu_interleave_rope(positional, cos, sin)
    real, slots = (index >= 0)[:, None, None], index.clamp(min=0)
    for source, cache in ((positional, k_cache), (latent, ckv_cache)):
        rows = cache.view(-1, *cache.shape[2:])
        rows[slots] = torch.where(real, source[:, :, 0], rows[slots])
    return (k_cache, ckv_cache, positional, latent) if is_output_kv else (k_cache, ckv_cache, kv[:0], kv[:0])


def npu_interleave_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate pairs of neighbours; they end up half the length apart."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.cat([even, odd], -1) * cos + torch.cat([-odd, even], -1) * sin


def npu_transpose_batchmatmul(x: torch.Tensor, weight: torch.Tensor, *, perm_y: Sequence[int]) -> torch.Tensor:
    """A matrix product for each head; then its dimensions in another order."""
    return torch.bmm(x, weight).permute(*perm_y)


def npu_format_cast(weight: torch.Tensor, format: int) -> torch.Tensor:
    """Formats are of no meaning here."""
    return weight


def npu_attention_update(
    lse: Sequence[torch.Tensor], parts: Sequence[torch.Tensor], update_type: int
) -> tuple[torch.Tensor, None]:
    """Attention to all keys, from attention to parts of them."""
    weights = torch.softmax(torch.stack(list(lse)), 0)
    return (weights[..., None] * torch.stack(list(parts))).sum(0), None


def npu_gather_pa_kv_cache(
    key_cache: torch.Tensor, value_cache: torch.Tensor, block_table: torch.Tensor, lengths: torch.Tensor, *,
    seq_offset: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
) -> None:  # fmt: skip
    """Some tokens of each request, out of the caches: one request behind the other."""
    at = 0
    for request, (length, start) in enumerate(zip(lengths.tolist(), seq_offset.tolist(), strict=True)):
        for cache, out in ((key_cache, key), (value_cache, value)):
            rows = cache[block_table[request].long().clamp(min=0)].flatten(0, 1)
            out[at : at + length] = rows[start : start + length]
        at += length


def latent_attention(
    query: torch.Tensor, latent: torch.Tensor, out: torch.Tensor, *, query_rope: torch.Tensor, key_rope: torch.Tensor,
    block_table: torch.Tensor, actual_seq_kvlen: Sequence[int], softmax_scale: float,
) -> None:  # fmt: skip
    """Attention of one token for each request, to what its latent cache holds.

    Args:
        query: request, head, 1, element.
        latent: block, 1, offset, element: keys and values.
        out: head, request, 1, element; written.
        query_rope: as `query`: the positional part.
        key_rope: as `latent`: the positional part.
        block_table: blocks per request.
        actual_seq_kvlen: keys of each request; a list, so it is the host's.
        softmax_scale: of the scores.
    """
    assert len(actual_seq_kvlen) == query.shape[0], (actual_seq_kvlen, query.shape)
    for request, length in enumerate(actual_seq_kvlen):
        if not length:  # padding
            out[:, request] = 0
            continue
        pages = block_table[request].long().clamp(min=0)
        values = latent[pages, 0].flatten(0, 1)[:length]
        keys = torch.cat([values, key_rope[pages, 0].flatten(0, 1)[:length]], -1)
        scores = torch.cat([query[request], query_rope[request]], -1)[:, 0] @ keys.T * softmax_scale
        out[:, request, 0] = torch.softmax(scores, -1) @ values


_IGNORED = frozenset(
    {"atten_mask", "block_size", "input_layout", "num_query_heads", "num_key_value_heads", "sparse_mode", "workspace"}
)


class FusedInferAttentionScoreV2:
    """`npu_fused_infer_attention_score_v2`, and its variant `.out`; the second result is not used."""

    def __call__(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **options: Any
    ) -> tuple[torch.Tensor, None]:
        requests, heads, one, _ = query.shape
        out = query.new_zeros(heads, requests, one, key.shape[-1])
        self._run(query, key, out, options)
        return out, None

    def out(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, out: Sequence[torch.Tensor],
        workspace: torch.Tensor, **options: Any,
    ) -> None:  # fmt: skip
        """Write the result into `out[0]`; needs a workspace that was made for it."""
        assert workspace.numel() >= _workspace_size(query), "the workspace is too small"
        self._run(query, key, out[0], options)

    def _run(self, query: torch.Tensor, key: torch.Tensor, out: torch.Tensor, options: dict[str, Any]) -> None:
        assert options["input_layout"] == "BNSD_NBSD", options["input_layout"]
        assert options.pop("actual_seq_qlen") is None
        assert not options.pop("return_softmax_lse")
        given = {name: option for name, option in options.items() if name not in _IGNORED}
        emit(lambda: latent_attention(query, key, out, **given))


def _workspace_size(query: torch.Tensor) -> int:
    return query.shape[0]


def _npu_fused_infer_attention_score_v2_get_max_workspace(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **options: Any
) -> torch.Tensor:
    return torch.empty(_workspace_size(query))


OPERATORS = {
    "_npu_fused_infer_attention_score_v2_get_max_workspace": _npu_fused_infer_attention_score_v2_get_max_workspace,
    "npu_attention_update": npu_attention_update,
    "npu_format_cast": npu_format_cast,
    "npu_fused_infer_attention_score_v2": FusedInferAttentionScoreV2(),
    "npu_gather_pa_kv_cache": npu_gather_pa_kv_cache,
    "npu_interleave_rope": npu_interleave_rope,
    "npu_kv_rmsnorm_rope_cache": npu_kv_rmsnorm_rope_cache,
    "npu_transpose_batchmatmul": npu_transpose_batchmatmul,
}
