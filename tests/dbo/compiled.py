"""A model compiled as one graph, whose layers hand over; in a process of `tests.sim.ranks`."""

from __future__ import annotations

from typing import Any

import torch
from afd_backports.vllm_v026_mrv2_dbo import ubatching as generated
from torch import nn
from vllm.v1.worker import ubatching as native

from tests.dbo.handoffs import OwnError, Stages

LAYERS = 2
LOG: list[tuple[int, str]] = []
FAILS: list[tuple[int, str]] = []
"""Where a stage fails."""


def note(what: str) -> None:
    """Write down that the current stage has come here."""
    at = (native.dbo_current_ubatch_id(), what)
    LOG.append(at)
    if at in FAILS:
        raise OwnError


@torch.library.custom_op("afd_tests::send", mutates_args=())
def send(x: torch.Tensor) -> torch.Tensor:
    """Stands for what the connector sends: whether that comes before the handoff is for the compiler to keep."""
    note("send")
    return x.clone()


@torch.library.custom_op("afd_tests::receive", mutates_args=())
def receive(x: torch.Tensor) -> torch.Tensor:
    """Stands for what the connector receives."""
    note("receive")
    return x.clone()


send.register_fake(torch.empty_like)
receive.register_fake(torch.empty_like)


class Layer(nn.Module):
    """Attention sends, hands over and receives."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        hidden = torch.ops.afd_tests.send(self.before(x).relu())
        generated.hand_over(hidden)
        return x + self.after(torch.ops.afd_tests.receive(hidden))


def model() -> nn.Module:
    """A few layers, the same each time."""
    torch.manual_seed(0)
    return nn.Sequential(*(Layer() for _ in range(LAYERS)))


def split(
    compiled: nn.Module, inputs: list[torch.Tensor]
) -> tuple[list[torch.Tensor], list[tuple[int, str]], dict[int, str]]:
    """Both stages run the model: outputs, the order of what they did, errors."""
    outputs: dict[int, torch.Tensor] = {}

    def body(stages: Stages, stage: int) -> None:
        with torch.inference_mode():
            outputs[stage] = compiled(inputs[stage])

    LOG.clear()
    stages = Stages(body).start().finish()
    return [outputs[i] for i in sorted(outputs)], list(LOG), stages.kinds()


def compile_with(rank: Any, backend: str) -> dict[str, Any]:
    """Both stages in a model compiled with `fullgraph=True`; the first run of all compiles it."""
    graphs: list[str] = []

    def counting(module: torch.fx.GraphModule, examples: list[torch.Tensor]) -> Any:
        graphs.append(str(module.graph))
        return torch._dynamo.lookup_backend(backend)(module, examples)

    compiled = torch.compile(model(), backend=counting, fullgraph=True, dynamic=True)
    inputs = [torch.randn(4, 8), torch.randn(6, 8)]
    with torch.inference_mode():
        expected = [model()(x) for x in inputs]
        LOG.clear()
        single = [compiled(x) for x in inputs]
    seen: dict[str, Any] = {"single": list(LOG), "single equal": all(map(torch.allclose, single, expected))}
    outputs, seen["split"], seen["errors"] = split(compiled, inputs)
    seen["split equal"] = len(outputs) == 2 and all(map(torch.allclose, outputs, expected))
    seen["graphs"], seen["handoffs"] = len(graphs), sum(graph.count("vllm.afd_hand_over") for graph in graphs)

    FAILS.append((1, "receive"))
    _, seen["failed"], seen["kinds"] = split(compiled, inputs)
    FAILS.clear()
    outputs, _, seen["errors afterwards"] = split(compiled, inputs)
    seen["equal afterwards"] = len(outputs) == 2 and all(map(torch.allclose, outputs, expected))
    return seen
