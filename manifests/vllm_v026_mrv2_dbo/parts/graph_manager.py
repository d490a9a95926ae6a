"""Graphs of split batches beside the native ones: which there are, and what has to be staged before one is replayed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from afd_backports.vllm_v026_mrv2_dbo import scopes
from afd_backports.vllm_v026_mrv2_dbo.descriptor import AFDBatchExecutionDescriptor, UBatchGraphManager
from afd_backports.vllm_v026_mrv2_dbo.device import DeviceGraphs, Graph, current_stream
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.worker.gpu import cudagraph_utils
from vllm.v1.worker.ubatch_utils import UBatchSlice, UBatchSlices

if TYPE_CHECKING:
    from afd_backports.vllm_v026_mrv2_dbo.ubatch_runner import AFDAscendUBatchRunnerV2, UBatchState


class StagedStateError(RuntimeError):
    """What is staged is not what the graph to be replayed was captured for."""


def covers(captured: UBatchSlices, staged: UBatchSlices) -> bool:
    """Whether a graph that was captured for some slices is right for others.

    What is recorded are addresses and sizes: of a stage's tokens, and of the rows of its requests from the first one on. Tokens
    and first rows have to be the same. How many of the rows are requests a graph is told at each replay, by their lengths, so
    there may be fewer than it was captured for: vLLM pads with as many requests as there are rows, vllm-ascend with one.
    """

    def fits(rows: UBatchSlice, part: UBatchSlice) -> bool:
        starts = rows.request_slice.start == part.request_slice.start
        return rows.token_slice == part.token_slice and starts and part.request_slice.stop <= rows.request_slice.stop

    return len(captured) == len(staged) and all(map(fits, captured, staged))


class TwinGraphs(UBatchGraphManager):
    """Twins of the native graphs: the same shapes, split into two ubatches.

    Attributes:
        device_graphs: makes and captures graphs.
        stage_runner: prepares and runs the ubatches; None when nothing is split.
        twin_descs: what is captured split, by mode, large shapes first.
        twin_slices: the slices that each twin was captured with.
        replay_hooks: what is done around each replay.
    """

    graphs: dict[cudagraph_utils.BatchExecutionDescriptor, Graph]
    _capture_descs: dict[CUDAGraphMode, list[cudagraph_utils.BatchExecutionDescriptor]]
    device_graphs = DeviceGraphs()
    stage_runner: "AFDAscendUBatchRunnerV2 | None" = None

    def attach(self, ubatch_runner: "AFDAscendUBatchRunnerV2 | None") -> None:
        """Take the ubatch runner, and choose the native shapes that get a twin."""
        self.stage_runner = ubatch_runner
        self.replay_hooks = scopes.ReplayHooks()
        self.twin_slices: dict[cudagraph_utils.BatchExecutionDescriptor, UBatchSlices] = {}
        natives = self._capture_descs.get(CUDAGraphMode.FULL, [])
        twins = [twin for desc in natives if (twin := self._maybe_ubatch_twin(desc)) is not None]
        self.twin_descs = {CUDAGraphMode.FULL: twins} if twins else {}

    def _maybe_ubatch_twin(self, desc: cudagraph_utils.BatchExecutionDescriptor) -> AFDBatchExecutionDescriptor | None:
        """The twin of a native shape, when it can have one."""
        raise NotImplementedError

    def dispatch(
        self, num_reqs: int, num_tokens: int, uniform_token_count: int | None, num_active_loras: int, num_ubatches: int = 1
    ) -> AFDBatchExecutionDescriptor:  # fmt: skip
        """The smallest captured shape that fits; natively for a single batch."""
        if num_ubatches == 1:
            native: Any = super(UBatchGraphManager, self)
            return AFDBatchExecutionDescriptor.of(
                native.dispatch(num_reqs, num_tokens, uniform_token_count, num_active_loras)
            )
        wanted = (num_reqs, num_tokens, uniform_token_count, num_active_loras)
        for twin in reversed(self.twin_descs.get(CUDAGraphMode.FULL, [])):
            if (
                twin in self.graphs
                and twin.num_ubatches == num_ubatches
                and cudagraph_utils._is_compatible(twin, *wanted)
            ):
                return twin
        return AFDBatchExecutionDescriptor(
            CUDAGraphMode.NONE, num_tokens, num_reqs, num_active_loras=num_active_loras, num_ubatches=num_ubatches
        )

    def before_capture(
        self, desc: cudagraph_utils.BatchExecutionDescriptor, state: "UBatchState", warmup: bool
    ) -> None:
        """Tell the FFN side of the warm-up or the capture that is about to begin, and order it after its preparation."""
        assert self.stage_runner is not None
        self.twin_slices[desc] = state.slices
        self.stage_runner.capture_stream.wait_stream(current_stream())
        with scopes.capturing(self.stage_runner.host.control, warmup):
            self.stage_runner.announce(state.forward_contexts)

    def after_capture(self, desc: cudagraph_utils.BatchExecutionDescriptor) -> None:
        """A twin has been captured."""

    @contextmanager
    def staged_replay(self, desc: cudagraph_utils.BatchExecutionDescriptor) -> Iterator["UBatchState"]:
        """Everything around the replay of a twin: the staged ubatches, the FFN side's notice, the hooks.

        Raises:
            StagedStateError: no ubatches are staged, or others than the graph was captured for.
        """
        if self.stage_runner is None:
            raise StagedStateError(f"there is no ubatch runner, so nothing can be staged for the replay of {desc}")
        state = self.stage_runner.take_staged()
        if state is None:
            raise StagedStateError(f"no ubatches are staged for the replay of {desc}")
        if not covers(self.twin_slices[desc], state.slices):
            raise StagedStateError(f"{state.slices} are staged; {desc} was captured for {self.twin_slices[desc]}")
        with scopes.replaying(self.stage_runner.host.control), self.replay_hooks.around(desc):
            self.stage_runner.announce(state.forward_contexts)
            yield state

    def release_twin(self, desc: cudagraph_utils.BatchExecutionDescriptor) -> None:
        """Drop one graph of a split batch, if it is there."""
        self.graphs.pop(desc, None)
        self.twin_slices.pop(desc, None)

    def release_twins(self) -> None:
        """Drop the graphs of split batches; the native ones stay."""
        for twins in self.twin_descs.values():
            for twin in twins:
                self.release_twin(twin)

    def release(self) -> None:
        """Drop all graphs, at the end of the runner: a graph keeps alive what it was captured with."""
        try:
            self.release_twins()
        finally:
            self.graphs.clear()
            self.attach(None)
