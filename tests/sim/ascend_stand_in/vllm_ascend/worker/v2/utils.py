"""Names of `torch.cuda` that mean the NPU, and what a capture needs."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import torch
from vllm.distributed.device_communicators import cuda_communicator

from tests.sim.ascend import REDIRECTED
from vllm_ascend.compilation.acl_graph import get_graph_params, weak_ref_workspaces


@contextmanager
def torch_npu_graph_wrapper(*args, **kwargs):
    """Workspaces are the graph's when it has been captured."""
    with ExitStack() as stack:
        stack.callback(lambda: weak_ref_workspaces(get_graph_params()))
        yield stack.enter_context(torch.npu.graph(*args, **kwargs))


_OTHERS = {"CUDAGraph": torch.npu.NPUGraph, "graph": torch_npu_graph_wrapper}


@contextmanager
def torch_cuda_wrapper():
    """For good, like the original, and the same names."""
    for name in REDIRECTED:
        setattr(torch.cuda, name, _OTHERS[name] if name in _OTHERS else getattr(torch.npu, name))
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
