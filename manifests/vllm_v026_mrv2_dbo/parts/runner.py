"""What the execute path expects of its runner."""

from typing import Any, Protocol

import torch
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.worker.gpu import input_batch as batches
from vllm.v1.worker.ubatch_utils import UBatchSlices


class UBatchState(Protocol):
    """The prepared ubatches of one step; opaque to the execute path but for the slices."""

    @property
    def slices(self) -> UBatchSlices:
        """The slices of the ubatches, in order."""


class UBatchRunner(Protocol):
    """Runs the model on the ubatches of a step."""

    def prepare(
        self, input_batch: batches.InputBatch, block_tables: tuple[torch.Tensor, ...], slot_mappings: torch.Tensor,
        cg_mode: CUDAGraphMode = CUDAGraphMode.NONE, for_capture: bool = False,
    ) -> UBatchState:  # fmt: skip
        """Split the batch and build what each ubatch needs."""

    def stage(self, state: Any, cg_mode: CUDAGraphMode) -> None:
        """Keep what has been prepared, if a graph is going to be replayed for it."""

    def run(self, model: Any, model_inputs: dict[str, Any], ubatch_state: UBatchState) -> Any:
        """Run all ubatches eagerly; the outputs merged, as the model would have returned them."""


class UBatchHost:
    """A runner that may have a ubatch runner; it has none before its KV cache is initialised."""

    ubatch_runner: UBatchRunner | None = None
