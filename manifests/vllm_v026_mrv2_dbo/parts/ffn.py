"""What the FFN side does with a step that it is told of: the policy, and steps that follow it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from afd_backports.vllm_v026_mrv2_dbo.host import ControlPayload, FFNAction, FFNPolicy

FFNKey = tuple[tuple[int, tuple[int, ...]], ...]
"""The shape of a step: per stage, the tokens of all ranks."""


class FFNControlError(RuntimeError):
    """The FFN side cannot do what it is told; nothing of the step has been run."""


def ffn_key(payload: ControlPayload) -> FFNKey:
    """The shape of the step that a payload announces.

    Raises:
        FFNControlError: it announces no stages.
    """
    stages = sorted(payload.dp_metadata_list.items())
    if not stages:
        raise FFNControlError("the control payload announces a step without stages")
    return tuple((stage, tuple(metadata.num_tokens_across_dp_cpu.tolist())) for stage, metadata in stages)


class FFNGraphPolicy:
    """Captures each shape once, when it is announced for capture, and replays it from then on when a graph is asked for.

    What runs eagerly on the attention side runs eagerly here, whether there is a graph or not.
    """

    def __init__(self) -> None:
        self._captured: set[FFNKey] = set()

    def action(self, payload: ControlPayload) -> FFNAction:
        """What to do. Of a step for which `FFNAction.CAPTURE` is the answer, `captured` has to be told when it is done.

        Raises:
            FFNControlError: the flags contradict each other, or a shape is to be replayed that was never captured.
        """
        key = ffn_key(payload)
        flags = {
            "is_warmup": payload.is_warmup,
            "is_graph_capturing": payload.is_graph_capturing,
            "is_graph_replaying": payload.is_graph_replaying,
        }
        raised = [name for name, flag in flags.items() if flag]
        if len(raised) > 1:
            raise FFNControlError(f"the control payload contradicts itself: {' and '.join(raised)}, for {describe(key)}")
        if payload.is_graph_replaying and key not in self._captured:
            known = "; ".join(map(describe, sorted(self._captured))) or "nothing"
            raise FFNControlError(f"a replay is announced for {describe(key)}, which was never captured here; captured: {known}")
        if payload.is_graph_replaying or payload.is_graph_capturing:
            return FFNAction.REPLAY if key in self._captured else FFNAction.CAPTURE
        return FFNAction.EAGER

    def captured(self, payload: ControlPayload) -> None:
        """The step of this payload is captured. A capture that fails is not, and is tried again when it is announced again."""
        self._captured.add(ffn_key(payload))

    def forget(self) -> None:
        """No shape is captured any more."""
        self._captured.clear()


def describe(key: FFNKey) -> str:
    """A shape for humans."""
    return ", ".join(f"stage {stage} with {'+'.join(map(str, tokens))} tokens" for stage, tokens in key)


class FFNSteps:
    """Runs the steps of an FFN rank: eagerly, under capture, or from a graph, as the policy says.

    The device is reached through the names of `torch.cuda` that vLLM-Ascend redirects.

    Attributes:
        policy: says what is done with a step.
        graphs: the graph of each captured shape, and what its capture returned.
    """

    def __init__(
        self,
        forward: Callable[[ControlPayload], Any],
        prepare: Callable[[ControlPayload], None],
        *,
        capture_moves_data: bool,
        policy: FFNPolicy | None = None,
        pool: Any = None,
        capture_scope: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """Nothing is run yet.

        Args:
            forward: receives, computes and sends all layers and stages of a step. It is called for steps that are eager,
                and for those that are captured.
            prepare: takes note of each step before it is run: host work, no part of a graph.
            capture_moves_data: whether the attention side sends anything while it captures. On a device it does not: a
                capture does none of the work that it records. Then a shape that is announced for capture again has a
                graph already, and there is nothing to replay it on.
            policy: a new `FFNGraphPolicy` by default.
            pool: memory pool of the graphs.
            capture_scope: entered around each capture.
        """
        self.policy = policy or FFNGraphPolicy()
        self.graphs: dict[FFNKey, tuple[torch.cuda.CUDAGraph, Any]] = {}
        self._forward, self._prepare = forward, prepare
        self._capture_moves_data, self._pool, self._capture_scope = capture_moves_data, pool, capture_scope

    def step(self, payload: ControlPayload) -> FFNAction:
        """Run one step; what was done.

        After an error the step is not captured, and the graphs of other steps are as they were.

        Raises:
            FFNControlError: the policy refuses the step.
        """
        action = self.policy.action(payload)
        self._prepare(payload)
        if action is FFNAction.EAGER:
            self._forward(payload)
        elif action is FFNAction.CAPTURE:
            self._capture(payload)
        elif payload.is_graph_replaying or self._capture_moves_data:
            self.graphs[ffn_key(payload)][0].replay()
        return action

    def _capture(self, payload: ControlPayload) -> None:
        graph = torch.cuda.CUDAGraph()
        with self._capture_scope(), torch.cuda.graph(graph, pool=self._pool):
            output = self._forward(payload)
        self.graphs[ffn_key(payload)] = graph, output
        self.policy.captured(payload)

    def release(self) -> None:
        """Drop all graphs: they keep alive what they were captured with."""
        self.graphs.clear()
        self.policy.forget()
