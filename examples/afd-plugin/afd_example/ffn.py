"""The model runner of an FFN rank: does what its attention rank announces."""

from __future__ import annotations

from typing import Any

import torch
from afd_backports.vllm_v026_mrv2_dbo.ascend_device import AscendGraphs
from afd_backports.vllm_v026_mrv2_dbo.ffn import FFNGraphPolicy, FFNSteps
from afd_backports.vllm_v026_mrv2_dbo.host import ControlPayload
from vllm.platforms import current_platform

from afd_example.connector import FFNEnd, StepGivenUp
from afd_example.model import FFNModel
from afd_example.settings import parse


class FFNRunner:
    """Serves one attention rank.

    Attributes:
        model: the experts of all layers, when they are loaded.
        connector: the FFN side.
        steps: the generated part.
        log: of each step: its kind, the number of its stages, and what was done.
    """

    model: FFNModel

    def __init__(self, vllm_config: Any, device: torch.device) -> None:
        settings = parse(vllm_config)
        assert settings is not None
        self.settings, self.device, self.hf_config = settings, device, vllm_config.model_config.hf_config
        self.connector = FFNEnd(vllm_config.parallel_config.data_parallel_rank, self.hf_config.hidden_size)
        self.steps = FFNSteps(
            self._forward, self._prepare, policy=FFNGraphPolicy(capture_moves_data=True), device_graphs=AscendGraphs(),
            pool=current_platform.graph_pool_handle(),
        )  # fmt: skip
        self.log: list[tuple[str, int, str]] = []

    def load_model(self) -> None:
        """Make the experts."""
        self.model = FFNModel(self.hf_config).to(self.device)

    @torch.inference_mode()
    def serve(self) -> None:
        """Meet the attention side, and do its steps until there is none any more. A step that it gives up is given up here."""
        self.connector.rendezvous(self.settings.rendezvous)
        try:
            while (payload := self.connector.next_step()) is not None:
                try:
                    done = self.steps.step(payload).value
                except StepGivenUp:
                    done = "given up"
                self.log.append((payload.kind, len(payload.dp_metadata_list), done))
        except BaseException:
            self.connector.abort()
            raise

    def shutdown(self) -> None:
        """Drop graphs and connection."""
        try:
            self.steps.release()
        finally:
            self.connector.close()

    def _prepare(self, payload: ControlPayload) -> None:
        """Nothing: the connector knows the step, and FFN ranks do not work together here."""

    def _forward(self, payload: ControlPayload) -> None:
        """All layers of all stages, in the order in which the attention side sends them."""
        for layer in range(len(self.model.layers)):
            for stage in sorted(payload.dp_metadata_list):
                hidden_states, context = self.connector.recv_attn_output(stage, layer_idx=layer)
                self.connector.send_ffn_output(self.model(layer, hidden_states), context)
