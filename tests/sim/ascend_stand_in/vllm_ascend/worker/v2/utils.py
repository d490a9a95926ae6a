"""Names of `torch.cuda` that mean the NPU, and what a capture needs."""

from __future__ import annotations

from contextlib import contextmanager

import torch
from vllm.distributed.device_communicators import cuda_communicator

from vllm_ascend.compilation.acl_graph import get_graph_params, weak_ref_workspaces


class _graph(torch.npu.graph):
    def __exit__(self, *exc):
        super().__exit__(*exc)
        weak_ref_workspaces(get_graph_params())


@contextmanager
def torch_cuda_wrapper():
    """For good, like the original."""
    torch.cuda.set_stream, torch.cuda.graph = torch.npu.set_stream, _graph
    yield


@contextmanager
def communicator_switch():
    """vLLM's capture insists on a class."""
    from tests.sim.communicator import SimCommunicator

    before, cuda_communicator.CudaCommunicator = cuda_communicator.CudaCommunicator, SimCommunicator
    try:
        yield
    finally:
        cuda_communicator.CudaCommunicator = before
