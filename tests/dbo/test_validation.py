"""Configurations: every setting that is not accepted has its own message; vLLM's own validation is relaxed for nobody else."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from transformers import PretrainedConfig

from tests.dbo import configurations
from tests.dbo.configurations import AFD, CUDAGraphMode
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm

GRAPHS = {"model_config.enforce_eager": False, "model_config.use_mla": True}
SOMETHING = "something"

# What is changed in an accepted configuration, and the message: the setting, its value, what is accepted.
REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "another vLLM": ({"vllm.__version__": "0.27.0"}, r"vllm.__version__ is '0\.27\.0'; accepted: 0\.26\.0"),
    "model runner V1": ({"use_v2_model_runner": False}, "VLLM_USE_V2_MODEL_RUNNER is False; accepted: True"),
    "FFN side": ({"afd.role": "ffn"}, r'additional_config\["afd"\]\["role"\] is \'ffn\'; accepted: \'attention\''),
    "asynchronous connector": (
        {"afd.connector": "CAMAsyncAFDConnector"},
        r'additional_config\["afd"\]\["connector"\] is \'CAMAsyncAFDConnector\'; accepted: \'CAMP2pAFDConnector\' \(synchronous\)',
    ),
    "asynchronous DP": ({"afd.async_dp": True}, r'additional_config\["afd"\]\["async"\] is True; accepted: False'),
    "gate on attention": (
        {"afd.compute_gate_on_attention": True},
        r'additional_config\["afd"\]\["compute_gate_on_attention"\] is True; accepted: False',
    ),
    "number of ranks": (
        {"afd.num_attention_ranks": 2},
        r'additional_config\["afd"\]\["num_attention_ranks"\] is 2; accepted: 4, the data parallel size times the tensor parallel size',
    ),
    "one DP rank": (
        {"parallel_config.data_parallel_size": 1, "afd.num_attention_ranks": 2},
        "data_parallel_size is 1; accepted: 2 or more",
    ),
    "three ubatches": (
        {"parallel_config.enable_dbo": False, "parallel_config.ubatch_size": 3},
        r"ubatch_size is 3; accepted: 2 \(enable_dbo, or ubatch_size=2\): exactly two ubatches",
    ),
    "PP": ({"parallel_config.pipeline_parallel_size": 2}, "pipeline_parallel_size is 2; accepted: 1"),
    "PCP": ({"parallel_config.prefill_context_parallel_size": 2}, "prefill_context_parallel_size is 2; accepted: 1"),
    "DCP": ({"parallel_config.decode_context_parallel_size": 2}, "decode_context_parallel_size is 2; accepted: 1"),
    "no expert parallel": (
        {"parallel_config.enable_expert_parallel": False},
        "enable_expert_parallel is False; accepted: True",
    ),
    "elastic EP": (
        {"parallel_config.enable_elastic_ep": True},
        r"enable_elastic_ep is True; accepted: False \(static expert parallel\)",
    ),
    "EPLB": ({"parallel_config.enable_eplb": True}, "enable_eplb is True; accepted: False"),
    "sequence-parallel MoE": (
        {"parallel_config.all2all_backend": "allgather_reducescatter"},
        (
            "all2all_backend is 'allgather_reducescatter'; accepted: one without sequence-parallel MoE, such as "
            "'flashinfer_all2allv'; or tensor_parallel_size=1"
        ),
    ),
    "sequence parallelism": (
        {"compilation_config.pass_config.enable_sp": True},
        r"pass_config\.enable_sp is True; accepted: False",
    ),
    "unknown model": (
        {"model_config.architectures": ["Strange"]},
        r"architectures is \['Strange'\]; accepted: a registered AFD model: SimMoEForCausalLM, SimOtherForCausalLM",
    ),
    "piecewise graphs": (
        {**GRAPHS, "compilation_config.cudagraph_mode": CUDAGraphMode.PIECEWISE},
        r"cudagraph_mode is 'PIECEWISE'; accepted: FULL_DECODE_ONLY, or NONE \(enforce_eager\)",
    ),
    "full graphs": (
        {**GRAPHS, "compilation_config.cudagraph_mode": CUDAGraphMode.FULL},
        r"cudagraph_mode is 'FULL'; accepted: FULL_DECODE_ONLY, or NONE \(enforce_eager\)",
    ),
    "copied inputs": (
        {"compilation_config.cudagraph_copy_inputs": True},
        r"cudagraph_copy_inputs is True; accepted: False \(both stages would be copied to one place\)",
    ),
    "graphs without MLA": (
        {**GRAPHS, "model_config.use_mla": False, "compilation_config.cudagraph_mode": CUDAGraphMode.FULL_DECODE_ONLY},
        r"use_mla is False; accepted: True \(a model with MLA\); without MLA graphs of ubatches are not supported, use enforce_eager",
    ),
    "sparse attention": (
        {"model_config.hf_text_config": PretrainedConfig(index_topk=8)},
        r"index_topk is True; accepted: False \(no sparse attention\)",
    ),
    "FlashComm": (
        {"additional_config": {"enable_flashcomm1": True}},
        r"enable_flashcomm1 is True; accepted: False \(no sequence parallelism\)",
    ),
    "attention in parts": (
        {"environ.VLLM_ASCEND_MLA_FIA_SPLIT": "1"},
        r"VLLM_ASCEND_MLA_FIA_SPLIT is True; accepted: False \(one attention operator in a layer\)",
    ),
    "Xlite": (
        {"additional_config": {"xlite_graph_config": {"enabled": True}}},
        r"xlite_graph_config\.enabled is True; accepted: False \(it has a runner of its own\)",
    ),
    "recorded placement of experts": (
        {"additional_config": {"eplb_config": {"expert_map_record_path": "/tmp/experts.json"}}},
        r"eplb_config\.expert_map_record_path is True; accepted: False \(it turns dynamic_eplb on\)",
    ),
    "EPLB of vllm-ascend": (
        {"additional_config": {"eplb_config": {"dynamic_eplb": True}}},
        r"eplb_config\.dynamic_eplb is True; accepted: False \(static expert parallel\)",
    ),
    **{
        f"fine-grained TP, {name}": (
            {"additional_config": {"finegrained_tp_config": {f"{name}_tensor_parallel_size": 2}}},
            rf"finegrained_tp_config\.{name}_tensor_parallel_size is True; accepted: False \(its collectives want the tokens of whole batches\)",
        )
        for name in ("oproj", "olora", "embedding", "mlp")
    },
    "speculative decoding": ({"speculative_config": SOMETHING}, "speculative_config is 'something'; accepted: None"),
    "LoRA": ({"lora_config": SOMETHING}, "lora_config is 'something'; accepted: None"),
    "multimodal": (
        {"model_config.is_multimodal_model": True},
        r"is_multimodal_model is True; accepted: False \(a text model\)",
    ),
    "encoder-decoder": (
        {"model_config.is_encoder_decoder": True},
        r"is_encoder_decoder is True; accepted: False \(a decoder model\)",
    ),
}

# What is changed, and accepted all the same: the other side of a rule's limit, other ways to say the same.
STILL_ACCEPTED: dict[str, dict[str, Any]] = {
    "a build of vLLM with a local version": {"vllm.__version__": "0.26.0+empty"},
    "three DP ranks": {"parallel_config.data_parallel_size": 3, "afd.num_attention_ranks": 6},
    "eager, whatever would be captured": {
        "model_config.enforce_eager": True,
        "compilation_config.cudagraph_mode": CUDAGraphMode.FULL,
    },
    "no graph mode chosen": {**GRAPHS, "compilation_config.cudagraph_mode": None},
    "the graphs that are supported": {**GRAPHS, "compilation_config.cudagraph_mode": CUDAGraphMode.FULL_DECODE_ONLY},
    "no choice about sequence parallelism": {"compilation_config.pass_config.enable_sp": None},
    "one known architecture of two": {"model_config.architectures": ["Strange", "SimMoEForCausalLM"]},
    "a part of vllm-ascend's configuration that is empty": {"additional_config": {"xlite_graph_config": None}},
    "switches of vllm-ascend that are off": {
        "additional_config": {"enable_flashcomm1": False, "eplb_config": {"dynamic_eplb": False}},
        "environ.VLLM_ASCEND_MLA_FIA_SPLIT": "0",
    },
}


def alone(function, *args):
    return run_ranks(function, *args, world=1, timeout=60)[0]


@pytest.fixture(scope="module")
def messages() -> dict[str, list[str]]:
    return alone(configurations.judge, {name: change for name, (change, _) in REJECTED.items()})


def test_what_is_accepted() -> None:
    found = alone(configurations.judge, STILL_ACCEPTED)
    assert {name: found[name] for name in STILL_ACCEPTED if found[name]} == {}


def test_two_variables_of_the_environment_decide() -> None:
    # Of the switches that vllm-ascend reads from its configuration alone, none is looked for there.
    assert alone(configurations.read_variables) == {"VLLM_ASCEND_ENABLE_FLASHCOMM1", "VLLM_ASCEND_MLA_FIA_SPLIT"}


@pytest.mark.parametrize("name", REJECTED)
def test_each_setting_has_its_own_message(messages: dict[str, list[str]], name: str) -> None:
    assert len(messages[name]) == 1
    assert re.fullmatch(REJECTED[name][1], messages[name][0])


def test_a_switch_that_is_named_beats_the_environment() -> None:
    found = alone(
        configurations.judge,
        {
            "environment": {"environ.VLLM_ASCEND_ENABLE_FLASHCOMM1": "1"},
            "both": {"environ.VLLM_ASCEND_ENABLE_FLASHCOMM1": "1", "additional_config": {"enable_flashcomm1": False}},
            "neither": {"environ.VLLM_ASCEND_ENABLE_FLASHCOMM1": "0", "additional_config": {"xlite_graph_config": {}}},
        },
    )
    assert [len(found[name]) for name in ("environment", "both", "neither")] == [1, 0, 0]


def test_messages_are_all_different(messages: dict[str, list[str]]) -> None:
    assert len({message for (message,) in messages.values()}) == len(REJECTED) + 2


def test_a_configuration_without_afd(messages: dict[str, list[str]]) -> None:
    assert messages["no AFD part"] == ['additional_config["afd"] is absent; accepted: an AFD configuration']


def test_a_vllm_with_ubatches_of_its_own(messages: dict[str, list[str]]) -> None:
    assert messages["native ubatches"] == [
        "BatchExecutionDescriptor.num_ubatches is 'there'; accepted: 'absent' (vLLM's own ubatches need no backport)"
    ]


def test_graph_modes() -> None:
    found = alone(configurations.graph_modes)
    assert {mode for mode, fine in found.items() if fine} == {"NONE", "FULL_DECODE_ONLY"}
    assert len(found) == len(CUDAGraphMode)


def test_one_error_names_all_settings() -> None:
    message = alone(configurations.all_at_once)
    assert message.startswith("UnsupportedConfigurationError: dual batch overlap with AFD is not possible: ")
    for setting in ('["connector"]', "data_parallel_size", '["num_attention_ranks"]'):
        assert setting in message


def test_a_runner_refuses_before_it_is_made() -> None:
    seen = alone(configurations.construct)
    assert seen == {"good": ["asked", "made"], "bad": ["asked", "refused"], "off": ["made"]}


def test_a_plugin_has_to_say_what_its_settings_and_models_are() -> None:
    assert alone(configurations.unsaid) == ["afd_settings", "afd_models"]


# ---- vLLM's own validation ------------------------------------------------------------------------------------

V2 = "does not yet support"
CASES = {
    "AFD": ({**AFD, "enable_dbo": True}, "cpu"),
    "AFD, two by number": ({**AFD, "ubatch_size": 2}, "cpu"),
    "AFD, kernels of vLLM": ({**AFD, "enable_dbo": True, "all2all_backend": "deepep_low_latency"}, "cpu"),
    "AFD with cascade attention": ({**AFD, "enable_dbo": True, "disable_cascade_attn": False}, "cpu"),
    "AFD on another platform": ({**AFD, "enable_dbo": True}, "npu"),
    "no AFD": ({"enable_dbo": True}, "cpu"),
    "AFD, off": (AFD, "cpu"),
    "nothing": ({}, "cpu"),
}


@pytest.fixture(scope="module")
def relaxed() -> dict[str, tuple[str, str, str]]:
    return alone(configurations.relax, CASES)


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("AFD", "dbo True, 0, allgather_reducescatter, cascade off True"),
        (
            "AFD with cascade attention",
            "dbo True, 0, allgather_reducescatter, cascade off True",
        ),  # it is on without ubatches
        ("AFD, two by number", "dbo False, 2, allgather_reducescatter, cascade off True"),
        ("AFD, kernels of vLLM", "dbo True, 0, deepep_low_latency, cascade off True"),
    ],
)
def test_ubatches_with_afd_are_accepted_in_the_scope_only(
    relaxed: dict[str, tuple[str, str, str]], name: str, inside: str
) -> None:
    before, within, after = relaxed[name]
    assert within == inside
    assert before == after
    assert before.startswith(("1 validation error", "Microbatching", "Model Runner V2", "VLLM_USE_V2")), before


@pytest.mark.parametrize("name", ["AFD on another platform", "no AFD", "AFD, off", "nothing"])
def test_all_others_see_native_validation(relaxed: dict[str, tuple[str, str, str]], name: str) -> None:
    before, within, after = relaxed[name]
    assert before == within == after
    assert before.startswith("dbo False, 0") == (name in {"AFD, off", "nothing"})


def test_model_runner_v1_sees_native_validation() -> None:
    inside, outside = alone(configurations.first_runner)
    assert inside == outside
    assert "Microbatching currently only supports" in inside


def test_the_native_function_sees_ubatches_only_where_it_may_judge_them() -> None:
    seen = alone(configurations.called)
    assert set(seen["afd"]) == set(seen["afd, off"]) == set(seen["other"]) == {"False 0"}
    assert set(seen["other, on"]) == {"True 0"}


def test_configured_values_come_back_when_vllm_rejects_something_else() -> None:
    assert alone(configurations.failing_validation) == {
        "during": (False, 0), "error": "the platform says no", "after": (True, 0), "native": True,
    }  # fmt: skip
