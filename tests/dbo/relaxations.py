"""vLLM's validation, relaxed beside others who patch it, too; run in processes of `tests.sim.ranks`."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from afd_backports.vllm_v026_mrv2_dbo import validation
from vllm.config import VllmConfig

from tests.dbo.configurations import AFD, NATIVE, make, outcome, parse
from tests.sim.ranks import Rank

BACKEND = "deepep_low_latency"
DBO = {**AFD, "enable_dbo": True}


# ---- beside others --------------------------------------------------------------------------------------------


class Theirs:
    """A plugin's own patch, for ubatches of model runner V1: it shows the native validation another backend.

    Attributes:
        seen: how many configurations with ubatches it has seen.
    """

    def __init__(self) -> None:
        self.seen = 0

    def install(self) -> None:
        """Put it around what is there."""
        self.below = VllmConfig.__post_init__

        def theirs(config: VllmConfig) -> None:
            parallel = config.parallel_config
            if not parallel.use_ubatching or parse(config) is None:
                return self.below(config)
            self.seen += 1
            before, parallel.all2all_backend = parallel.all2all_backend, BACKEND
            try:
                return self.below(config)
            finally:
                parallel.all2all_backend = before

        VllmConfig.__post_init__ = theirs  # type: ignore[method-assign]

    def remove(self) -> None:
        """Put back what was there, whatever is there now."""
        VllmConfig.__post_init__ = self.below  # type: ignore[method-assign]


def v1() -> str:
    """What is said of a configuration with ubatches of model runner V1."""
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"
    try:
        return outcome(**DBO)
    finally:
        os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "1"


@contextlib.contextmanager
def installed(order: str) -> Iterator[None]:
    """Patches in this order: `o` of ours, `t` of theirs; removed in the order of the capital letters, if there are any."""
    put: list[tuple[str, Callable[[], object]]] = []
    for letter in order:
        if letter == "o":
            ours = contextlib.ExitStack()
            ours.enter_context(validation.relaxed_validation(parse, "cpu"))
            put.append(("O", ours.close))
        elif letter == "t":
            theirs = Theirs()
            theirs.install()
            put.append(("T", theirs.remove))
    try:
        yield
    finally:
        for letter in order.lstrip("ot") or [letter for letter, _ in reversed(put)]:
            index = max(i for i, (which, _) in enumerate(put) if which == letter)
            put.pop(index)[1]()
        assert not put


def compose(rank: Rank, orders: list[str]) -> dict[str, tuple[str, str, str, bool]]:
    """In each order: what is said of ubatches of V2 and V1, of V2 afterwards, and whether the native function stands then."""
    seen = {}
    for order in orders:
        with installed(order):
            inside = outcome(**DBO), v1()
        seen[order] = (*inside, outcome(**DBO), VllmConfig.__post_init__ is NATIVE)
    return seen


def real_plugin(rank: Rank, tree: str, ascend: bool, first: bool) -> dict[str, Any]:
    """The real AFD plugin's patches, applied by itself as when vLLM loads it: before ours, or after it."""
    sys.path.insert(0, tree)
    arguments = {"enable_dbo": True, "worker_cls": "tests.sim.worker.SimWorker"}
    arguments["additional_config"] = {"afd": {"connector": "CAMP2pAFDConnector"}}

    def read(config: VllmConfig) -> Any:
        from afd_plugin.config import parse_optional_afd_config

        return parse_optional_afd_config(config)

    seen: dict[str, Any] = {}
    relaxation = validation.relax_for_process(read, "cpu") if first else None
    from afd_plugin.compat.patches import config_validation

    if ascend:
        from afd_plugin.compat.patches.npu.ascend_platform import apply_afd_ascend_dbo_config_patch

        assert apply_afd_ascend_dbo_config_patch()
    assert config_validation._original_vllm_config_post_init is not None
    if relaxation is None:
        seen["theirs alone"] = outcome(**arguments)
        relaxation = validation.relax_for_process(read, "cpu")
    seen["V2"] = outcome(**arguments)
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"
    seen["V1"] = outcome(**arguments)
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "1"
    seen["no AFD"] = outcome(enable_dbo=True)
    relaxation.end()
    seen["ended"] = outcome(**arguments)
    return seen


# ---- for a process --------------------------------------------------------------------------------------------


def nested(rank: Rank) -> dict[str, str]:
    """Relaxations add up; each ends by itself."""
    seen = {}
    with validation.relaxed_validation(parse, "cpu"):
        with validation.relaxed_validation(lambda config: None, "cpu"):
            seen["for others"] = outcome(**DBO)
        seen["outer"] = outcome(**DBO)
    with validation.relaxed_validation(lambda config: None, "cpu"):
        with validation.relaxed_validation(parse, "cpu"):
            seen["inner"] = outcome(**DBO)
        seen["ended"] = outcome(**DBO)
    return seen


