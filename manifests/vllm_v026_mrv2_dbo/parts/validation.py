"""Which configurations ubatches of the AFD model runner V2 work with, and how vLLM is brought to accept them."""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from weakref import WeakKeyDictionary

import vllm
from afd_backports.vllm_v026_mrv2_dbo.host import AFDSettings, SettingsParser
from vllm.config import ParallelConfig, VllmConfig
from vllm.config.compilation import CUDAGraphMode
from vllm.logger import init_logger
from vllm.platforms import current_platform
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor

logger = init_logger(__name__)

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


def _switch(subject: Subject, name: str, variable: str) -> bool:
    """Whether a switch of vllm-ascend is on, as vllm-ascend reads it: from `additional_config`, else from the environment."""
    switches: object = subject.config.additional_config
    for part in name.split("."):
        if not isinstance(switches, dict) or part not in switches:
            return bool(int(os.environ.get(variable, "0")))
        switches = switches[part]
    return bool(switches)


def _off(name: str, why: str, variable: str = "") -> Rule:
    return _only(name or variable, lambda s: _switch(s, name, variable), False, why)


FINEGRAINED = "finegrained_tp_config"
ASCEND_RULES = (
    _only(
        "index_topk",
        lambda s: "index_topk" in s.config.model_config.hf_text_config.to_dict(),
        False,
        " (no sparse attention)",
    ),
    _off("enable_flashcomm1", " (no sequence parallelism)", "VLLM_ASCEND_ENABLE_FLASHCOMM1"),
    _off("", " (one attention operator in a layer)", "VLLM_ASCEND_MLA_FIA_SPLIT"),
    _off("xlite_graph_config.enabled", " (it has a runner of its own)"),
    _off("eplb_config.dynamic_eplb", " (static expert parallel)"),
    _off("eplb_config.expert_map_record_path", " (it turns dynamic_eplb on)"),
    *(
        _off(f"{FINEGRAINED}.{name}_tensor_parallel_size", " (its collectives want the tokens of whole batches)")
        for name in ("oproj", "olora", "embedding", "mlp")
    ),
)
"""Switches of vllm-ascend; docs/dbo.md goes through all that it has."""

