"""The decoder of `tests.sim.model` with latent attention (MLA), as vllm-ascend runs it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.attention.mla_attention import MLAAttention
from vllm.model_executor.layers.linear import UnquantizedLinearMethod
from vllm_ascend.ops import rotary_embedding

from tests.sim.model import Experts, Norm, SimMoEForCausalLM


class Projection(nn.Linear):
    """A linear layer in the shape of vLLM's."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)
        self.quant_method = UnquantizedLinearMethod()

    def forward(self, x: torch.Tensor, **options: Any) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        """The product, and no bias."""
        return super().forward(x), None


class LatentNorm(Norm):
    """The norm of what is cached, in the shape of vLLM's."""

    variance_epsilon = 1e-6


def rotary_cache(size: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of each position, for pairs half the size apart."""
    angles = torch.outer(torch.arange(length).float(), 100.0 ** -(torch.arange(0, size, 2).float() / size))
    return torch.cos(angles).repeat(1, 2), torch.sin(angles).repeat(1, 2)


class MlaLayer(nn.Module):
    """Latent attention and experts."""

    def __init__(self, number: int, vllm_config: Any, prefix: str) -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        hidden, heads, latent = config.hidden_size, config.num_attention_heads, config.kv_lora_rank
        nope, rope, value = config.qk_nope_head_dim, config.qk_rope_head_dim, config.v_head_dim
        self.norm_1, self.norm_2 = Norm(hidden), Norm(hidden)
        self.query, self.down = Projection(hidden, heads * (nope + rope)), Projection(hidden, latent + rope)
        self.up, self.out = Projection(latent, heads * (nope + value)), Projection(heads * value, hidden)
        self.latent_norm = LatentNorm(latent)
        self.attention = MLAAttention(
            heads, (nope + rope) ** -0.5, nope, rope, value, None, latent, self.up, cache_config=vllm_config.cache_config,
            prefix=f"{prefix}.attn", rotary_emb=None, q_proj=self.query, kv_a_proj_with_mqa=self.down,
            kv_a_layernorm=self.latent_norm, o_proj=self.out, layer_name=f"{prefix}.attn",
        )  # fmt: skip
        self.attention.process_weights_after_loading = self.attention.impl.process_weights_after_loading
        self.experts = Experts(number, hidden, config.moe_intermediate_size, config.sim_experts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        x = x + 8 * self.attend(self.norm_1(x))  # so that its bugs show
        return x + self.experts(self.norm_2(x))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """What attention adds."""
        metadata, name = get_forward_context().attn_metadata, self.attention.layer_name
        attended = torch.empty_like(x)
        self.attention.impl.forward(name, x, self.attention.kv_cache, metadata and metadata[name], False, attended)
        return attended


class SimMlaForCausalLM(SimMoEForCausalLM):
    """The model."""

    layer = MlaLayer

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        config = vllm_config.model_config.hf_config
        rotary_embedding._record_cos_and_sin_cache(
            *rotary_cache(config.qk_rope_head_dim, config.max_position_embeddings)
        )
