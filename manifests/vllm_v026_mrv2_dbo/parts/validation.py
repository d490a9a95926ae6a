"""Which configurations ubatches of the AFD model runner V2 work with, and how vLLM is brought to accept them."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

import vllm
from afd_backports.vllm_v026_mrv2_dbo.host import AFDSettings, SettingsParser
from afd_backports.vllm_v026_mrv2_dbo.scopes import ForeignPatchError, substitute
from vllm.config import ParallelConfig, VllmConfig
from vllm.config.compilation import CUDAGraphMode
from vllm.platforms import current_platform
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor

VERSION = "0.26.0"
CONNECTOR = "CAMP2pAFDConnector"
NUM_UBATCHES = 2


class UnsupportedConfigurationError(ValueError):
    """A configuration that ubatches of the AFD model runner V2 do not work with; the message names every setting."""


@dataclass(frozen=True)
class Subject:
    """What is judged.

    Attributes:
        config: vLLM's configuration.
        afd: its AFD part.
        models: architectures that the plugin has a model proxy for.
    """

    config: VllmConfig
    afd: AFDSettings
    models: Collection[str]

    @property
    def graph_mode(self) -> CUDAGraphMode:
        """What is captured."""
        eager = self.config.model_config.enforce_eager
        return CUDAGraphMode.NONE if eager else self.config.compilation_config.cudagraph_mode or CUDAGraphMode.NONE

    @property
    def attention_ranks(self) -> int:
        """How many attention ranks the parallel configuration makes."""
        parallel = self.config.parallel_config
        return parallel.data_parallel_size * parallel.tensor_parallel_size


@dataclass(frozen=True)
class Rule:
    """One setting, and what it may be.

    Attributes:
        setting: its name, as the user knows it.
        value: its value.
        accepts: whether a subject's value is accepted.
        accepted: the accepted values, in words.
    """

    setting: str
    value: Callable[[Subject], object]
    accepts: Callable[[Subject], bool]
    accepted: str | Callable[[Subject], str]

    def problem(self, subject: Subject) -> str | None:
        """What is wrong with the setting, if something is."""
        if self.accepts(subject):
            return None
        accepted = self.accepted if isinstance(self.accepted, str) else self.accepted(subject)
        return f"{self.setting} is {self.value(subject)!r}; accepted: {accepted}"


def _only(setting: str, value: Callable[[Subject], object], wanted: object, why: str = "") -> Rule:
    return Rule(setting, value, lambda s: value(s) == wanted, f"{wanted!r}{why}")


def _native_ubatches(subject: Subject) -> str:
    return "there" if "num_ubatches" in {f.name for f in fields(BatchExecutionDescriptor)} else "absent"


RULES = (
    Rule("vllm.__version__", lambda s: vllm.__version__, lambda s: vllm.__version__.partition("+")[0] == VERSION, VERSION),
    _only("BatchExecutionDescriptor.num_ubatches", _native_ubatches, "absent", " (vLLM's own ubatches need no backport)"),
    _only("VLLM_USE_V2_MODEL_RUNNER", lambda s: s.config.use_v2_model_runner, True),
    _only('additional_config["afd"]["role"]', lambda s: s.afd.role, "attention"),
    _only('additional_config["afd"]["connector"]', lambda s: s.afd.connector, CONNECTOR, " (synchronous)"),
    _only('additional_config["afd"]["async"]', lambda s: s.afd.async_dp, False),
    _only('additional_config["afd"]["compute_gate_on_attention"]', lambda s: s.afd.compute_gate_on_attention, False),
    Rule(
        'additional_config["afd"]["num_attention_ranks"]',
        lambda s: s.afd.num_attention_ranks,
        lambda s: s.afd.num_attention_ranks == s.attention_ranks,
        lambda s: f"{s.attention_ranks}, the data parallel size times the tensor parallel size",
    ),
    Rule(
        "data_parallel_size",
        lambda s: s.config.parallel_config.data_parallel_size,
        lambda s: s.config.parallel_config.data_parallel_size > 1,
        "2 or more",
    ),
    _only(
        "ubatch_size",
        lambda s: s.config.parallel_config.num_ubatches,
        NUM_UBATCHES,
        " (enable_dbo, or ubatch_size=2): exactly two ubatches",
    ),
    _only("pipeline_parallel_size", lambda s: s.config.parallel_config.pipeline_parallel_size, 1),
    _only("prefill_context_parallel_size", lambda s: s.config.parallel_config.prefill_context_parallel_size, 1),
    _only("decode_context_parallel_size", lambda s: s.config.parallel_config.decode_context_parallel_size, 1),
    _only("enable_expert_parallel", lambda s: s.config.parallel_config.enable_expert_parallel, True),
    _only("enable_elastic_ep", lambda s: s.config.parallel_config.enable_elastic_ep, False, " (static expert parallel)"),
    _only("enable_eplb", lambda s: s.config.parallel_config.enable_eplb, False),
    Rule(
        "all2all_backend",
        lambda s: s.config.parallel_config.all2all_backend,
        lambda s: not s.config.parallel_config.use_sequence_parallel_moe,
        "one without sequence-parallel MoE, such as 'flashinfer_all2allv'; or tensor_parallel_size=1",
    ),
    _only("pass_config.enable_sp", lambda s: bool(s.config.compilation_config.pass_config.enable_sp), False),
    Rule(
        "architectures",
        lambda s: list(s.config.model_config.architectures),
        lambda s: any(name in s.models for name in s.config.model_config.architectures),
        lambda s: f"a registered AFD model: {', '.join(sorted(s.models))}",
    ),
    Rule(
        "cudagraph_mode",
        lambda s: s.graph_mode.name,
        lambda s: s.graph_mode in (CUDAGraphMode.NONE, CUDAGraphMode.FULL_DECODE_ONLY),
        "FULL_DECODE_ONLY, or NONE (enforce_eager)",
    ),
    Rule(
        "use_mla",
        lambda s: s.config.model_config.use_mla,
        lambda s: s.graph_mode == CUDAGraphMode.NONE or s.config.model_config.use_mla,
        "True (a model with MLA); without MLA graphs of ubatches are not supported, use enforce_eager",
    ),
    _only("speculative_config", lambda s: s.config.speculative_config, None),
    _only("lora_config", lambda s: s.config.lora_config, None),
    _only("is_multimodal_model", lambda s: s.config.model_config.is_multimodal_model, False, " (a text model)"),
    _only("is_encoder_decoder", lambda s: s.config.model_config.is_encoder_decoder, False, " (a decoder model)"),
)


def problems(config: VllmConfig, afd: AFDSettings | None, models: Collection[str]) -> list[str]:
    """What keeps ubatches from working with a configuration: one message for each setting.

    Args:
        config: vLLM's configuration, complete.
        afd: its AFD part; None when it has none.
        models: architectures that the plugin has a model proxy for.
    """
    if afd is None:
        return ['additional_config["afd"] is absent; accepted: an AFD configuration']
    subject = Subject(config, afd, models)
    return [problem for rule in RULES if (problem := rule.problem(subject)) is not None]


def validate(config: VllmConfig, afd: AFDSettings | None, models: Collection[str]) -> None:
    """Refuse what ubatches do not work with.

    Raises:
        UnsupportedConfigurationError: some settings are not accepted; the message names all of them.
    """
    found = problems(config, afd, models)
    if found:
        raise UnsupportedConfigurationError("dual batch overlap with AFD is not possible: " + "; and ".join(found))


class ValidatedRunner:
    """A runner that refuses what its ubatches do not work with."""

    def afd_settings(self, config: VllmConfig) -> AFDSettings | None:
        """The AFD part of the configuration."""
        raise NotImplementedError

    def afd_models(self) -> Collection[str]:
        """Architectures that the plugin has a model proxy for."""
        raise NotImplementedError


# ---- vLLM's own validation ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Relaxation:
    parser: SettingsParser
    device_type: str

    def applies(self, config: VllmConfig) -> bool:
        return (
            config.parallel_config.use_ubatching
            and current_platform.device_type == self.device_type
            and self.parser(config) is not None
            and config.use_v2_model_runner
        )


_relaxations: list[_Relaxation] = []
_native_post_init = VllmConfig.__post_init__


def is_relaxed(config: VllmConfig) -> bool:
    """Whether the innermost relaxation is for this configuration."""
    return bool(_relaxations) and _relaxations[-1].applies(config)


@contextmanager
def without_ubatches(parallel: ParallelConfig) -> Iterator[None]:
    """Take ubatches out of a configuration for the block; they are configured as before afterwards."""
    before = parallel.enable_dbo, parallel.ubatch_size
    parallel.enable_dbo, parallel.ubatch_size = False, 0
    try:
        yield
    finally:
        parallel.enable_dbo, parallel.ubatch_size = before


@contextmanager
def relaxed_validation(parser: SettingsParser, device_type: str = "npu") -> Iterator[None]:
    """Let vLLM accept ubatches with AFD, for configurations that are made or validated again in the block.

    vLLM 0.26 knows ubatches with model runner V1 and with all-to-all kernels of its own only; vLLM-Ascend turns them off.
    Here ubatches go over the AFD connector, so neither is asked. All other configurations are validated natively.

    Args:
        parser: reads the AFD part; only configurations that have one are concerned.
        device_type: and only on platforms of this type.

    Raises:
        ForeignPatchError: somebody else has replaced vLLM's validation.
    """
    if _native_post_init.__module__ != VllmConfig.__module__:
        raise ForeignPatchError(
            f"VllmConfig.__post_init__ was a function of {_native_post_init.__module__} already when this module was imported: "
            "somebody else has replaced it. Import this module before that patch is applied."
        )
    ours = post_init  # type: ignore[name-defined]  # noqa: F821 - below
    with substitute(VllmConfig, "__post_init__", _native_post_init, ours):
        _relaxations.append(_Relaxation(parser, device_type))
        try:
            yield
        finally:
            _relaxations.pop()