RULES = (
    Rule(
        "vllm.__version__", lambda s: vllm.__version__, lambda s: vllm.__version__.partition("+")[0] == VERSION, VERSION
    ),
    _only(
        "BatchExecutionDescriptor.num_ubatches", _native_ubatches, "absent", " (vLLM's own ubatches need no backport)"
    ),
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
    _only(
        "enable_elastic_ep", lambda s: s.config.parallel_config.enable_elastic_ep, False, " (static expert parallel)"
    ),
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
        lambda s: s.config.model_config.architectures,
        lambda s: any(name in s.models for name in s.config.model_config.architectures),
        lambda s: f"a registered AFD model: {', '.join(sorted(s.models))}",
    ),
    Rule(
        "cudagraph_mode",
        lambda s: s.graph_mode.name,
        lambda s: s.graph_mode in (CUDAGraphMode.NONE, CUDAGraphMode.FULL_DECODE_ONLY),
        "FULL_DECODE_ONLY, or NONE (enforce_eager)",
    ),
    _only(
        "cudagraph_copy_inputs",
        lambda s: s.config.compilation_config.cudagraph_copy_inputs,
        False,
        " (both stages would be copied to one place)",
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
    *ASCEND_RULES,
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

PostInit = Callable[[VllmConfig], None]


@contextmanager
def without_ubatches(parallel: ParallelConfig) -> Iterator[None]:
    """Take ubatches out of a configuration for the block; they are configured as before afterwards."""
    before = parallel.enable_dbo, parallel.ubatch_size
    parallel.enable_dbo, parallel.ubatch_size = False, 0
    try:
        yield
    finally:
        parallel.enable_dbo, parallel.ubatch_size = before


class Relaxation:
    """While it is in force, vLLM accepts ubatches with AFD, for configurations that are made or validated again.

    vLLM 0.26 knows ubatches with model runner V1 and with all-to-all kernels of its own only; vLLM-Ascend turns them off.
    Here ubatches go over the AFD connector, so neither is asked. All other configurations are validated as without it.

    It is put around what `VllmConfig.__post_init__` is at the time, whoever that belongs to, and may be wrapped itself. Only
    what stands outermost can be taken off again; what others have wrapped stays behind, and does nothing any more.

    Args:
        parser: reads the AFD part; only configurations that have one are concerned.
        device_type: and only on platforms of this type; on others, a warning says so when a configuration has ubatches with AFD.

    Attributes:
        in_force: whether it is.
    """

    def __init__(self, parser: SettingsParser, device_type: str) -> None:
        self.parser, self.device_type = parser, device_type
        self.in_force = False

    def applies(self, config: VllmConfig) -> bool:
        """Whether a configuration has ubatches that only the AFD runner can run."""
        if not (
            self.in_force
            and config.parallel_config.use_ubatching
            and self.parser(config) is not None
            and config.use_v2_model_runner
        ):
            return False
        here = current_platform.device_type
        if here != self.device_type:
            logger.warning_once(
                "Ubatches with AFD are not accepted by this relaxation of vLLM's validation: it is for device_type=%r, and the platform is %r. "
                "Give relax_for_process or relaxed_validation the platform's device_type if the plugin supports it.",
                self.device_type,
                here,
            )
        return here == self.device_type

    def begin(self) -> None:
        """Put it in force; where something else has been put outermost since, around that, too."""
        self.in_force = True
        outermost = VllmConfig.__post_init__
        while outermost in _layers:
            relaxation, below = _layers[outermost]
            if relaxation is self:
                return
            outermost = below
        native: Callable[[VllmConfig], None] = VllmConfig.__post_init__  # or whatever stands there

        def post_init(self_: VllmConfig) -> None:
            if not self.applies(self_):
                native(self_)
                return
            with without_ubatches(self_.parallel_config):
                native(self_)
            self_.model_config.disable_cascade_attn = True

        _layers[post_init] = self, native
        VllmConfig.__post_init__ = post_init  # type: ignore[method-assign]

    def end(self) -> None:
        """Put it out of force."""
        self.in_force = False
        if self in _of_process:
            _of_process.remove(self)
        while (outermost := VllmConfig.__post_init__) in _layers and not _layers[outermost][0].in_force:
            VllmConfig.__post_init__ = _layers.pop(outermost)[1]  # type: ignore[method-assign]


_layers: WeakKeyDictionary[PostInit, tuple[Relaxation, PostInit]] = WeakKeyDictionary()
"""What has been put around vLLM's validation, as long as somebody calls it: of which relaxation, and what is below."""
_of_process: list[Relaxation] = []


@contextmanager
def relaxed_validation(parser: SettingsParser, device_type: str = "npu") -> Iterator[None]:
    """Let a `Relaxation` be in force in the block. Blocks may be nested, with those of others, too."""
    relaxation = Relaxation(parser, device_type)
    try:
        relaxation.begin()
        yield
    finally:
        relaxation.end()


def relax_for_process(parser: SettingsParser, device_type: str = "npu") -> Relaxation:
    """Put a `Relaxation` in force for the rest of this process; it is kept here. Again for the same parser, it is the same one.

    A plugin calls it where vLLM loads it (`vllm.general_plugins`). Call it again after another patch of the validation has
    been applied that may have dropped this one.

    Args:
        parser: reads the AFD part; only configurations that have one are concerned.
        device_type: and only on platforms of this type; on others, a warning says so when a configuration has ubatches with AFD.

    Returns:
        What is in force; its `end()` undoes it.
    """
    for relaxation in _of_process:
        if (relaxation.parser, relaxation.device_type) == (parser, device_type):
            break
    else:
        relaxation = Relaxation(parser, device_type)
        _of_process.append(relaxation)
    relaxation.begin()
    return relaxation
