"""A tiny MoE decoder with latent attention (MLA), and its proxy: the experts of each layer are on the other side of a connector.

The plugin of a real model derives its proxy from vLLM's class of that model.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from afd_backports.vllm_v026_mrv2_dbo.ubatching import hand_over
from torch import nn
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.attention.mla_attention import MLAAttention
from vllm.model_executor.layers.linear import UnquantizedLinearMethod

from afd_example.connector import CAMP2pAFDConnector


class Norm(nn.Module):
    """RMS norm."""

    variance_epsilon = 1e-6

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise the last dimension."""
        return F.rms_norm(x, x.shape[-1:]) * (1 + self.weight)


class Projection(nn.Linear):
    """A linear layer in the shape of vLLM's."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)
        self.quant_method = UnquantizedLinearMethod()

    def forward(self, x: torch.Tensor, **options: Any) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        """The product, and no bias."""
        return super().forward(x), None


class Experts(nn.Module):
    """A gated sum of experts. It lives on the FFN side."""

    def __init__(self, hidden: int, intermediate: int, count: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, count, bias=False)
        self.up = nn.ModuleList(nn.Linear(hidden, intermediate, bias=False) for _ in range(count))
        self.down = nn.ModuleList(nn.Linear(intermediate, hidden, bias=False) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the experts make of some tokens."""
        weights = torch.softmax(self.gate(x), -1)
        return torch.stack([weights[:, n : n + 1] * self.down[n](F.silu(up(x))) for n, up in enumerate(self.up)]).sum(0)


class FFNModel(nn.Module):
    """The experts of all layers, under the names that they have in the whole model."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        sizes = config.hidden_size, config.moe_intermediate_size, config.num_afd_experts
        self.layers = nn.ModuleList(
            nn.ModuleDict({"experts": Experts(*sizes)}) for _ in range(config.num_hidden_layers)
        )

    def forward(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        return self.layers[layer]["experts"](x)  # type: ignore[index,no-any-return]


class RemoteExperts(nn.Module):
    """Stands for the experts of a layer: sends, makes way for the other stage, receives.

    Attributes:
        connector: set when the model is loaded.
    """

    connector: CAMP2pAFDConnector

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the experts make of some tokens."""
        stage = get_forward_context().additional_kwargs.get(
            "afd_stage", 0
        )  # in a single batch the plugin puts nothing there
        self.connector.send_attn_output(x, (self.layer, stage))
        hand_over()
        return self.connector.recv_ffn_output(x, stage)


class Layer(nn.Module):
    """Latent attention and experts."""

    def __init__(self, number: int, vllm_config: Any, prefix: str) -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        hidden, heads, latent = config.hidden_size, config.num_attention_heads, config.kv_lora_rank
        nope, rope, value = config.qk_nope_head_dim, config.qk_rope_head_dim, config.v_head_dim
        self.norm_1, self.norm_2 = Norm(hidden), Norm(hidden)
        self.query, self.down = Projection(hidden, heads * (nope + rope)), Projection(hidden, latent + rope)
        self.up, self.out = Projection(latent, heads * (nope + value)), Projection(heads * value, hidden)
        self.latent_norm = Norm(latent)
        self.attention = MLAAttention(
            heads, (nope + rope) ** -0.5, nope, rope, value, None, latent, self.up, cache_config=vllm_config.cache_config,
            prefix=f"{prefix}.attn", rotary_emb=None, q_proj=self.query, kv_a_proj_with_mqa=self.down,
            kv_a_layernorm=self.latent_norm, o_proj=self.out, layer_name=f"{prefix}.attn",
        )  # fmt: skip
        self.attention.process_weights_after_loading = self.attention.impl.process_weights_after_loading
        self.experts = RemoteExperts(number)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        metadata, name = get_forward_context().attn_metadata, self.attention.layer_name
        attended = torch.empty_like(x)
        self.attention.impl.forward(
            name, self.norm_1(x), self.attention.kv_cache, metadata and metadata[name], False, attended
        )
        x = x + 8 * attended
        return x + self.experts(self.norm_2(x))


class AfdTinyForCausalLM(nn.Module):
    """The attention side of the model, with what vLLM asks of one."""

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        # Here, because vLLM imports this module in a process of its own, in which there need be no device.
        from vllm_ascend.ops import rotary_embedding

        super().__init__()
        config = vllm_config.model_config.hf_config
        self.tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.layers = nn.ModuleList(Layer(n, vllm_config, f"layers.{n}") for n in range(config.num_hidden_layers))
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        rotary_embedding._record_cos_and_sin_cache(*_rotary(config.qk_rope_head_dim, config.max_position_embeddings))

    def connect(self, connector: CAMP2pAFDConnector) -> None:
        """Use a connector."""
        for module in self.modules():
            if isinstance(module, RemoteExperts):
                module.connector = connector

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Token embeddings."""
        return self.tokens(input_ids)  # type: ignore[no-any-return]

    def forward(
        self,
        input_ids: torch.Tensor,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: Any = None,
    ) -> torch.Tensor:
        """Hidden states of all tokens."""
        x: torch.Tensor = self.tokens(input_ids.long()) + self.positions(positions)
        for layer in self.layers:
            x = layer(x)
        return x

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Logits of some hidden states."""
        return self.head(hidden_states)  # type: ignore[no-any-return]

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """By name."""
        own = dict(self.named_parameters())
        for name, weight in weights:
            own[name].data.copy_(weight)
        return set(own)


def _rotary(size: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of each position, for pairs half the size apart."""
    angles = torch.outer(torch.arange(length).float(), 100.0 ** -(torch.arange(0, size, 2).float() / size))
    return torch.cos(angles).repeat(1, 2), torch.sin(angles).repeat(1, 2)
