"""The decoder of `tests.sim.model`, compiled as a whole: what a compiler may not look into is an operator, the handoff is one, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from afd_backports.vllm_v026_mrv2_dbo import ubatching as generated
from torch import nn
from vllm.compilation.decorators import support_torch_compile
from vllm.distributed.parallel_state import get_dp_group
from vllm.utils.torch_utils import direct_register_custom_op
from vllm.v1.worker import ubatching as native

from tests.sim.config import MOE
from tests.sim.model import Experts, Layer, SimMoEForCausalLM
from tests.sim.trace import TRACE, Mark

COMPILED: Mapping[str, object] = {**MOE, "architectures": ["SimCompiledForCausalLM"]}
ROWS = 64
"""Tokens of a rank at each exchange, as many as a step has at most: the compiler sees no number that is another rank's."""


def mark(layer: int, step: str) -> None:
    """Report a step of the exchange."""
    TRACE.add(Mark(native.dbo_current_ubatch_id(), layer, step))


def dispatch(x: torch.Tensor, layer: int) -> torch.Tensor:
    """The tokens of all ranks."""
    mark(layer, "dispatch")
    return torch.ops.sim.dp_gather(F.pad(x, (0, 0, 0, ROWS - x.shape[0])))


def combine(mine: torch.Tensor, x: torch.Tensor, layer: int) -> torch.Tensor:
    """What all experts say about the tokens of this rank."""
    mark(layer, "combine")
    return torch.ops.sim.dp_reduce(mine)[: x.shape[0]].clone()


def _dispatch_fake(x: torch.Tensor, layer: int) -> torch.Tensor:
    return x.new_empty(ROWS * get_dp_group().world_size, x.shape[1])


def _combine_fake(mine: torch.Tensor, x: torch.Tensor, layer: int) -> torch.Tensor:
    return torch.empty_like(x)


direct_register_custom_op("sim_dispatch", dispatch, [], _dispatch_fake)
direct_register_custom_op("sim_combine", combine, [], _combine_fake)


class CompiledExperts(Experts):
    """Experts of all ranks; each stage hands over when its tokens are on their way."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.mine = get_dp_group().rank_in_group

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """All experts, each where it lives."""
        everything = torch.ops.vllm.sim_dispatch(x, self.layer)
        generated.hand_over(everything)
        return torch.ops.vllm.sim_combine(self.expert(self.mine, everything), x, self.layer)


def with_compiled_experts(layer: type[nn.Module]) -> type[nn.Module]:
    """The layer class with these experts."""

    class CompiledLayer(layer):  # type: ignore[misc, valid-type]
        """A layer of a compiled model."""

        def __init__(self, number: int, vllm_config: Any, prefix: str) -> None:
            super().__init__(number, vllm_config, prefix)
            up = self.experts.up
            self.experts = CompiledExperts(number, up[0].in_features, up[0].out_features, len(up))

    return CompiledLayer


@support_torch_compile(dynamic_arg_dims={"input_ids": 0, "positions": 0})
class SimCompiledForCausalLM(SimMoEForCausalLM):
    """The model, compiled as the configuration says."""

    layer = with_compiled_experts(Layer)
