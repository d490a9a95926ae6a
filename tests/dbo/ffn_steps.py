"""The generated steps of an FFN rank, alone on the simulated device."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from vllm.platforms import current_platform

from tests.dbo.points import OwnError
from tests.sim.connector import Payload, Tokens
from tests.sim.ranks import Rank

FLAGS = {"warm-up": "is_warmup", "capture": "is_graph_capturing", "replay": "is_graph_replaying"}


def device_graphs(npu: bool) -> Any:
    """How the device of this process captures."""
    if npu:
        from afd_backports.vllm_v026_mrv2_dbo.ascend_device import AscendGraphs

        return AscendGraphs()
    from afd_backports.vllm_v026_mrv2_dbo.device import DeviceGraphs

    return DeviceGraphs()


class Bench:
    """Steps that count: each adds one to a tensor.

    Attributes:
        calls: how often the forward was called.
        count: how often it was done, replays too.
        prepared: kinds of the steps that were prepared.
        under_capture: those of them while something was captured.
        scopes: what happened around captures.
        fail: whether the next forward fails.
    """

    def __init__(self, npu: bool, capture_moves_data: bool = True) -> None:
        from afd_backports.vllm_v026_mrv2_dbo.ffn import FFNGraphPolicy, FFNSteps

        self.calls, self.count, self.fail = 0, torch.zeros(1, dtype=torch.int64), False
        self.prepared: list[str] = []
        self.under_capture: list[str] = []
        self.scopes: list[str] = []
        self.steps = FFNSteps(
            self.forward, self.prepare, policy=FFNGraphPolicy(capture_moves_data=capture_moves_data), device_graphs=device_graphs(npu),
            pool=current_platform.graph_pool_handle(), capture_scope=self.scope,
        )  # fmt: skip

    def forward(self, payload: Any) -> torch.Tensor:
        if self.fail:
            self.fail = False
            raise OwnError("in the forward")
        self.calls += 1
        return self.count.add_(1)

    def prepare(self, payload: Any) -> None:
        self.prepared.append(payload.kind)
        if current_platform.is_current_stream_capturing():
            self.under_capture.append(payload.kind)

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append("in")
        yield
        self.scopes.append("out")

    def step(self, kind: str, tokens: int = 2) -> tuple[str, str, int, int]:
        """Kind, what was done, how often until now, how often in Python."""
        stage = {0: Tokens(torch.tensor([tokens, tokens], dtype=torch.int32))}
        done = self.steps.step(Payload(stage, **({FLAGS[kind]: True} if kind in FLAGS else {})))
        return kind, done.value, int(self.count), self.calls

    def refused(self, kind: str, tokens: int = 2) -> str:
        """The error of a step."""
        try:
            self.step(kind, tokens)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "nothing"


def run(rank: Rank, npu: bool) -> dict[str, Any]:
    """All that the tests ask for."""
    seen: dict[str, Any] = {}
    usual = Bench(npu)
    seen["usual"] = [usual.step(kind) for kind in ("warm-up", "capture", "capture", "replay", "eager")]
    seen["usual graphs"], seen["prepared"] = len(usual.steps.graphs), usual.prepared
    seen["prepared under capture"], seen["scopes"] = usual.under_capture, usual.scopes

    device = Bench(npu, capture_moves_data=False)
    # This forward is no transfer: in the simulation it is done while it is captured, too.
    seen["device"] = [device.step(kind) for kind in ("capture", "capture", "replay")]

    broken = Bench(npu)
    broken.step("capture")
    broken.step("warm-up", 3)
    broken.fail = True
    seen["failed"], seen["failed graphs"] = broken.refused("capture", 3), len(broken.steps.graphs)
    before = len(broken.prepared)
    seen["replay of it"], seen["refused prepared"] = broken.refused("replay", 3), len(broken.prepared) - before
    seen["other graph"] = broken.step("replay")
    seen["tried again"] = [broken.step("capture", 3), broken.step("replay", 3)]

    graph, output = next(iter(broken.steps.graphs.values()))
    references = {"graph": weakref.ref(graph), "output": weakref.ref(output)}
    broken.count = torch.zeros(1, dtype=torch.int64)
    del graph, output
    broken.steps.release()
    gc.collect()
    seen["alive"] = [name for name, reference in references.items() if reference() is not None]
    seen["released"] = len(broken.steps.graphs), broken.refused("replay").partition(":")[0]
    return seen
