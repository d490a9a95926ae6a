"""Stand-ins for `torch.cuda` and `torch.accelerator` where the model runner needs a device: streams, events, memory.

All work runs at once and in program order, so streams and events have nothing to do.
"""

from __future__ import annotations

import os
from typing import Any

import torch

ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",  # vLLM then accepts that Triton has no driver
    "TORCHDYNAMO_DISABLE": "1",
    "TRITON_INTERPRET": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_PLUGINS": "none",
    "VLLM_USE_V2_MODEL_RUNNER": "1",
}
MEMORY = (8 << 30, 16 << 30)
CREATES_TENSORS = ("arange", "empty", "full", "full_like", "ones", "tensor", "zeros", "zeros_like")


class Event:
    """Everything before it has happened."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        """Nothing is pending."""

    wait = synchronize = record

    def query(self) -> bool:
        return True


class Stream:
    """Work issued to it is done."""

    device_index = 0

    def __init__(self, device: Any = None, **kwargs: Any) -> None:
        self.device = torch.device("cpu")
        self.previous: Stream | None = None

    def wait_stream(self, other: Any) -> None:
        """Nothing is pending."""

    wait_event = wait_stream

    def synchronize(self) -> None:
        """Nothing is pending."""

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def install() -> None:
    """Put the stand-ins in place; once per process, before vLLM is imported."""
    os.environ.update(ENVIRONMENT)
    import torch._dynamo.trace_rules  # its tables list what torch has: they are made before that changes

    only = Stream()

    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    for module, names in {
        torch.cuda: {
            "Stream": Stream, "Event": Event, "current_stream": lambda device=None: only,
            "default_stream": lambda device=None: only, "set_stream": nothing, "stream": lambda stream: stream,
            "synchronize": nothing, "empty_cache": nothing, "set_device": nothing, "current_device": lambda: 0,
            "mem_get_info": lambda device=None: MEMORY, "graph_pool_handle": lambda: (0, 0),
            "is_current_stream_capturing": lambda: False,
        },
        torch.accelerator: {
            "synchronize": nothing, "empty_cache": nothing, "set_device_index": nothing, "set_stream": nothing,
            "reset_peak_memory_stats": nothing, "current_device_index": lambda: 0, "current_stream": lambda device=None: only,
            "get_memory_info": lambda device=None: MEMORY,
        },
        torch.Tensor: {
            "pin_memory": lambda self, *a, **k: self, "is_pinned": lambda self, *a, **k: True, "record_stream": nothing,
        },
        torch: {"Stream": Stream, "Event": Event, **{name: _without_pinning(name) for name in CREATES_TENSORS}},
    }.items():  # fmt: skip
        for name, value in names.items():
            setattr(module, name, value)


def _without_pinning(name: str) -> Any:
    original = getattr(torch, name)

    def create(*args: Any, pin_memory: bool = False, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    create.__name__ = name
    return create


def after_import() -> None:
    """The few names of vLLM that reach a device and have no hook in the platform."""
    from types import SimpleNamespace

    import vllm.utils.torch_utils
    import vllm.v1.sample.ops.topk_topp_sampler as sampler
    import vllm.v1.worker.gpu.buffer_utils as buffers
    from vllm.triton_utils import tl
    from vllm.v1.worker.gpu.sample import gumbel

    def same_memory(tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    vllm.utils.torch_utils.get_accelerator_view_from_cpu_tensor = same_memory
    buffers.get_accelerator_view_from_cpu_tensor = same_memory
    sampler.HAS_TRITON = False  # its kernel does not run in Triton's interpreter
    gumbel.tldevice = SimpleNamespace(log1p=lambda x: tl.log(x + 1.0))  # device functions give None in the interpreter