def for_process(rank: Rank) -> dict[str, Any]:
    """It is kept, is the same again, outlives blocks and patches that drop it, and can be ended."""
    seen: dict[str, Any] = {}
    validation.relax_for_process(parse, "cpu")
    gc.collect()
    patched = VllmConfig.__post_init__
    seen["kept"] = outcome(**DBO)
    again = validation.relax_for_process(parse, "cpu")
    seen["the same"] = validation.relax_for_process(parse, "cpu") is again and VllmConfig.__post_init__ is patched
    other = validation.relax_for_process(lambda config: None, "cpu")
    seen["another"] = other is not again and VllmConfig.__post_init__ is not patched
    outer = VllmConfig.__post_init__
    seen["the same below"] = validation.relax_for_process(parse, "cpu") is again and VllmConfig.__post_init__ is outer
    other.end()
    with validation.relaxed_validation(parse, "cpu"):
        pass
    seen["after blocks"] = outcome(**DBO)

    VllmConfig.__post_init__ = NATIVE  # type: ignore[method-assign]  # somebody puts back what they found earlier
    seen["dropped"] = outcome(**DBO)
    validation.relax_for_process(parse, "cpu")
    seen["again"] = outcome(**DBO)
    again.end()
    again.end()
    seen["native"] = VllmConfig.__post_init__ is NATIVE
    seen["ended"] = outcome(**DBO)
    return seen


def begun_and_ended(rank: Rank) -> dict[str, list[bool]]:
    """Whether one is in force and applies to a configuration before it begins, then, and after its end; whether it is kept."""
    with validation.relaxed_validation(parse, "cpu"):
        config = make(**DBO)
    relaxation = validation.Relaxation(parse, "cpu")
    seen: dict[str, list[bool]] = {"in force": [], "applies": []}

    def look() -> None:
        seen["in force"].append(relaxation.in_force)
        seen["applies"].append(relaxation.applies(config))

    look()
    relaxation.begin()
    look()
    relaxation.end()
    look()
    kept = weakref.ref(validation.relax_for_process(parse, "cpu"))
    gc.collect()
    seen["kept"] = [kept() is not None]
    kept().end()  # type: ignore[union-attr]
    gc.collect()
    seen["kept"].append(kept() is not None)
    return seen


def in_order(rank: Rank) -> bool:
    """Those that end first are not outermost."""
    first, second = (validation.relax_for_process(parse, name) for name in ("cpu", "npu"))
    first.end()
    assert VllmConfig.__post_init__ is not NATIVE
    second.end()
    return VllmConfig.__post_init__ is NATIVE


def for_another_device(rank: Rank) -> tuple[list[tuple[object, ...]], dict[str, str]]:
    """What is logged, and what is said of configurations that a relaxation for NPUs meets, or does not concern."""
    seen = {}
    with mock.patch.object(validation.logger, "warning") as warning:
        with validation.relaxed_validation(parse):
            seen["no AFD"] = outcome(enable_dbo=True)
            seen["no ubatches"] = outcome(**AFD)
            seen["V1"] = v1()
        with validation.relaxed_validation(parse, "cpu"):
            seen["right"] = outcome(**DBO)
        before = warning.call_count
        with validation.relaxed_validation(parse):
            seen["wrong in a block"] = outcome(**DBO)
        validation.relax_for_process(parse)
        seen["wrong"] = outcome(**DBO)
        seen["once more"] = outcome(**DBO)
    assert not before
    return [call.args for call in warning.call_args_list], seen


# ---- processes of vLLM ----------------------------------------------------------------------------------------

ENTRY_POINTS = """\
[vllm.general_plugins]
relaxing = tests.dbo.relaxations:plugin
"""


def plugin() -> None:
    """Entry point `vllm.general_plugins`, as a plugin has it."""
    validation.relax_for_process(parse, "cpu")


class Reached(Exception):
    """vLLM has come to where it makes its executor; says what validation says there."""


class Probe:
    """Stands for an executor: validates, as the engine does once more when it is ready."""

    def __init__(self, config: VllmConfig) -> None:
        before = VllmConfig.__post_init__ is not NATIVE
        config.__post_init__()
        raise Reached(before, config.parallel_config.enable_dbo)


def engine_process(config: VllmConfig, answer: Any) -> None:
    """A process of the engine: it is spawned with a configuration, loads plugins and makes an executor."""
    from vllm.v1.engine.core import EngineCore

    native = VllmConfig.__post_init__ is NATIVE
    try:
        EngineCore(config, Probe, log_stats=False)  # type: ignore[arg-type]
    except Reached as reached:
        answer.send((native, *reached.args))


def worker_process(config: VllmConfig, answer: Any) -> None:
    """A process of a worker: it is spawned with a configuration, loads plugins and takes its class."""
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    native = VllmConfig.__post_init__ is NATIVE
    config.parallel_config.worker_cls = "tests.dbo.relaxations.ProbeWorker"
    try:
        WorkerWrapperBase().init_worker([{"vllm_config": config, "shared_worker_lock": None}])
    except Reached as reached:
        answer.send((native, *reached.args))


class ProbeWorker:
    """Stands for a worker: validates."""

    def __init__(self, vllm_config: VllmConfig, **more: object) -> None:
        Probe(vllm_config)


def spawned(rank: Rank) -> dict[str, Any]:
    """Children of a process whose plugin has relaxed validation: nothing is there until they load the plugin, too."""
    info = rank.folder / "afd_relaxing-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: afd-relaxing\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    sys.path.insert(0, str(rank.folder))  # children that are spawned take it over
    plugin()
    config = make(**DBO)
    seen: dict[str, Any] = {"here": config.parallel_config.enable_dbo}
    context = multiprocessing.get_context("spawn")
    for target in (engine_process, worker_process):
        ours, theirs = context.Pipe()
        process = context.Process(target=target, args=(config, theirs))
        process.start()
        theirs.close()
        seen[target.__name__] = ours.recv()
        process.join()
    return seen
