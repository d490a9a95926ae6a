"""What vllm-ascend keeps of captured attention for updates at each replay, kept for each stage of a split batch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch
from vllm.config import VllmConfig
from vllm.forward_context import ForwardContext, override_forward_context
from vllm.platforms import current_platform
from vllm.v1.worker.ubatching import dbo_current_ubatch_id
from vllm_ascend.compilation import acl_graph
from vllm_ascend.compilation.acl_graph import GraphParams, update_full_graph_params

NUM_STAGES = 2

T = TypeVar("T")


class GraphParamsError(RuntimeError):
    """What was recorded while a graph was captured, and what it is to be updated with, do not belong together."""


class TwinParams:
    """The parameters of one graph of a split batch.

    Natively they are found by number of tokens. The stages of one graph have the same number, and so may stages of
    other graphs and whole batches, so here each stage of each graph has its own. The attention of all stages runs on one
    stream: they share the workspace, which comes and goes as it does natively.

    Attributes:
        num_tokens: tokens of a stage with padding, under which vllm-ascend looks its parameters up.
        workspaces: the workspace of fused attention, once the first layer has been captured.
        stages: what each stage has recorded: events, handles and operands, layer by layer.
    """

    def __init__(self, num_tokens: int) -> None:
        self.num_tokens = num_tokens
        self.workspaces: dict[int, torch.Tensor | None] = {num_tokens: None}
        self.stages = [
            GraphParams({num_tokens: []}, self.workspaces, {num_tokens: []}, {num_tokens: []})
            for _ in range(NUM_STAGES)
        ]

    def check(self, num_layers: int | None = None) -> None:
        """Every stage has recorded every layer.

        Args:
            num_layers: how many there are; None when that is not known yet.

        Raises:
            GraphParamsError: it has not.
        """
        at = self.num_tokens
        counts = {len(kept[at]) for stage in self.stages for kept in (stage.events, stage.handles, stage.attn_params)}
        if len(counts) > 1 or 0 in counts or num_layers not in (None, *counts):
            found = [(len(s.events[at]), len(s.handles[at]), len(s.attn_params[at])) for s in self.stages]
            wanted = "equal numbers of them" if num_layers is None else f"{num_layers} of each"
            raise GraphParamsError(
                f"events, handles and operands of the stages with {at} tokens: {found}; there have to be {wanted}"
            )

    def merged(self) -> GraphParams:
        """Those of all stages, in the order in which the graph comes by: layer by layer, in each layer stage by stage."""
        at = self.num_tokens

        def in_order(kept: Sequence[dict[int, list[Any]]]) -> dict[int, list[Any]]:
            return {at: [entry for layer in zip(*(stage[at] for stage in kept), strict=True) for entry in layer]}

        events, handles = in_order([s.events for s in self.stages]), in_order([s.handles for s in self.stages])
        return GraphParams(events, self.workspaces, handles, in_order([s.attn_params for s in self.stages]))

    def let_pass(self, stream: torch.Stream) -> None:
        """Let a replay end that waits for updates which do not come."""
        for stage in self.stages:
            for event in stage.events[self.num_tokens]:
                event.record(stream)


class RecordedParams:
    """Takes the place of vllm-ascend's parameters while graphs of split batches are captured.

    What a stage records goes where it belongs.

    Attributes:
        twin: the parameters of the graph that is captured.
    """

    def __init__(self) -> None:
        self.twin = TwinParams(0)

    @property
    def events(self) -> dict[int, list[Any]]:
        """Those of the stage that asks."""
        return self.twin.stages[dbo_current_ubatch_id()].events

    @property
    def handles(self) -> dict[int, list[Any]]:
        """Those of the stage that asks."""
        return self.twin.stages[dbo_current_ubatch_id()].handles

    @property
    def attn_params(self) -> dict[int, list[Any]]:
        """Those of the stage that asks."""
        return self.twin.stages[dbo_current_ubatch_id()].attn_params

    @property
    def workspaces(self) -> dict[int, torch.Tensor | None]:
        """The one of all stages."""
        return self.twin.workspaces


def merged_context(contexts: Sequence[ForwardContext]) -> ForwardContext:
    """The first stage's context with the attention metadata of all stages, in the order of `TwinParams.merged`.

    Raises:
        GraphParamsError: the stages do not have the same layers.
    """
    stages: list[Any] = [context.attn_metadata for context in contexts]
    layers = [list(stage) for stage in stages]
    names, *others = layers
    if any(other != names for other in others):
        raise GraphParamsError(f"the stages have metadata of different layers: {layers}")
    # vllm-ascend orders layers by the numbers in their names, and leaves those of equal number as they are.
    merged = {f"{name}.ubatch{i}": stage[name] for name in names for i, stage in enumerate(stages)}
    return replace(contexts[0], attn_metadata=merged)


def update_stages(
    backend: Any, stream: torch.Stream, context: ForwardContext, num_tokens: int, vllm_config: VllmConfig
) -> None:
    """Update the graph whose parameters are in force; the updates are done on `stream`, and let the replay pass.

    Args:
        backend: the attention backend.
        stream: the stream of updates.
        context: from `merged_context`.
        num_tokens: tokens of a stage with padding.
        vllm_config: the configuration.
    """
    with override_forward_context(context):
        update_full_graph_params(backend, stream, context, num_tokens, vllm_config)


@contextmanager
def params_in_force(params: Any) -> Iterator[None]:
    """The block in which vllm-ascend finds these parameters, in whatever module of it looks for them."""
    before = acl_graph._graph_params
    acl_graph._graph_params = params
    try:
        yield
    finally:
        acl_graph._graph_params = before


def replay_updated(
    replay: Callable[[], T], params: TwinParams, contexts: Sequence[ForwardContext], *, backend: Any, stream: torch.Stream,
    vllm_config: VllmConfig, lost: Callable[[], object],
) -> T:  # fmt: skip
    """Replay a graph of a split batch, with updates for each of its stages; what `replay` returned.

    The device waits in the replay, at the attention of each layer, until that has been given the lengths of this step. The updates begin
    when the work issued before the replay is done, other replays too. If one of them fails, or `replay` raises, which may have begun,
    the replay is let pass and ended, and the graph is lost: some of its layers might not wait the next time.

    Args:
        replay: replays it.
        params: its parameters.
        contexts: the forward context of each stage.
        backend: the attention backend.
        stream: the stream of updates.
        vllm_config: the configuration.
        lost: drops the graph.

    Raises:
        GraphParamsError: the parameters are not complete, or the stages have different layers; nothing has been replayed.
    """
    context = merged_context(contexts)
    params.check(len(context.attn_metadata) // len(contexts))
    stream.wait_stream(current_platform.current_stream())
    try:
        output = replay()
        with params_in_force(params.merged()):
            update_stages(backend, stream, context, params.num_tokens, vllm_config)
    except BaseException:
        params.let_pass(stream)
        current_platform.synchronize()
        lost()
        raise
    return output
