"""Collectives over gloo, in the shape of the communicator that vLLM's graph capture insists on."""

from __future__ import annotations

from typing import Any

from vllm.distributed.device_communicators.base_device_communicator import DeviceCommunicatorBase
from vllm.distributed.device_communicators.cuda_communicator import CudaCommunicator


class SimCommunicator(CudaCommunicator):
    """A `CudaCommunicator` by type, which does everything as the base class does."""

    ca_comm = fi_pcie_ipc_ar_comm = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        DeviceCommunicatorBase.__init__(self, *args, **kwargs)


for _name, _value in vars(DeviceCommunicatorBase).items():
    if not _name.startswith("__"):
        setattr(SimCommunicator, _name, _value)
