"""Streams, events and graphs of the device. Everything else here takes them from this module, and this one from vLLM's platform.

The platform finds them in torch's module of its device: `torch.cuda`, `torch.npu`. vLLM-Ascend redirects a dozen names of
`torch.cuda` for the whole process, but not before its model runner is made, which an FFN rank never does; and `torch.Event` and
`torch.Stream` are not among them.
"""

from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from vllm.platforms import current_platform
from vllm.utils import torch_utils


def new_stream(device: torch.device) -> torch.Stream:
    """A stream of a device."""
    stream: torch.Stream = current_platform.Stream(device=device)
    return stream


def current_stream() -> torch.Stream:
    """The stream of this thread, as the device knows it: vLLM's record is stale where its `set_stream` has been replaced."""
    stream: torch.Stream = current_platform.current_stream()
    return stream


def set_stream(stream: torch.Stream) -> None:
    """Make `stream` the current one of this thread, for the device and for vLLM.

    vLLM keeps its own record in its version of `torch.cuda.set_stream`, which another device does not call.
    """
    current_platform.set_stream(stream)
    torch_utils._current_stream_tls.value = stream


def new_event() -> torch.Event:
    """An event."""
    event: torch.Event = current_platform.Event()
    return event


def synchronize() -> None:
    """Wait for all work of the device."""
    current_platform.synchronize()


def set_device(device: torch.device) -> None:
    """Select the device of this thread."""
    current_platform.set_device(device)


class Graph(Protocol):
    """A captured graph."""

    def replay(self) -> None:
        """Do the captured work again."""


class DeviceGraphs:
    """How graphs are made and captured. Devices differ in the name of the class, and in what a capture needs."""

    def new(self) -> Graph:
        """A graph that holds nothing."""
        graph: Graph = current_platform.CUDAGraph()
        return graph

    def capture(
        self, graph: Graph, pool: Any = None, stream: torch.Stream | None = None
    ) -> AbstractContextManager[Any]:
        """The block whose work the graph records.

        Args:
            graph: from `new`.
            pool: the memory pool; one of its own by default.
            stream: the stream to capture on; one that the device chooses by default.
        """
        block: AbstractContextManager[Any] = current_platform.graph(graph, pool=pool, stream=stream)
        return block
