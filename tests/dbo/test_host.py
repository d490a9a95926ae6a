"""What a plugin provides: its objects are described by protocols, and the plain ones fit them."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Protocol

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

import torch
from afd_backports.vllm_v026_mrv2_dbo import host, runner
from afd_backports.vllm_v026_mrv2_dbo.ubatch_runner import AFDAscendUBatchRunnerV2
from vllm.forward_context import DPMetadata
from vllm.v1.worker.ubatch_utils import UBatchSlice

pytestmark = pytest.mark.vllm

PROTOCOLS = [value for value in vars(host).values() if isinstance(value, type) and Protocol in value.__bases__]


def members(protocol: type) -> dict[str, Any]:
    return {name: value for name, value in vars(protocol).items() if not name.startswith("_") or name == "__call__"}


def test_all_members_of_the_protocols_are_typed_and_described() -> None:
    assert {p.__name__ for p in PROTOCOLS} >= {
        "AFDControl",
        "AFDHost",
        "AFDSettings",
        "Connector",
        "ControlPayload",
        "FFNConnector",
        "FFNPolicy",
        "MetadataProvider",
        "RankTokens",
    }
    for protocol in PROTOCOLS:
        for name, member in members(protocol).items():
            function = member.fget if isinstance(member, property) else member
            if inspect.isfunction(function):
                assert function.__doc__, (protocol, name)
                signature = inspect.signature(function)
                assert signature.return_annotation is not inspect.Signature.empty, (protocol, name)
                assert all(p.annotation is not p.empty for p in list(signature.parameters.values())[1:]), (
                    protocol,
                    name,
                )


@pytest.mark.parametrize(
    ("plain", "protocol"),
    [(host.PlainMetadata, host.MetadataProvider), (host.SilentControl, host.AFDControl)],
)
def test_the_plain_objects_have_the_signatures_of_the_protocols(plain: type, protocol: type) -> None:
    for name, member in members(protocol).items():
        if inspect.isfunction(member):
            assert inspect.signature(vars(plain)[name]) == inspect.signature(member)


def test_the_plain_host_adds_nothing() -> None:
    plain = host.PlainHost()
    across = DPMetadata(torch.tensor([3, 3], dtype=torch.int32))
    stage = host.Stage(0, 2, UBatchSlice(slice(0, 1), slice(0, 3)), 3, across)
    assert plain.metadata.additional_kwargs(stage) == {}
    batch: Any = object()
    assert plain.metadata.complete(object(), batch, stage.slice, False) is batch  # type: ignore[arg-type]
    assert not (plain.control.is_warmup)
    assert not (plain.control.is_graph_capturing)
    assert not (plain.control.is_graph_replaying)
    plain.control.send({0: across})
    with pytest.raises(dataclasses.FrozenInstanceError):
        stage.index = 1  # type: ignore[misc]


def test_what_a_protocol_has_by_default() -> None:
    """A stage is the first one; a plugin's logs show what the FFN side does by these words."""
    for protocol, name in ((host.Connector, "recv_ffn_output"), (host.FFNConnector, "recv_attn_output")):
        assert inspect.signature(vars(protocol)[name]).parameters["ubatch_idx"].default == 0
    prepare = [inspect.signature(vars(kind)["prepare"]) for kind in (runner.UBatchRunner, AFDAscendUBatchRunnerV2)]
    defaults = [{p.name: p.default for p in signature.parameters.values()} for signature in prepare]
    assert defaults[0] == defaults[1]  # the execute path and the runner mean the same by what is left out
    assert [action.value for action in host.FFNAction] == ["eager", "capture", "replay", "keep"]
