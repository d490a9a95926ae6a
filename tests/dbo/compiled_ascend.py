"""The decoder with latent attention, compiled as a whole: for processes with vllm-ascend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from vllm.compilation.decorators import support_torch_compile
from vllm.forward_context import get_forward_context
from vllm.utils.torch_utils import direct_register_custom_op

from tests.dbo.compiled_model import with_compiled_experts
from tests.sim.ascend_config import MLA
from tests.sim.ascend_model import MlaLayer, SimMlaForCausalLM

COMPILED_MLA: Mapping[str, object] = {**MLA, "architectures": ["SimCompiledMlaForCausalLM"]}


def attend(x: torch.Tensor, attended: torch.Tensor, layer: str) -> None:
    """The attention of a layer, found by its name, as vllm-ascend's operator `mla_forward` does it."""
    attended.copy_(get_forward_context().no_compile_layers[layer].attend_now(x))


def _attend_fake(x: torch.Tensor, attended: torch.Tensor, layer: str) -> None:
    return


direct_register_custom_op("sim_mla", attend, ["attended"], _attend_fake)


class Layer(MlaLayer):
    """Attention is an operator."""

    def __init__(self, number: int, vllm_config: Any, prefix: str) -> None:
        super().__init__(number, vllm_config, prefix)
        self.name = prefix
        vllm_config.compilation_config.static_forward_context[prefix] = self

    attend_now = MlaLayer.attend

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """What attention adds."""
        attended = torch.empty_like(x)
        torch.ops.vllm.sim_mla(x, attended, self.name)
        return attended


@support_torch_compile(dynamic_arg_dims={"input_ids": 0, "positions": 0})
class SimCompiledMlaForCausalLM(SimMlaForCausalLM):
    """The model, compiled as the configuration says."""

    layer = with_compiled_experts(Layer)
