"""Graphs of an NPU."""

from contextlib import AbstractContextManager
from typing import Any

import torch
from afd_backports.vllm_v026_mrv2_dbo.device import DeviceGraphs, Graph
from vllm.platforms import current_platform
from vllm_ascend.worker.v2.utils import torch_npu_graph_wrapper


class AscendGraphs(DeviceGraphs):
    """Made and captured as vllm-ascend's model runner has vLLM do it."""

    def new(self) -> Graph:
        """A graph that holds nothing."""
        graph: Graph = current_platform.NPUGraph()
        return graph

    def capture(
        self, graph: Graph, pool: Any = None, stream: torch.Stream | None = None
    ) -> AbstractContextManager[Any]:
        """The block whose work the graph records; at its end, workspaces of attention belong to the graph's pool."""
        block: AbstractContextManager[Any] = torch_npu_graph_wrapper(graph, pool=pool, stream=stream)
        return block
