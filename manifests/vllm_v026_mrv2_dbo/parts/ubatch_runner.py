"""What the ubatch runner does beyond the native one: stages of the host's making, and an end that leaves nothing behind."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch
from afd_backports.vllm_v026_mrv2_dbo import scopes
from afd_backports.vllm_v026_mrv2_dbo.attention import NUM_UBATCHES, ubatch_attn_groups
from afd_backports.vllm_v026_mrv2_dbo.graph_manager import TwinGraphs, UBatchModelCudaGraphManager
from afd_backports.vllm_v026_mrv2_dbo.host import AFDHost, PlainHost, Stage
from afd_backports.vllm_v026_mrv2_dbo.runner import UBatchHost
from afd_backports.vllm_v026_mrv2_dbo.ubatching import StageRun
from torch import nn
from vllm.compilation.wrapper import TorchCompileWithNoGuardsWrapper
from vllm.config import VllmConfig
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import ForwardContext
from vllm.platforms import current_platform
from vllm.v1.worker.gpu import model_runner
from vllm.v1.worker.gpu.cudagraph_utils import ModelCudaGraphManager
from vllm.v1.worker.ubatch_utils import UBatchSlices
from vllm.v1.worker.utils import AttentionGroup

if TYPE_CHECKING:
    from afd_backports.vllm_v026_mrv2_dbo.ubatch_runner import UBatchState


PATIENCE = 5.0
"""Seconds for a stage to stop when its run is ended from outside."""


class StageLeftBehindError(RuntimeError):
    """A stage of a step that was ended from outside is still in a call; stages of another step would get in its way."""


class StageSupport:
    """The part of the ubatch runner that has no counterpart upstream."""

    vllm_config: VllmConfig
    attn_groups: list[list[AttentionGroup]]
    stage_run: StageRun | None = None
    staged: "UBatchState | None" = None
    ubatch_seq_lens: list[torch.Tensor]
    ubatch_query_start_loc: list[torch.Tensor]
    left_behind: Sequence[threading.Thread] = ()
    _pending_finish: Callable[[], Any] | None = None
    _compiled_forwards: Sequence[FunctionType] | None = None

    def set_host(self, host: AFDHost) -> None:
        """Take the plugin's objects, and give each ubatch a metadata builder of its own.

        Raises:
            ValueError: there are not exactly two ubatches.
        """
        num_ubatches = self.vllm_config.parallel_config.num_ubatches
        if num_ubatches != NUM_UBATCHES:
            raise ValueError(
                f"parallel_config.num_ubatches is {num_ubatches}; this runner has exactly {NUM_UBATCHES} stages"
            )
        self.host = host
        self.ubatch_attn_groups = [ubatch_attn_groups(self.attn_groups, i) for i in range(NUM_UBATCHES)]

    def stage_kwargs(
        self, index: int, ubatch_slices: UBatchSlices, batch_tokens: int, context: ForwardContext
    ) -> dict[str, Any]:
        """The additional part of a stage's forward context: what the platform puts there for a batch, and the host's part.

        A platform may hand out views of one persistent tensor. Both stages are prepared before either runs, so each
        gets tensors of its own.

        Args:
            index: number of the stage.
            ubatch_slices: the slices of all stages.
            batch_tokens: tokens of the whole batch without padding.
            context: the stage's forward context.
        """
        part = ubatch_slices[index]
        assert context.dp_metadata is not None
        platform = current_platform.set_additional_forward_context(
            attn_metadata=context.attn_metadata,
            vllm_config=self.vllm_config,
            dp_metadata=context.dp_metadata,
            num_tokens=part.num_tokens,
            num_tokens_across_dp=context.dp_metadata.num_tokens_across_dp_cpu,
            cudagraph_runtime_mode=CUDAGraphMode.NONE,
            batch_descriptor=None,
            ubatch_slices=ubatch_slices,
        )
        own = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in platform.items()}
        real = max(0, min(part.token_slice.stop, batch_tokens) - part.token_slice.start)
        stage = Stage(index, len(ubatch_slices), part, real, context.dp_metadata)
        return {**own, **self.host.metadata.additional_kwargs(stage)}

    def stage(self, state: "UBatchState", cg_mode: CUDAGraphMode) -> None:
        """Keep what has been prepared, if a graph is going to be replayed for it; forget it otherwise.

        A graph reads as many rows of a stage's lengths and offsets as it was captured with. Where a platform pads with fewer
        requests than that, the rows behind them still hold another step's: they become requests without tokens.
        """
        self.staged = state if cg_mode == CUDAGraphMode.FULL else None
        if self.staged is not None:
            for part, seq_lens, starts in zip(
                state.slices, self.ubatch_seq_lens, self.ubatch_query_start_loc, strict=True
            ):
                rows = part.request_slice.stop - part.request_slice.start
                seq_lens[rows:].zero_()
                starts[rows + 1 :].fill_(part.num_tokens)

    def take_staged(self) -> "UBatchState | None":
        """What is staged, for one replay."""
        state, self.staged = self.staged, None
        return state

    def announce(self, forward_contexts: list[ForwardContext]) -> None:
        """Tell the FFN side of the step that is about to run."""
        stages = enumerate(context.dp_metadata for context in forward_contexts)
        self.host.control.send({index: metadata for index, metadata in stages if metadata is not None})

    def new_run(self) -> StageRun:
        """What the stages of the run that is about to begin share.

        Raises:
            StageLeftBehindError: one of an earlier run is left; such a runner can only be shut down.
        """
        if any(thread in threading.enumerate() for thread in self.left_behind):
            raise StageLeftBehindError(
                "a stage of a step that was ended from outside is in a call that has not returned, such as a collective that "
                "another rank has left: shut this runner down"
            )
        return StageRun(NUM_UBATCHES)

    @contextmanager
    def code_kept(self, model: Callable[..., Any]) -> Iterator[None]:
        """Give the classes of a compiled model their code back when both stages have run.

        While a compiled module is called, vLLM lets the `forward` of its class have the compiled code, and then what it had before.
        Of two calls that overlap, the second one finds compiled code, and leaves it for good: no other instance can be compiled.
        """
        forwards = self._compiled_forwards
        if forwards is None:
            modules = model.modules() if isinstance(model, nn.Module) else ()
            classes = {type(module) for module in modules if isinstance(module, TorchCompileWithNoGuardsWrapper)}
            forwards = [one.forward for one in classes if isinstance(one.forward, FunctionType)]
            self._compiled_forwards = forwards
        before = [(forward, forward.__code__) for forward in forwards]
        try:
            yield
        finally:
            for forward, code in before:
                forward.__code__ = code

    def end_run(self, threads: list[threading.Thread], stack: ExitStack) -> None:
        """End the threads of a run, wherever they wait, and what was held for them.

        A stage stops at its handoff. One that is in a call which does not return, such as a collective that another rank has
        left, is not waited for longer than `PATIENCE`; it stops when the call returns, and does not keep the process alive.
        """
        try:
            if self.stage_run is not None:
                self.stage_run.cancel()
            for thread in threads:
                if thread.ident is not None:  # it was started
                    thread.join(PATIENCE)
        finally:
            self.left_behind = [thread for thread in threads if thread in threading.enumerate()]
            self.stage_run = self._pending_finish = None
            stack.close()

    def abort(self) -> None:
        """Stop a run that has begun and is not finished; the stages do no more work."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop what runs, and let go of the model and of all that was made for it."""
        try:
            self.abort()
        finally:
            vars(self).clear()


class HostedRunner(UBatchHost):
    """A runner whose ubatches the plugin takes part in."""

    def make_afd_host(self) -> AFDHost:
        """The plugin's objects; called once, when the KV cache is there."""
        return PlainHost()

    def graph_manager_scope(self) -> AbstractContextManager[None]:
        """The block in which the native runner makes a graph manager that can hold twins."""
        return scopes.graph_manager_factory(model_runner, ModelCudaGraphManager, UBatchModelCudaGraphManager)

    def twin_graphs(self, cudagraph_manager: ModelCudaGraphManager | None) -> TwinGraphs:
        """The graph manager that was made in the scope."""
        assert isinstance(cudagraph_manager, TwinGraphs)
        return cudagraph_manager
