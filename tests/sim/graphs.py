"""Graphs: captured work that is replayed; stand in for `torch.cuda.CUDAGraph` and `torch.npu.NPUGraph`."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from tests.sim.streams import CaptureError, Stream, StreamContext, current_stream, default_stream, synchronize
from tests.sim.tape import Tape

Pool = tuple[int, int]

_all: weakref.WeakSet[Graph] = weakref.WeakSet()


def captured_graphs() -> list[Graph]:
    """The graphs that hold a capture: each keeps the tensors of its work alive."""
    return [graph for graph in _all if graph.tape is not None]


class Graph:
    """Work that is captured once and replayed often.

    Attributes:
        tape: what was captured; None before and after.
        replays: how often it was replayed.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self.tape: Tape | None = None
        self.replays = 0
        self._capture: Tape | None = None
        _all.add(self)

    def capture_begin(self, pool: Pool | None = None, capture_error_mode: str = "global") -> None:
        """Record what the current stream, and streams forked from it, are given.

        Raises:
            CaptureError: it is the default stream, or under capture already.
        """
        stream = current_stream()
        if stream is default_stream():
            raise CaptureError("the default stream cannot be captured")
        if stream.tape is not None:
            raise CaptureError("the stream is under capture already")
        self._capture = Tape(stream)

    def capture_end(self) -> None:
        """Keep what was recorded.

        Raises:
            CaptureError: there is no capture, it began on another stream, or a fork was not joined.
        """
        tape, self._capture = self._capture, None
        if tape is None:
            raise CaptureError("there is no capture to end")
        if current_stream() is not tape.origin:
            tape.abandon()
            raise CaptureError("the capture ends on another stream than it began on")
        tape.finish()
        self.tape = tape

    def capture_abandon(self) -> None:
        """End a capture that failed; the graph stays empty."""
        if self._capture is not None:
            self._capture.abandon()
            self._capture = None

    @torch.inference_mode()
    def replay(self) -> None:
        """Do the captured work again.

        Raises:
            CaptureError: nothing was captured.
        """
        if self.tape is None:
            raise CaptureError("a graph without a capture is replayed")
        self.replays += 1
        self.tape.replay()

    def reset(self) -> None:
        """Forget the capture."""
        self.tape = None

    def pool(self) -> Pool:
        """The memory pool; all graphs share one."""
        return graph_pool_handle()


class GraphContext:
    """Captures a `with` block; stands in for `torch.cuda.graph` and `torch.npu.graph`."""

    default_capture_stream: Stream | None = None

    def __init__(
        self,
        cuda_graph: Graph,
        pool: Pool | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        **options: Any,
    ) -> None:
        if GraphContext.default_capture_stream is None:
            GraphContext.default_capture_stream = Stream()
        current = current_stream()
        if stream is None:
            stream = current if current is not default_stream() else GraphContext.default_capture_stream
        self.graph, self.pool, self.capture_stream = cuda_graph, pool, stream
        self._context = StreamContext(stream)

    def __enter__(self) -> None:
        synchronize()
        self._context.__enter__()
        try:
            self.graph.capture_begin(self.pool)
        except CaptureError:
            self._context.__exit__()
            raise

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        try:
            if kind is None:
                self.graph.capture_end()
            else:
                self.graph.capture_abandon()
        finally:
            self._context.__exit__()


def is_current_stream_capturing() -> bool:
    """Whether the current stream is under capture."""
    return current_stream().tape is not None


def graph_pool_handle() -> Pool:
    """A memory pool; there is only one."""
    return (0, 0)
