"""Nothing that is generated names a device: streams, events and graphs come from the platform, and a slip is noticed."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from afd_backports.vllm_v026_mrv2_dbo import descriptor, device

from tests.dbo import slips
from tests.sim.ascend import ACCELERATOR, REDIRECTED
from tests.sim.environments import STAND_IN, Environment, ascend
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm

MODULES = sorted(Path(descriptor.__file__).parent.glob("*.py"))
DEVICES = {"torch.cuda", "torch.npu", "torch.xpu", "torch.accelerator", "torch.Event", "torch.Stream", "torch_npu"}


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but annotations: a type says nothing to a device."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from evaluated(child)


def named(source: str) -> list[str]:
    """What of torch that belongs to a device is named in a source text."""
    found = []
    for node in evaluated(ast.parse(source)):
        if isinstance(node, (ast.Attribute, ast.Name)) and ast.unparse(node) in DEVICES:
            found.append(ast.unparse(node))
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name in DEVICES]
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [
                node.module
                for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
                if name in DEVICES
            ]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_device_is_named(path: Path) -> None:
    assert named(path.read_text(encoding="utf-8")) == []


def test_names_of_a_device_are_found() -> None:
    assert named("def f(s: torch.Stream) -> torch.cuda.Event: x: torch.Event = 1") == []
    assert named("x = torch.cuda.Event()\ny = torch.Event()") == ["torch.cuda", "torch.Event"]
    assert named("from torch import cuda\nimport torch.npu\nfrom torch.cuda import Event") == [
        "torch",
        "torch.npu",
        "torch.cuda",
    ]


@pytest.fixture(scope="module", params=["stand-in", "vllm-ascend"])
def npu(request: pytest.FixtureRequest) -> Environment:
    if request.param == "stand-in":
        return STAND_IN
    tree = ascend()
    if tree is None:
        pytest.skip("there is no tree of vllm-ascend; the stand-in is asked the same")
    return tree


def test_what_means_an_npu_is_what_vllm_ascend_redirects(npu: Environment) -> None:
    for seen in run_ranks(slips.redirected, environment=npu):
        assert seen["changed"] == sorted(REDIRECTED)
        assert seen["wrong"] == []
        assert seen["accelerator"] == sorted({*ACCELERATOR, "synchronize"})
        assert all(seen["outside"].values()), seen
        assert all(seen["left"].values()), seen


def test_a_slip_of_an_attention_rank_fails(npu: Environment) -> None:
    for seen in run_ranks(slips.slips, environment=npu):
        assert seen == {
            "a stream of torch": "SimulationError", "an event of torch": "SimulationError", "a device of torch": "RuntimeError", "none": "works",
        }  # fmt: skip


def test_a_slip_of_an_ffn_rank_fails(npu: Environment) -> None:
    (seen,) = run_ranks(slips.ffn_slips, world=1, environment=npu)
    errors: dict[str, Any] = {
        "the platform's": "TypeError", "torch.cuda's class": "RuntimeError", "torch.cuda's capture": "RuntimeError", "an NPU's": "nothing",
    }  # fmt: skip
    assert seen == errors


def test_all_goes_to_the_platform() -> None:
    with mock.patch.object(device, "current_platform") as platform:
        stream, event, graph = device.new_stream("a device"), device.new_event(), device.DeviceGraphs().new()  # type: ignore[arg-type]
        made = platform.Stream.return_value, platform.Event.return_value, platform.CUDAGraph.return_value
        assert (stream, event, graph) == made
        assert device.current_stream() is platform.current_stream.return_value
        device.synchronize()
        device.set_device("a device")  # type: ignore[arg-type]
        block = device.DeviceGraphs().capture(graph, "a pool", stream)
        assert block is platform.graph.return_value
        device.DeviceGraphs().capture(graph)
    assert platform.mock_calls == [
        mock.call.Stream(device="a device"), mock.call.Event(), mock.call.CUDAGraph(), mock.call.current_stream(), mock.call.synchronize(),
        mock.call.set_device("a device"), mock.call.graph(graph, pool="a pool", stream=stream), mock.call.graph(graph, pool=None, stream=None),
    ]  # fmt: skip


def test_the_current_stream_is_set_for_the_platform_and_for_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    record: Any = types.SimpleNamespace(value=None)
    monkeypatch.setattr(device.torch_utils, "_current_stream_tls", record)
    with mock.patch.object(device, "current_platform") as platform:
        device.set_stream("a stream")  # type: ignore[arg-type]
    assert record.value == "a stream"
    assert platform.mock_calls == [mock.call.set_stream("a stream")]
