"""What of torch means an NPU, and what becomes of code that asks another name for a stream, an event or a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.dbo import ascend
from tests.dbo.eager import clean
from tests.sim.bugs import replaced
from tests.sim.ranks import Rank


def redirected(rank: Rank) -> dict[str, Any]:
    """Which names of torch mean the NPU, before vllm-ascend's model runner is made and after that."""
    from vllm_ascend.worker.v2.utils import torch_npu_graph_wrapper

    before = dict(vars(torch.cuda))
    outside = refusals(
        {name: getattr(torch.cuda, name) for name in ("CUDAGraph", "Event", "current_stream", "synchronize")}
    )
    ascend.make(rank, native=True, graphs=None)
    others = {"CUDAGraph": torch.npu.NPUGraph, "graph": torch_npu_graph_wrapper}  # type: ignore[attr-defined]
    changed = sorted(name for name, value in vars(torch.cuda).items() if before.get(name) is not value)
    return {
        "outside": outside,
        "changed": changed,
        "wrong": [name for name in changed if getattr(torch.cuda, name) is not (others.get(name) or getattr(torch.npu, name))],  # type: ignore[attr-defined]
        "accelerator": sorted(n for n, v in vars(torch.accelerator).items() if getattr(v, "__module__", "").startswith(("tests.", "vllm_ascend."))),
        "left": refusals({
            "cuda.is_current_stream_capturing": torch.cuda.is_current_stream_capturing, "cuda.current_blas_handle": torch.cuda.current_blas_handle,
            "accelerator.current_stream": torch.accelerator.current_stream, "Event": torch.Event, "Stream": torch.Stream,
        }),
    }  # fmt: skip


def refusals(calls: dict[str, Callable[[], Any]]) -> dict[str, bool]:
    """Which of the calls fail."""
    return {name: _fails(call) for name, call in calls.items()}


def _fails(call: Callable[[], Any]) -> bool:
    try:
        call()
    except (AssertionError, RuntimeError):  # as torch has it without such a device
        return True
    return False


def slips(rank: Rank) -> dict[str, str]:
    """The error of each slip on an attention rank; after them all, a step works."""
    from afd_backports.vllm_v026_mrv2_dbo import device, ubatching

    seen: dict[str, str] = {}

    def note(name: str, owner: Any, attribute: str, slip: Any, work: Callable[[], Any]) -> None:
        with replaced(owner, attribute, slip):
            try:
                work()
            except Exception as error:
                seen[name] = type(error).__name__
            else:
                seen[name] = "works"
        clean()

    note(
        "a stream of torch",
        device,
        "new_stream",
        lambda owner: torch.Stream(device=owner),
        lambda: ascend.make(rank, graphs=None),
    )
    session = ascend.make(rank, graphs=None)
    session.add()
    note("an event of torch", ubatching, "new_event", torch.Event, session.scheduler.step)
    note(
        "a device of torch",
        device,
        "set_device",
        lambda owner: torch.accelerator.set_device_index(0),
        session.scheduler.step,
    )
    session.drop()
    session.add()
    note("none", device, "new_event", device.new_event, session.scheduler.step)
    return seen


def ffn_slips(rank: Rank) -> dict[str, str]:
    """The same on an FFN rank, where no model runner is made: it asks for the graphs of a GPU."""
    from afd_backports.vllm_v026_mrv2_dbo.ascend_device import AscendGraphs
    from afd_backports.vllm_v026_mrv2_dbo.device import DeviceGraphs

    from tests.dbo import ffn_steps

    class OfCuda(AscendGraphs):
        def new(self) -> Any:
            return torch.cuda.CUDAGraph()

    class CapturedByCuda(AscendGraphs):
        def capture(self, graph: Any, pool: Any = None, stream: Any = None) -> Any:
            return torch.cuda.graph(graph, pool=pool)

    seen = {}
    graphs = {
        "the platform's": DeviceGraphs,
        "torch.cuda's class": OfCuda,
        "torch.cuda's capture": CapturedByCuda,
        "an NPU's": AscendGraphs,
    }
    for name, kind in graphs.items():
        with replaced(ffn_steps, "device_graphs", lambda npu, kind=kind: kind()):
            bench = ffn_steps.Bench(npu=True)
        seen[name] = bench.refused("capture").partition(":")[0]
    return seen
