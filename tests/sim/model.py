"""A tiny decoder with one expert per DP rank, which hands over to the other ubatch where a real one does.

What comes out for a token does not depend on how the batch is split, padded or spread over ranks, so runs of all kinds can be
compared token by token. The hand-over functions are looked up when they are called (`use_handoff`), and every step of the
exchange goes to the trace: a test may look at the order, or let one of them fail.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from vllm.distributed.parallel_state import get_dp_group
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.attention import Attention
from vllm.v1.worker import ubatching

from tests.sim.trace import TRACE, Mark


@dataclass(frozen=True)
class Handoff:
    """The calls at which one ubatch makes way for the other.

    Attributes:
        ubatch: number of the running ubatch, 0 when there is only one.
        yield_to_comm: let the other run; go on on the communication stream, after the own computation.
        back_to_compute: go on on the computation stream, after the own communication.
    """

    ubatch: Callable[[], int] = ubatching.dbo_current_ubatch_id
    yield_to_comm: Callable[[], object] = ubatching.dbo_yield_and_switch_from_compute_to_comm
    back_to_compute: Callable[[], object] = ubatching.dbo_switch_to_compute_sync


_handoffs = [Handoff()]


@contextlib.contextmanager
def use_handoff(handoff: Handoff) -> Iterator[None]:
    """Let the model hand over by these calls in the block."""
    _handoffs.append(handoff)
    try:
        yield
    finally:
        _handoffs.pop()


@torch.library.custom_op("sim::dp_gather", mutates_args=())
def dp_gather(x: torch.Tensor) -> torch.Tensor:
    """The tokens of all ranks."""
    group = get_dp_group()
    parts = [torch.empty_like(x) for _ in range(group.world_size)]
    dist.all_gather(parts, x.contiguous(), group=group.device_group)
    return torch.cat(parts)


@torch.library.custom_op("sim::dp_reduce", mutates_args=())
def dp_reduce(x: torch.Tensor) -> torch.Tensor:
    """The sum of what the experts of all ranks say about the tokens of this rank."""
    group = get_dp_group()
    total = x.clone()
    dist.all_reduce(total, group=group.device_group)
    return total.chunk(group.world_size)[group.rank_in_group].clone()


class Norm(nn.Module):
    """RMS norm."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise the last dimension."""
        return F.rms_norm(x, x.shape[-1:]) * (1 + self.weight)


class Experts(nn.Module):
    """A gated sum of experts. Every rank holds all of them and computes its own."""

    def __init__(self, layer: int, hidden: int, intermediate: int, count: int) -> None:
        super().__init__()
        self.layer = layer
        self.gate = nn.Linear(hidden, count, bias=False)
        self.up = nn.ModuleList(nn.Linear(hidden, intermediate, bias=False) for _ in range(count))
        self.down = nn.ModuleList(nn.Linear(intermediate, hidden, bias=False) for _ in range(count))

    def expert(self, number: int, x: torch.Tensor) -> torch.Tensor:
        """What one expert adds."""
        weight = torch.softmax(self.gate(x), -1)[:, number : number + 1]
        return weight * self.down[number](F.silu(self.up[number](x)))

    def mark(self, step: str) -> None:
        """Report a step that is about to be done."""
        TRACE.add(Mark(_handoffs[-1].ubatch(), self.layer, step))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """All experts: here when there is one rank, else each where it lives."""
        group = get_dp_group()
        if group.world_size == 1:
            return torch.stack([self.expert(number, x) for number in range(len(self.up))]).sum(0)
        assert group.world_size == len(self.up)
        size = x.shape[0]
        metadata = get_forward_context().dp_metadata
        most = size if metadata is None else int(metadata.num_tokens_across_dp_cpu.max())
        padded = F.pad(x, (0, 0, 0, most - size))
        self.mark("compute")
        _handoffs[-1].yield_to_comm()
        self.mark("dispatch")
        everything = torch.ops.sim.dp_gather(padded)
        _handoffs[-1].back_to_compute()
        self.mark("expert")
        mine = self.expert(group.rank_in_group, everything)
        _handoffs[-1].yield_to_comm()
        self.mark("combine")
        combined = torch.ops.sim.dp_reduce(mine)
        _handoffs[-1].back_to_compute()
        return combined[:size]


class Layer(nn.Module):
    """Attention and experts."""

    def __init__(self, number: int, vllm_config: Any, prefix: str) -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        hidden, heads, kv_heads = config.hidden_size, config.num_attention_heads, config.num_key_value_heads
        head = hidden // heads
        self.sizes = [heads * head, kv_heads * head, kv_heads * head]
        self.norm_1, self.norm_2 = Norm(hidden), Norm(hidden)
        self.qkv = nn.Linear(hidden, sum(self.sizes), bias=False)
        self.out = nn.Linear(heads * head, hidden, bias=False)
        self.attention = Attention(
            heads,
            head,
            head**-0.5,
            num_kv_heads=kv_heads,
            cache_config=vllm_config.cache_config,
            prefix=f"{prefix}.attn",
        )
        self.experts = Experts(number, hidden, config.intermediate_size, config.sim_experts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        query, key, value = self.qkv(self.norm_1(x)).split(self.sizes, -1)
        x = x + self.out(self.attention(query, key, value))
        return x + self.experts(self.norm_2(x))


class SimMoEForCausalLM(nn.Module):
    """The model, with what vLLM asks of one."""

    layer: type[nn.Module] = Layer

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.layers = nn.ModuleList(self.layer(i, vllm_config, f"layers.{i}") for i in range(config.num_hidden_layers))
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Token embeddings."""
        return self.tokens(input_ids)

    def forward(
        self,
        input_ids: torch.Tensor,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: Any = None,
    ) -> torch.Tensor:
        """Hidden states of all tokens."""
        x = self.tokens(input_ids.long()) + self.positions(positions)
        for layer in self.layers:
            x = layer(x)
        return x

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Logits of some hidden states."""
        return self.head(hidden_states)

    def load_weights(self, weights: Any) -> set[str]:
        """Not from a checkpoint: `load_format="dummy"`, then `scale_weights`."""
        raise NotImplementedError
