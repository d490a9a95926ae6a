"""vllm-ascend's graph manager with graphs of split batches."""

from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from afd_backports.vllm_v026_mrv2_dbo import scopes
from afd_backports.vllm_v026_mrv2_dbo.ascend_device import AscendGraphs
from afd_backports.vllm_v026_mrv2_dbo.ascend_params import RecordedParams, TwinParams, replay_updated
from afd_backports.vllm_v026_mrv2_dbo.descriptor import AFDBatchExecutionDescriptor
from afd_backports.vllm_v026_mrv2_dbo.graph_manager import UBatchGraphs
from torch import nn
from vllm.config import VllmConfig
from vllm.config.compilation import CUDAGraphMode
from vllm.sequence import IntermediateTensors
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor
from vllm_ascend.compilation import acl_graph
from vllm_ascend.worker.v2.aclgraph_utils import ModelAclGraphManager, ModelWithContext
from vllm_ascend.worker.v2.utils import communicator_switch

if TYPE_CHECKING:
    from afd_backports.vllm_v026_mrv2_dbo.ubatch_runner import AFDAscendUBatchRunnerV2, UBatchState


class AFDModelAclGraphManagerV2(UBatchGraphs, ModelAclGraphManager):  # type: ignore[misc]  # vLLM's two `capture`
    """Native graphs are captured, updated and replayed natively; beside them, graphs of split batches.

    The device waits in a replay, at the attention of each layer, until that has been given the lengths of this step: of
    each stage its own. The updates of a replay begin when the work issued before it is done, other replays too; and it
    does not end before they are. So no replay sees updates of another.

    Attributes:
        native_params: vllm-ascend's own parameters; graphs of split batches leave them alone.
        twin_params: the parameters of each graph of a split batch.
        recorded: what stands in the place of the native ones during a capture.
    """

    device_graphs = AscendGraphs()

    def __init__(
        self, vllm_config: VllmConfig, device: torch.device, cudagraph_mode: CUDAGraphMode, decode_query_len: int,
        model_runner: Any, lora_capture_cases: list[int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(vllm_config, device, cudagraph_mode, decode_query_len, model_runner, lora_capture_cases)
        self.native_params = acl_graph.get_graph_params()
        self.attach(None)

    def attach(self, ubatch_runner: "AFDAscendUBatchRunnerV2 | None") -> None:
        """Take the ubatch runner; no graph has been captured with it."""
        super().attach(ubatch_runner)
        self.twin_params: dict[BatchExecutionDescriptor, TwinParams] = {}
        self.recorded = RecordedParams()

    def params_scope(self, params: object) -> AbstractContextManager[None]:
        """The block in which vllm-ascend finds these parameters, in whatever module of it looks for them."""
        return scopes.substitute(acl_graph, "_graph_params", self.native_params, params)

    def capture_twins(self, model: nn.Module, *more: Any, **inputs: Any) -> None:
        """Capture graphs of split batches, under the conditions that vllm-ascend makes for native ones."""
        with communicator_switch(), self.params_scope(self.recorded):
            super().capture_twins(ModelWithContext(model), *more, **inputs)

    def before_capture(self, desc: BatchExecutionDescriptor, state: "UBatchState", warmup: bool) -> None:
        """Parameters of its own for the graph that is about to be captured."""
        if not warmup:
            self.recorded.twin = self.twin_params[desc] = TwinParams(state.slices[0].num_tokens)
        super().before_capture(desc, state, warmup)

    def after_capture(self, desc: BatchExecutionDescriptor) -> None:
        """See that the graph can be updated."""
        self.twin_params[desc].check()
        super().after_capture(desc)

    def run_fullgraph(  # type: ignore[override]  # as vLLM's; vllm-ascend's says less
        self, desc: BatchExecutionDescriptor
    ) -> torch.Tensor | tuple[torch.Tensor, list[torch.Tensor]] | IntermediateTensors:
        """Replay a graph; of a split batch, with updates for each of its stages."""
        if not isinstance(desc, AFDBatchExecutionDescriptor) or desc.num_ubatches == 1:
            return super().run_fullgraph(desc)
        assert self.update_stream is not None
        # FIXME of vllm-ascend: one backend for all groups.
        backend = self.model_runner.attn_groups[0][0].backend
        # Past vllm-ascend's method, which would update the graph of a whole batch.
        replay = partial(super(ModelAclGraphManager, self).run_fullgraph, desc)
        with self.staged_replay(desc) as state:
            return replay_updated(
                replay, self.twin_params[desc], state.forward_contexts, backend=backend, stream=self.update_stream,
                vllm_config=self.vllm_config, lost=partial(self.release_twin, desc),
            )  # fmt: skip

    def release_twin(self, desc: BatchExecutionDescriptor) -> None:
        """Drop a graph, and what it would be updated with."""
        super().release_twin(desc)
        self.twin_params.pop(desc, None)

    def release_twins(self) -> None:
        """Drop the graphs of split batches and all their parameters."""
        super().release_twins()
        self.recorded = RecordedParams()
