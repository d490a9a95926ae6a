"""The stand-in for vllm-ascend does what was recorded of vllm-ascend, and so does a source tree where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.sim import ascend_abi, ascend_record
from tests.sim.environments import ASCEND_VARIABLE, STAND_IN, ascend
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm

RECORDED = ascend_record.recorded()

Calls = list[dict[str, list[ascend_record.Call]]]


@pytest.fixture(scope="module", params=["stand-in", "source tree"])
def calls(request: pytest.FixtureRequest) -> Calls:
    """Of each rank."""
    environment = STAND_IN if request.param == "stand-in" else ascend()
    if environment is None:
        pytest.skip(f"{ASCEND_VARIABLE} is not set; it names a source tree of vllm-ascend at the pinned commit")
    return run_ranks(ascend_record.record, environment=environment)


@pytest.mark.parametrize("name", RECORDED)
def test_it_does_what_was_recorded(calls: Calls, name: str) -> None:
    for rank, seen in enumerate(calls):
        assert len(seen[name]) == len(RECORDED[name])
        for number, (call, pair) in enumerate(zip(seen[name], RECORDED[name], strict=True)):
            assert call == pair[rank], f"call {number}"


def test_nothing_else_is_called(calls: Calls) -> None:
    assert [set(seen) for seen in calls] == [set(RECORDED)] * 2


def test_padding_is_in_the_record() -> None:
    """What vLLM does not do: one request more, with all tokens of padding, and a length that is left of another step."""
    results = [pair[0]["result"] for pair in RECORDED["prepare_inputs"]]
    padded = [r for r in results if r["num_tokens_after_padding"] - r["num_tokens"] > 1]
    assert len(padded) >= 2
    for result in padded:
        assert result["num_reqs_after_padding"] == result["num_reqs"] + 1
        assert result["query_start_loc"][-2:] == [result["num_tokens"], result["num_tokens_after_padding"]]
    assert any(result["seq_lens_np"][result["num_reqs"]] for result in padded)


# Each function and method of the stand-in: where its behaviour is recorded, or why it is not.
NATIVE = "calls what is recorded, in vLLM's own method"
NAME = "a constant"
KERNELS = "plain torch in place of a kernel: the tests compare logits"
BLOCKS: Mapping[str, str] = {
    "ascend_forward_context._ExtraForwardContextProxy.check_extra_attr": "_ExtraForwardContextProxy",
    "ascend_forward_context._ExtraForwardContextProxy.__getattr__": "_ExtraForwardContextProxy",
    "ascend_forward_context._ExtraForwardContextProxy.__setattr__": "_ExtraForwardContextProxy",
    "ascend_forward_context._ExtraForwardContextProxy._ctx": "_ExtraForwardContextProxy",
    "platform.NPUPlatform.check_and_update_config": "the tests set what it decides",
    "platform.NPUPlatform.get_attn_backend_cls": NAME,
    "platform.NPUPlatform.set_additional_forward_context": "set_additional_forward_context",
    "attention.mla_v1.AscendMLABackend.get_name": NAME,
    "attention.mla_v1.AscendMLABackend.get_builder_cls": NAME,
    "attention.mla_v1.AscendMLABackend.get_impl_cls": NAME,
    "attention.mla_v1.AscendMLABackend.get_kv_cache_shape": NAME,
    "attention.mla_v1.AscendMLABackend.get_supported_kernel_block_sizes": NAME,
    "attention.mla_v1.AscendMLAMetadataBuilder.get_cudagraph_support": NAME,
    "attention.mla_v1.AscendMLAMetadataBuilder.build": "prepare_attn",
    "attention.mla_v1.AscendMLAImpl.__init__": KERNELS,
    "attention.mla_v1.AscendMLAImpl.process_weights_after_loading": KERNELS,
    "attention.mla_v1.AscendMLAImpl.forward_mha": "not called",
    "attention.mla_v1.AscendMLAImpl.forward_mqa": "not called",
    "attention.mla_v1.AscendMLAImpl.forward": KERNELS,
    "attention.mla_v1.AscendMLAImpl._attend": "capture",
    "attention.mla_v1.AscendMLAImpl.update_graph_params": "run_fullgraph",
    "compilation.acl_graph.GraphParams.__init__": "set_graph_params",
    "compilation.acl_graph.set_graph_params": "set_graph_params",
    "compilation.acl_graph.get_graph_params": "set_graph_params",
    "compilation.acl_graph.update_graph_params_workspaces": "capture",
    "compilation.acl_graph.weak_ref_workspaces": "capture",
    "compilation.acl_graph.update_full_graph_params": "run_fullgraph",
    "ops.rotary_embedding._record_cos_and_sin_cache": "get_cos_and_sin_mla",
    "ops.rotary_embedding.set_cos_and_sin": "set_cos_and_sin",
    "ops.rotary_embedding.get_cos_and_sin_mla": "get_cos_and_sin_mla",
    "ops.rotary_embedding.update_cos_sin": "of dense attention, which the stand-in has not",
    "worker.v2.aclgraph_utils.ModelWithContext.__init__": NATIVE,
    "worker.v2.aclgraph_utils.ModelWithContext.forward": "capture",
    "worker.v2.aclgraph_utils.ModelAclGraphManager.__init__": "set_graph_params",
    "worker.v2.aclgraph_utils.ModelAclGraphManager.run_fullgraph": "run_fullgraph",
    "worker.v2.aclgraph_utils.ModelAclGraphManager.capture": "capture",
    "worker.v2.attn_utils.build_attn_state": "build_attn_state",
    "worker.v2.input_batch.AscendInputBuffers.__init__": "AscendInputBuffers",
    "worker.v2.input_batch.AscendInputBatch.make_dummy": "make_dummy",
    "worker.v2.model_runner.NPUModelRunner.__init__": NATIVE,
    "worker.v2.model_runner.NPUModelRunner.initialize_kv_cache": NATIVE,
    "worker.v2.model_runner.NPUModelRunner.prepare_inputs": "prepare_inputs",
    "worker.v2.model_runner.graph_manager_wrapper": "graph_manager_wrapper",
    "worker.v2.model_states.default.AscendModelState.prepare_attn": "prepare_attn",
    "worker.v2.utils.torch_npu_graph_wrapper": "capture",
    "worker.v2.utils.torch_cuda_wrapper": "its names are `tests.sim.ascend.REDIRECTED`",
    "worker.v2.utils.communicator_switch": "communicator_switch",
}
REASONS = {NATIVE, NAME, KERNELS}


def functions(facts: Mapping[str, Any], place: str) -> list[str]:
    """All functions and methods, by their names in full."""
    found = [f"{place}.{name}" for name, fact in facts.items() if fact["kind"] == "function"]
    return found + [f"{place}.{name}.{m}" for name, fact in facts.items() for m in fact.get("methods", ())]


def test_every_method_of_the_stand_in_is_recorded_or_there_is_a_reason() -> None:
    root = Path(ascend_abi.__file__).with_name("ascend_stand_in") / "vllm_ascend"
    files = [path for path in sorted(root.rglob("*.py")) if path.stem != "__init__" and path != root / "_patches.py"]
    names = [
        name
        for path in files
        for name in functions(
            ascend_abi.facts(path.read_text(encoding="utf-8")), ".".join(path.relative_to(root).with_suffix("").parts)
        )
    ]
    assert sorted(BLOCKS) == sorted(name for name in names if "._graph." not in name)
    assert {where for where in BLOCKS.values() if " " not in where} <= set(RECORDED)
    assert set(RECORDED) <= set(BLOCKS.values())
