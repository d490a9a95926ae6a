"""What the FFN side does with a step that it is told of: the policy, and steps that follow it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from afd_backports.vllm_v026_mrv2_dbo.device import DeviceGraphs, Graph
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
    """Captures each shape once, when it is announced for capture, and replays it when a replay is announced.

    What runs eagerly on the attention side runs eagerly here, whether there is a graph or not. A shape that is announced for capture
    again, as the attention side captures anew what failed there, keeps its graph. Whether that is replayed depends on the connector.
    """

    def __init__(self, *, capture_moves_data: bool) -> None:
        """Nothing is captured yet.

        Args:
            capture_moves_data: whether the attention side sends hidden states while it captures, and waits for what comes back. A
                connector whose transfers are work of the device does not: a capture does none of the work that it records,
                and an FFN rank that replayed would wait for ever. One that transfers on the host, where it is called, does.
        """
        self._moves_data = capture_moves_data
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
            raise FFNControlError(
                f"the control payload contradicts itself: {' and '.join(raised)}, for {describe(key)}"
            )
        if payload.is_graph_replaying and key not in self._captured:
            known = "; ".join(map(describe, sorted(self._captured))) or "nothing"
            raise FFNControlError(
                f"a replay is announced for {describe(key)}, which was never captured here; captured: {known}"
            )
        if payload.is_graph_replaying:
            return FFNAction.REPLAY
        if not payload.is_graph_capturing:
            return FFNAction.EAGER
        if key not in self._captured:
            return FFNAction.CAPTURE
        return FFNAction.REPLAY if self._moves_data else FFNAction.KEEP

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

    Attributes:
        policy: says what is done with a step.
        graphs: the graph of each captured shape, and what its capture returned.
    """

    def __init__(
        self,
        forward: Callable[[ControlPayload], Any],
        prepare: Callable[[ControlPayload], None],
        *,
        policy: FFNPolicy,
        device_graphs: DeviceGraphs,
        pool: Any = None,
        capture_scope: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """Nothing is run yet.

        Args:
            forward: receives, computes and sends all layers and stages of a step. It is called for steps that are eager,
                and for those that are captured.
            prepare: takes note of each step before it is run: host work, no part of a graph.
            policy: says what is done with each step; an `FFNGraphPolicy`.
            device_graphs: makes and captures the graphs; on an NPU `ascend_device.AscendGraphs`.
            pool: memory pool of the graphs.
            capture_scope: entered around each capture.
        """
        self.policy = policy
        self.graphs: dict[FFNKey, tuple[Graph, Any]] = {}
        self._forward, self._prepare = forward, prepare
        self._device_graphs, self._pool, self._capture_scope = device_graphs, pool, capture_scope

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
        elif action is FFNAction.REPLAY:
            self.graphs[ffn_key(payload)][0].replay()
        return action

    def _capture(self, payload: ControlPayload) -> None:
        graph = self._device_graphs.new()
        with self._capture_scope(), self._device_graphs.capture(graph, pool=self._pool):
            output = self._forward(payload)
        self.graphs[ffn_key(payload)] = graph, output
        self.policy.captured(payload)

    def release(self) -> None:
        """Drop all graphs: they keep alive what they were captured with."""
        self.graphs.clear()
        self.policy.forget()
