"""Real configurations of vLLM, in a process of `tests.sim.ranks`: judged, and validated by vLLM itself."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

import vllm
from afd_backports.vllm_v026_mrv2_dbo import validation
from vllm.config import VllmConfig
from vllm.config.compilation import CUDAGraphMode
from vllm.engine.arg_utils import EngineArgs

from tests.sim.config import MOE, engine_arguments

NATIVE = VllmConfig.__post_init__
MODELS = ("SimMoEForCausalLM", "SimOtherForCausalLM")


@dataclass
class Settings:
    """As the plugin's configuration."""

    role: str = "attention"
    connector: str = "CAMP2pAFDConnector"
    async_dp: bool = False
    compute_gate_on_attention: bool = False
    num_attention_ranks: int = 4


def parse(config: VllmConfig) -> Settings | None:
    """The plugin's parser: `additional_config["afd"]`."""
    raw = config.additional_config
    assert isinstance(raw, dict)
    return Settings(**raw["afd"]) if "afd" in raw else None


def make(**more: Any) -> VllmConfig:
    return EngineArgs(**engine_arguments(MOE, None, **more)).create_engine_config()


def accepted() -> tuple[VllmConfig, Settings]:
    """A configuration that is accepted: 2 DP ranks with 2 TP ranks each, eager."""
    config = make()
    parallel = config.parallel_config
    parallel.data_parallel_size = parallel.tensor_parallel_size = 2
    parallel.enable_dbo = parallel.enable_expert_parallel = True
    parallel.all2all_backend = "flashinfer_all2allv"
    return config, Settings()


@contextlib.contextmanager
def changed(config: VllmConfig, settings: Settings, change: Mapping[str, Any]) -> Iterator[None]:
    """Some settings have other values in the block; properties are replaced in their class."""
    with contextlib.ExitStack() as stack:
        for path, value in change.items():
            head, _, name = path.rpartition(".")
            if head == "environ":
                stack.enter_context(mock.patch.dict(os.environ, {name: value}))
                continue
            owner: Any = {"afd": settings, "vllm": vllm, "": config}.get(head)
            if owner is None:
                owner = config
                for part in head.split("."):
                    owner = vars(owner)[part]
            if isinstance(vars(type(owner)).get(name), property):
                stack.enter_context(mock.patch.object(type(owner), name, property(lambda self, value=value: value)))
            else:
                stack.enter_context(mock.patch.object(owner, name, value))
        yield


