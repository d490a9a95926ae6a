"""A tiny decoder with one expert per DP rank: its output for a token does not depend on how the batch is cut."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from vllm.distributed.parallel_state import get_dp_group
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.attention import Attention

EXPERTS = 2
ARCHITECTURE = "SimMoEForCausalLM"
WIDTHS: list[int] = []
"""Tokens of every forward pass of this process."""


class ExpertParallel(nn.Module):
    """Sends all tokens to all ranks, computes this rank's expert, and sums what the ranks have; ranks pad alike."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, EXPERTS, bias=False)
        self.up = nn.ModuleList(nn.Linear(hidden, inner, bias=False) for _ in range(EXPERTS))
        self.down = nn.ModuleList(nn.Linear(inner, hidden, bias=False) for _ in range(EXPERTS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        group = get_dp_group()
        metadata = get_forward_context().dp_metadata
        width = len(x) if metadata is None else int(metadata.num_tokens_across_dp_cpu.max())
        padded = F.pad(x, (0, 0, 0, width - len(x))).contiguous()
        parts = [torch.empty_like(padded) for _ in range(group.world_size)]
        dist.all_gather(parts, padded, group=group.device_group)
        tokens, rank = torch.cat(parts), group.rank_in_group
        weight = torch.softmax(self.gate(tokens), -1)[:, rank : rank + 1]
        done = weight * self.down[rank](F.silu(self.up[rank](tokens)))
        dist.all_reduce(done, group=group.device_group)
        return done[rank * width : rank * width + len(x)]


class Layer(nn.Module):
    """Attention and experts."""

    def __init__(self, config: Any, cache_config: Any, prefix: str) -> None:
        super().__init__()
        hidden, heads, kv_heads = config.hidden_size, config.num_attention_heads, config.num_key_value_heads
        size = hidden // heads
        self.sizes = [heads * size, kv_heads * size, kv_heads * size]
        self.qkv = nn.Linear(hidden, sum(self.sizes), bias=False)
        self.out = nn.Linear(heads * size, hidden, bias=False)
        self.attn = Attention(heads, size, size**-0.5, num_kv_heads=kv_heads, cache_config=cache_config, prefix=f"{prefix}.attn")
        self.experts = ExpertParallel(hidden, config.intermediate_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(F.rms_norm(x, x.shape[-1:])).split(self.sizes, -1)
        x = x + self.out(self.attn(query, key, value))
        return x + self.experts(F.rms_norm(x, x.shape[-1:]))


class SimMoE(nn.Module):
    """The model."""

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.layers = nn.ModuleList(
            Layer(config, vllm_config.cache_config, f"layers.{i}") for i in range(config.num_hidden_layers)
        )
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.embedding(input_ids)

    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None):
        WIDTHS.append(len(positions))
        x = self.embedding(input_ids.long()) + self.positions(positions)
        for layer in self.layers:
            x = layer(x)
        return x

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.head(hidden_states)

    def load_weights(self, weights: Any) -> None:
        raise NotImplementedError


def set_weights(model: nn.Module) -> None:
    """Weights that let attention and experts reach the logits, the same on every rank."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 2 / parameter.shape[1] ** 0.5)
