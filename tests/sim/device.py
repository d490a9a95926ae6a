"""The simulated device, and what of torch means it: for the whole process, and for good.

A simulated GPU takes the place of `torch.cuda` and `torch.accelerator`. A simulated NPU has names of its own (`tests.sim.ascend`), and
everything else in torch means as much as it does with `torch_npu`: to ask `torch.cuda` is an error until vllm-ascend redirects it.

Before vLLM is imported: it wraps `torch.cuda.set_stream` when it is. In the processes of `tests.sim.ranks` only.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

from tests.sim import graphs, streams, tape

MEMORY = (8 << 30, 16 << 30)
"""Free and total bytes; of no meaning."""

_FACTORIES = (
    "arange", "as_tensor", "empty", "empty_like", "full", "full_like", "ones", "ones_like", "rand", "randint", "randn",
    "tensor", "zeros", "zeros_like",
)  # fmt: skip

_installed: list[str] = []


def install() -> None:
    """Make it a GPU; a second call does nothing, whatever the first one made it."""
    if _begin("gpu"):
        _replace(torch.cuda, NAMES)
        _replace(torch.accelerator, _ACCELERATOR)
        _replace(torch, {"Stream": streams.Stream, "Event": streams.Event})
        streams.setter[0] = _set_stream


def install_npu() -> None:
    """Make it an NPU, as far as torch itself is concerned.

    `torch.accelerator` knows a device of this kind. Of what it offers, vLLM's model runner needs one name, and vllm-ascend puts its
    own in the place of others. An event or a stream of torch itself is none of the device's.
    """
    if _begin("npu"):
        _replace(torch.accelerator, {"synchronize": _synchronize})
        _replace(torch, {"Stream": _Nobodys, "Event": _Nobodys})


class _Nobodys:
    """A class that works on a GPU, and that nobody redirects to an NPU."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise streams.SimulationError("torch.Event and torch.Stream are not redirected to an NPU: ask the platform")


def _begin(kind: str) -> bool:
    """What both kinds have in common, once."""
    if _installed:
        return False
    _installed.append(kind)
    importlib.import_module("torch._dynamo.trace_rules")  # its tables list torch.cuda as it is before
    importlib.import_module(
        "torch._dynamo.variables.torch"
    ).TorchInGraphFunctionVariable._get_handlers()  # and so do these

    _replace(
        torch.Tensor,
        {"to": _moving(torch.Tensor.to), "is_pinned": _yes, "pin_memory": _itself, "record_stream": _nothing},
    )
    _replace(torch, {name: _making(getattr(torch, name)) for name in _FACTORIES})
    _open_python_operators()
    _open_triton_kernels()
    return True


def on_cpu(device: object) -> Any:
    """The CPU in the place of an accelerator: `npu`, `cuda:0`."""
    return "cpu" if str(device).partition(":")[0] in {"npu", "cuda"} else device


def _replace(holder: Any, new: dict[str, Any]) -> None:
    for name, value in new.items():
        setattr(holder, name, value)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What has no effect here."""


def _yes(*args: Any, **kwargs: Any) -> bool:
    return True


def _itself(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return tensor


def _zero(*args: Any, **kwargs: Any) -> int:
    return 0


def _memory(*args: Any, **kwargs: Any) -> tuple[int, int]:
    return MEMORY


def _set_stream(stream: streams.Stream) -> None:
    torch.cuda.set_stream(stream)  # type: ignore[arg-type]  # as vLLM has wrapped it


def _synchronize(*args: Any, **kwargs: Any) -> None:
    streams.synchronize()


NAMES: dict[str, Any] = {
    "CUDAGraph": graphs.Graph,
    "Event": streams.Event,
    "ExternalStream": streams.Stream,
    "Stream": streams.Stream,
    "StreamContext": streams.StreamContext,
    "current_blas_handle": _zero,
    "current_device": _zero,
    "current_stream": streams.current_stream,
    "default_stream": streams.default_stream,
    "empty_cache": _nothing,
    "graph": graphs.GraphContext,
    "graph_pool_handle": graphs.graph_pool_handle,
    "is_current_stream_capturing": graphs.is_current_stream_capturing,
    "mem_get_info": _memory,
    "set_device": _nothing,
    "set_stream": streams.set_stream,
    "stream": streams.StreamContext,
    "synchronize": _synchronize,
}
"""What torch's module of an accelerator has."""

_ACCELERATOR: dict[str, Any] = {
    "current_device_index": _zero,
    "current_stream": streams.current_stream,
    "empty_cache": _nothing,
    "get_memory_info": _memory,
    "max_memory_allocated": _zero,
    "memory_allocated": _zero,
    "memory_reserved": _zero,
    "memory_stats": lambda *args: {},
    "reset_peak_memory_stats": _nothing,
    "set_device_index": _nothing,
    "set_stream": _set_stream,
    "synchronize": _synchronize,
}


def _moving(to: Callable[..., Any]) -> Callable[..., Any]:
    """`Tensor.to` that stays on the CPU."""

    def moved(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        args = tuple(on_cpu(a) if isinstance(a, (str, torch.device)) else a for a in args)
        if kwargs.get("device") is not None:
            kwargs["device"] = on_cpu(kwargs["device"])
        return to(self, *args, **kwargs)

    return moved


def _making(factory: Callable[..., Any]) -> Callable[..., Any]:
    """A tensor factory that makes plain CPU tensors."""

    def made(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("pin_memory", None)
        if kwargs.get("device") is not None:
            kwargs["device"] = on_cpu(kwargs["device"])
        return factory(*args, **kwargs)

    made.__name__ = factory.__name__
    return made


def _open_python_operators() -> None:
    """Note the bodies of vLLM's operators: the tape records what is in them."""
    implement = torch.library.Library.impl

    def noting(self: Any, op_name: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
        if self.ns == "vllm" and isinstance(op_name, str):
            tape.PYTHON_OPERATORS[f"vllm::{op_name.partition('.')[0]}"] = fn
        return implement(self, op_name, fn, *args, **kwargs)

    torch.library.Library.impl = noting  # type: ignore[method-assign]


def _open_triton_kernels() -> None:
    """Record launches of interpreted kernels: the interpreter works where no dispatch mode sees it."""
    from triton.runtime import interpreter

    launch = interpreter.GridExecutor.__call__

    def launched(self: Any, *args: Any, **kwargs: Any) -> Any:
        operands = tape.tensors((args, kwargs))
        return tape.kernel(f"triton::{self.fn.__name__}", lambda: launch(self, *args, **kwargs), operands)

    interpreter.GridExecutor.__call__ = launched