def judge(rank: Any, changes: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """The messages for each change of an accepted configuration."""
    config, settings = accepted()
    messages = {}
    for name, change in changes.items():
        with changed(config, settings, change):
            messages[name] = validation.problems(config, settings, MODELS)
    assert validation.problems(config, settings, MODELS) == []
    messages["no AFD part"] = validation.problems(config, None, MODELS)
    with mock.patch.object(
        validation,
        "BatchExecutionDescriptor",
        dataclass(type("Native", (), {"__annotations__": {"num_ubatches": int}})),
    ):
        messages["native ubatches"] = validation.problems(config, settings, MODELS)
    return messages


def read_variables(rank: Any) -> set[str]:
    """Which variables of the environment are asked for; a nameless one cannot be set."""
    config, settings = accepted()
    read: set[str] = set()

    class Spy(dict[str, str]):
        def get(self, name: str, default: Any = None) -> Any:
            read.add(name)
            return super().get(name, default)

    with mock.patch.object(validation, "os", mock.Mock(environ=Spy(os.environ))):  # vLLM itself reads others
        assert validation.problems(config, settings, MODELS) == []
    return read - {""}


def graph_modes(rank: Any) -> dict[str, bool]:
    """Which graph modes are accepted, with MLA."""
    config, settings = accepted()
    found = {}
    for mode in CUDAGraphMode:
        change = {
            "model_config.enforce_eager": False, "model_config.use_mla": True, "compilation_config.cudagraph_mode": mode,
        }  # fmt: skip
        with changed(config, settings, change):
            found[mode.name] = not validation.problems(config, settings, MODELS)
    return found


def all_at_once(rank: Any) -> str:
    """One error for several settings."""
    config, settings = accepted()
    settings.connector, config.parallel_config.data_parallel_size = "CAMAsyncAFDConnector", 1
    try:
        validation.validate(config, settings, MODELS)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def construct(rank: Any) -> dict[str, Any]:
    """A runner refuses before anything of it is made; without ubatches it is made natively."""
    log: list[str] = []

    class Native:
        def __init__(self, vllm_config: Any, device: Any) -> None:
            log.append("made")

    class Runner(validation.AFDValidation, Native):
        def afd_settings(self, config: VllmConfig) -> Settings | None:
            log.append("asked")
            return settings

        def afd_models(self) -> tuple[str, ...]:
            return MODELS

    config, settings = accepted()
    seen: dict[str, Any] = {}
    for name, change in (
        ("good", {}),
        ("bad", {"afd.connector": "P2pNcclAFDConnector"}),
        ("off", {"afd.connector": "P2pNcclAFDConnector", "parallel_config.enable_dbo": False}),
    ):
        log.clear()
        with changed(config, settings, change):
            try:
                Runner(config, "device")
            except validation.UnsupportedConfigurationError:
                log.append("refused")
        seen[name] = list(log)
    return seen


def unsaid(rank: Any) -> list[str]:
    """Which methods a plugin's runner has to have."""
    config, _ = accepted()
    refusing = []
    for name, ask in (
        ("afd_settings", lambda runner: runner.afd_settings(config)),
        ("afd_models", lambda runner: runner.afd_models()),
    ):
        try:
            ask(validation.ValidatedRunner())
        except NotImplementedError:
            refusing.append(name)
    return refusing


# ---- vLLM's validation ----------------------------------------------------------------------------------------

AFD = {"additional_config": {"afd": {}}}


def outcome(**more: Any) -> str:
    """What vLLM says of a configuration, made new and validated again."""
    try:
        config = make(**more)
        config.__post_init__()
    except (AssertionError, ValueError, NotImplementedError) as error:
        return " ".join(str(error).split())
    parallel = config.parallel_config
    return f"dbo {parallel.enable_dbo}, {parallel.ubatch_size}, {parallel.all2all_backend}, cascade off {config.model_config.disable_cascade_attn}"


def relax(rank: Any, cases: Mapping[str, tuple[Mapping[str, Any], str]]) -> dict[str, tuple[str, str, str]]:
    """Each case outside, in the relaxation and outside again."""
    seen = {}
    for name, (more, device_type) in cases.items():
        before = outcome(**more)
        with validation.relaxed_validation(parse, device_type):
            inside = outcome(**more)
        assert VllmConfig.__post_init__ is NATIVE
        seen[name] = (before, inside, outcome(**more))
    return seen


def first_runner(rank: Any) -> tuple[str, str]:
    """With model runner V1, in the relaxation and outside."""
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"
    with validation.relaxed_validation(parse, "cpu"):
        inside = outcome(enable_dbo=True, **AFD)
    return inside, outcome(enable_dbo=True, **AFD)


def called(rank: Any) -> dict[str, list[str]]:
    """What the native validation gets to see, by case."""
    seen: dict[str, list[str]] = {}
    log: list[str] = []

    def spy(self: VllmConfig) -> None:
        log.append(f"{self.parallel_config.enable_dbo} {self.parallel_config.ubatch_size}")
        NATIVE(self)

    with mock.patch.object(VllmConfig, "__post_init__", spy), validation.relaxed_validation(parse, "cpu"):
        for name, more in {
            "afd": {**AFD, "enable_dbo": True},
            "afd, off": AFD,
            "other": {},
            "other, on": {"enable_dbo": True},
        }.items():
            log.clear()
            outcome(**more)
            seen[name] = list(log)
    return seen


def failing_validation(rank: Any) -> dict[str, Any]:
    """vLLM rejects another part of the configuration."""
    from tests.sim.platform import SimPlatform

    config = None
    with validation.relaxed_validation(parse, "cpu"):
        config = make(enable_dbo=True, **AFD)

    def reject(*args: Any) -> None:
        seen["during"] = (config.parallel_config.enable_dbo, config.parallel_config.ubatch_size)
        raise ValueError("the platform says no")

    seen: dict[str, Any] = {}
    with mock.patch.object(SimPlatform, "check_and_update_config", reject):
        try:
            with validation.relaxed_validation(parse, "cpu"):
                config.__post_init__()
        except ValueError as error:
            seen["error"] = str(error)
    seen["after"] = (config.parallel_config.enable_dbo, config.parallel_config.ubatch_size)
    seen["native"] = VllmConfig.__post_init__ is NATIVE
    return seen
