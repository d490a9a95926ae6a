"""The ubatch runner by itself, in a process of `tests.sim.ranks`: a function in the place of the model, two tensors as input."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from afd_backports.vllm_v026_mrv2_dbo.host import PlainHost
from afd_backports.vllm_v026_mrv2_dbo.ubatch_runner import (
    AFDAscendUBatchRunnerV2,
    HostedRunner,
    UBatchState,
    maybe_build_ubatch_runner,
)
from afd_backports.vllm_v026_mrv2_dbo.ubatching import hand_over
from vllm.config import ParallelConfig
from vllm.forward_context import ForwardContext
from vllm.utils.torch_utils import current_stream
from vllm.v1.worker.ubatch_utils import UBatchSlice
from vllm.v1.worker.ubatching import dbo_current_ubatch_id

from tests.sim import streams


def make(host: Any = None, **settings: Any) -> AFDAscendUBatchRunnerV2 | None:
    """A ubatch runner without a model and without attention."""
    parallel = ParallelConfig(**settings)
    parallel.data_parallel_size = 2
    config: Any = SimpleNamespace(parallel_config=parallel)
    return maybe_build_ubatch_runner(config, torch.device("cpu"), None, [], None, 8, host or PlainHost())  # type: ignore[arg-type]


def run(runner: AFDAscendUBatchRunnerV2, model: Callable[..., Any], **how: Any) -> Any:
    """Two ubatches of three tokens."""
    slices = [UBatchSlice(slice(0, 1), slice(0, 3)), UBatchSlice(slice(1, 2), slice(3, 6))]
    state = UBatchState(slices, [ForwardContext({}, {}, {}) for _ in slices])
    inputs = {"input_ids": torch.arange(6), "positions": torch.arange(6) + 10}
    return runner.begin_capturable_run(model, inputs, state, **how)


def whether_built(rank: Any) -> dict[str, Any]:
    built: dict[str, Any] = {
        "off": make(),
        "dbo": type(make(enable_dbo=True)).__name__,
        "two": type(make(ubatch_size=2)).__name__,
    }
    try:
        make(ubatch_size=3)
    except ValueError as error:
        built["three"] = str(error)
    alone: Any = SimpleNamespace(parallel_config=ParallelConfig(enable_dbo=True))
    built["one rank"] = maybe_build_ubatch_runner(alone, torch.device("cpu"), None, [], None, 8, PlainHost())  # type: ignore[arg-type]
    built["host"] = type(HostedRunner().make_afd_host()).__name__
    return built


def which_streams(rank: Any) -> dict[str, Any]:
    """The stages compute where the caller does, though vLLM has not heard that the caller changed its stream."""
    seen: dict[str, Any] = {}
    runner = make(enable_dbo=True)
    assert runner is not None
    current_stream()  # vLLM's record is made
    own = streams.Stream()

    def model(input_ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        stage = dbo_current_ubatch_id()
        seen.setdefault(f"{name} {stage}", []).append(streams.current_stream() is wanted[name])
        hand_over()
        seen[f"{name} {stage}"].append(streams.current_stream() is wanted[name])
        return input_ids + positions

    def no_handle() -> None:
        raise AssertionError("there is no cuBLAS")

    torch.cuda.current_blas_handle = no_handle  # type: ignore[assignment]
    streams.set_stream(own)  # as vllm-ascend does: past vLLM
    wanted = {"eager": own, "capture": runner.capture_stream}
    for name in wanted:
        seen[name] = run(runner, model, for_capture=name == "capture")().tolist()
    seen["left"] = threading.active_count()
    return seen


def compiled_class(rank: Any) -> dict[str, list[str]]:
    """The code of a class whose calls put another in its place, while both stages run and afterwards; and when one fails."""
    from afd_backports.vllm_v026_mrv2_dbo import ubatch_runner as generated

    class Model(torch.nn.Module):
        """In the place of vLLM's wrapper around what is compiled."""

        def forward(self, input_ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
            return input_ids

    def compiled(self: Any, input_ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return input_ids

    own, codes = Model.forward.__code__, {Model.forward.__code__: "own", compiled.__code__: "compiled"}

    class Calling(Model):
        """Each stage finds the other's code, and leaves it, as two calls of vLLM's wrapper do that overlap."""

        forward = Model.forward

        def __call__(self, **inputs: Any) -> Any:
            before, Model.forward.__code__ = Model.forward.__code__, compiled.__code__
            try:
                hand_over()
                if fails:
                    raise ValueError("mine")
                return compiled(self, **inputs)
            finally:
                Model.forward.__code__ = before

    seen: dict[str, list[str]] = {}
    runner = make(enable_dbo=True)
    assert runner is not None
    with mock.patch.object(generated, "TorchCompileWithNoGuardsWrapper", Model):
        for fails in (False, True):
            Model.forward.__code__ = own
            finish = run(runner, Calling())
            try:
                said = str(finish().tolist())
            except ValueError as error:
                said = str(error)
            seen[f"fails {fails}"] = [said, codes[Model.forward.__code__]]
    return seen


def fields_of_failure(rank: Any) -> dict[str, Any]:
    """What is kept of a failure when nobody holds the error any more, without a garbage collection."""
    import gc
    import weakref

    runner, found = make(enable_dbo=True), {}
    assert runner is not None

    class Big:
        """Something that the model's frame holds."""

    def model(input_ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        big = Big()
        found["big"] = weakref.ref(big)
        if dbo_current_ubatch_id() == 1:
            raise ValueError("mine")
        hand_over()
        return input_ids

    gc.disable()
    try:
        run(runner, model)()
    except ValueError as error:
        found["error"] = str(error)
    return {
        "error": found["error"],
        "kept": found["big"]() is not None,
        "pending": runner._pending_finish,
        "run": runner.stage_run,
    }
