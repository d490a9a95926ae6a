"""The FFN side: a runner that holds the experts of all layers and does what the attention side announces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from afd_backports.vllm_v026_mrv2_dbo.ffn import FFNGraphPolicy, FFNSteps
from afd_backports.vllm_v026_mrv2_dbo.host import ControlPayload
from torch import nn
from vllm.distributed.parallel_state import get_dp_group
from vllm.forward_context import set_forward_context
from vllm.platforms import current_platform

from tests.dbo.ffn_roles import FFNLog
from tests.dbo.ffn_steps import device_graphs
from tests.sim.connector import FFNEnd, Payload, PeerAborted, PeerDiverged
from tests.sim.model import Experts
from tests.sim.runner import scale_weights


class FFNModel(nn.Module):
    """The experts, under the names that they have in the whole model."""

    def __init__(self, config: Any, intermediate: int) -> None:
        super().__init__()
        sizes = config.hidden_size, intermediate, config.sim_experts
        self.layers = nn.ModuleList(
            nn.ModuleDict({"experts": Experts(number, *sizes)}) for number in range(config.num_hidden_layers)
        )


class FFNRunner:
    """Serves one attention rank, together with the other FFN ranks.

    Attributes:
        log: what was done.
        steps: the generated part.
    """

    def __init__(self, config: Any, connector: FFNEnd, npu: bool = False) -> None:
        self.config, self.connector, self.log = config, connector, FFNLog()
        hf_config = config.model_config.hf_config
        self.model = FFNModel(hf_config, hf_config.moe_intermediate_size if npu else hf_config.intermediate_size)
        scale_weights(self.model)
        self.steps = FFNSteps(
            self.forward, self.agree, policy=FFNGraphPolicy(capture_moves_data=connector.capture_moves_data),
            device_graphs=device_graphs(npu), pool=current_platform.graph_pool_handle(),
        )  # fmt: skip

    @torch.inference_mode()
    def serve(self, before: Callable[[Payload], object] | None = None) -> FFNLog:
        """Do all steps, until there is none any more; a step that the attention side gives up is given up here.

        Args:
            before: called with each step, before anything is done.
        """
        while not (payload := self.connector.recv()).is_end:
            try:
                if before is not None:
                    before(payload)
                done = self.steps.policy.action(payload).value
                self.steps.step(payload)
                current_platform.synchronize()
            except PeerAborted:
                done += ", given up"
            except BaseException:
                self.connector.abort()
                raise
            self.log.steps.append((payload.kind, payload.tokens, done))
        self.log.captures = len(self.steps.graphs)
        self.log.replays = {key: graph.replays for key, (graph, _) in self.steps.graphs.items()}  # type: ignore[attr-defined]
        return self.log

    def agree(self, payload: ControlPayload) -> None:
        """All FFN ranks are about to do the same: they exchange tokens.

        Raises:
            PeerDiverged: they are not.
        """
        assert isinstance(payload, Payload)
        group = get_dp_group()
        said: list[Any] = [None] * group.world_size
        dist.all_gather_object(said, (payload.kind, payload.tokens), group=group.cpu_group)
        if any(other != said[0] for other in said):
            raise PeerDiverged(f"the attention ranks announce different steps: {said}")

    def forward(self, payload: ControlPayload) -> None:
        """All layers of all stages."""
        for number, layer in enumerate(self.model.layers):
            for stage, tokens in sorted(payload.dp_metadata_list.items()):
                across, own = tokens.num_tokens_across_dp_cpu, self.connector.tokens(stage)
                with set_forward_context(None, self.config, num_tokens=own, num_tokens_across_dp=across):
                    received = self.connector.recv_attn_output(stage, layer_idx=number)
                    output = layer["experts"](received.hidden_states)  # type: ignore[index]
                    self.connector.send_ffn_output(output, received.context)
