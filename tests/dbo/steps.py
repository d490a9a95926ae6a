"""Whole steps on two DP ranks: vLLM's real runner on the simulated device, natively and with the generated execute path."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import socket
import traceback
import warnings
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

TIMEOUT = 400  # seconds for all runs, imports included

PROMPTS = (
    {"a": [3, 5, 7, 9, 11], "d": [8, 9], "e": list(range(21, 32))},
    {"b": list(range(10, 31)), "c": [40, 41], "f": [22, 23, 24]},
)
STEPS = 6
RUNS = ("native", "whole", "split")


@dataclass
class Outcome:
    """What one rank saw in one run.

    Attributes:
        tokens: sampled, by request.
        logits: by request and position.
        widths: tokens of the model's forward passes, by step.
        prepared: how often attention metadata was built, by step.
        ubatches: of the descriptor, by step; absent natively.
        idle: widths of the step in which the other rank, or this one, had nothing to do.
        dummy: widths of a dummy step on both ranks.
    """

    tokens: dict[str, list[int]] = field(default_factory=dict)
    logits: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    widths: list[list[int]] = field(default_factory=list)
    prepared: list[int] = field(default_factory=list)
    ubatches: list[int] = field(default_factory=list)
    idle: list[int] = field(default_factory=list)
    dummy: list[int] = field(default_factory=list)


def run_all(folder: Path) -> list[dict[str, Outcome]]:
    """All runs on both ranks; per rank the outcomes by run."""
    context = multiprocessing.get_context("spawn")
    with socket.socket() as one, socket.socket() as two:  # ports that are free now
        for sock in (one, two):
            sock.bind(("127.0.0.1", 0))
        ports = (one.getsockname()[1], two.getsockname()[1])
    ranks = []
    for rank in range(2):
        ours, theirs = context.Pipe()
        process = context.Process(target=_rank_main, args=(rank, ports, folder / str(rank), theirs), daemon=True)
        process.start()
        theirs.close()
        ranks.append((process, ours))
    try:
        return [_receive(rank, pipe) for rank, (_, pipe) in enumerate(ranks)]
    finally:
        for process, _ in ranks:
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()


def _receive(rank: int, pipe: Connection) -> dict[str, Outcome]:
    if not pipe.poll(TIMEOUT):
        raise TimeoutError(f"rank {rank} did not answer; its threads are on standard error")
    try:
        answer = pipe.recv()
    except EOFError:
        raise RuntimeError(f"rank {rank} died; its last words are on standard error") from None
    if isinstance(answer, str):
        raise RuntimeError(f"rank {rank} failed:\n{answer}")
    return answer


# ---- in the rank's process ------------------------------------------------------------------------------------


def make_kind(name: str) -> type:
    """The class of the runner: vLLM's own, or with the generated execute path before it."""
    from afd_backports.vllm_v026_mrv2_dbo.runner import UBatchExecution
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    if name == "native":
        return GPUModelRunner
    return type("Split", (UBatchExecution, GPUModelRunner), {})


def make_ubatch_runner(runner: Any) -> Any:
    """The simplest that serves the execute path: one ubatch after the other, in the calling thread."""
    import torch
    from afd_backports.vllm_v026_mrv2_dbo import slicer
    from vllm.config.compilation import CUDAGraphMode
    from vllm.forward_context import DPMetadata, create_forward_context, override_forward_context
    from vllm.v1.worker.gpu.attn_utils import build_slot_mappings_by_layer

    @dataclass
    class State:
        slices: Any
        contexts: list[Any]

    class Sequential:
        def prepare(self, input_batch, block_tables, slot_mappings, cg_mode=CUDAGraphMode.NONE, for_capture=False):
            assert (cg_mode, for_capture) == (CUDAGraphMode.NONE, False)
            slices, contexts = slicer.create_ubatch_slices(input_batch, 2), []
            for part in slices:
                ubatch = slicer._slice_input_batch(
                    input_batch, part, *(torch.zeros(n, dtype=torch.int32) for n in self._sizes(part))
                )
                slots = slot_mappings[:, part.token_slice]
                metadata = runner.model_state.prepare_attn(
                    ubatch, cg_mode, tuple(table[part.request_slice] for table in block_tables), slots,
                    runner.attn_groups, runner.kv_cache_config,
                )  # fmt: skip
                across = torch.full((runner.dp_size,), part.num_tokens, dtype=torch.int32)
                contexts.append(
                    create_forward_context(
                        metadata, runner.vllm_config,
                        dp_metadata=DPMetadata.make(runner.parallel_config, part.num_tokens, across),
                        slot_mapping=build_slot_mappings_by_layer(slots, runner.kv_cache_config),
                    )
                )  # fmt: skip
            return State(slices, contexts)

        def _sizes(self, part: Any) -> tuple[int, int]:
            requests = part.request_slice.stop - part.request_slice.start
            return requests + 1, requests

        def run(self, model, model_inputs, ubatch_state):
            outputs = []
            for part, context in zip(ubatch_state.slices, ubatch_state.contexts, strict=True):
                with override_forward_context(context):
                    outputs.append(model(**slicer.slice_model_inputs(model_inputs, part.token_slice)))
            return slicer.merge_ubatch_outputs(outputs)

    return Sequential()


def run(name: str, config: Any, rank: int) -> Outcome:
    """All steps of one run on this rank."""
    from tests.dbo.sim.harness import Scheduler, make_runner
    from tests.dbo.sim.model import WIDTHS

    parallel = config.parallel_config
    parallel.enable_dbo = name == "split"
    parallel.dbo_decode_token_threshold, parallel.dbo_prefill_token_threshold = 2, 4
    runner, outcome = make_runner(config, make_kind(name)), Outcome()
    if name == "split":
        runner.ubatch_runner = make_ubatch_runner(runner)
    native = runner.prepare_inputs

    def prepare_inputs(scheduler_output: Any, batch_desc: Any) -> Any:
        if name != "native":
            outcome.ubatches.append(batch_desc.num_ubatches)
        return native(scheduler_output, batch_desc)

    runner.prepare_inputs = prepare_inputs

    def widths(step: Any) -> list[int]:
        WIDTHS.clear()
        step()
        return list(WIDTHS)

    built: list[int] = []
    native_attn = runner.model_state.prepare_attn

    def prepare_attn(*args: Any, **kwargs: Any) -> Any:
        built.append(1)
        return native_attn(*args, **kwargs)

    runner.model_state.prepare_attn = prepare_attn
    scheduler = Scheduler(runner, PROMPTS[rank])
    for _ in range(STEPS):
        built.clear()
        outcome.widths.append(widths(scheduler.step))
        outcome.prepared.append(len(built))
    # The other rank has nothing to do: it takes part with one token, as the engine makes it do.
    outcome.idle = widths(scheduler.step if rank == 0 else lambda: runner._dummy_run(1, uniform_decode=True))
    outcome.dummy = widths(lambda: runner._dummy_run(7, uniform_decode=True))
    outcome.logits = scheduler.logits
    outcome.tokens = scheduler.finish()
    return outcome


def _rank_main(rank: int, ports: tuple[int, int], folder: Path, pipe: Connection) -> None:
    faulthandler.enable()
    faulthandler.dump_traceback_later(TIMEOUT, exit=True)
    warnings.simplefilter("ignore")
    try:
        from tests.dbo.sim import device

        device.install()
        import torch

        torch.set_num_threads(1)
        from tests.dbo.sim.harness import make_config, use_platform

        use_platform()
        import vllm.v1.worker.gpu.model_runner  # noqa: F401

        device.after_import()
        config = make_config(folder, rank, 2)
        parallel = config.parallel_config
        parallel.data_parallel_master_ip, parallel.data_parallel_master_port = "127.0.0.1", ports[0]
        parallel._data_parallel_master_port_list = [ports[1]]
        from vllm.config import set_current_vllm_config
        from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment

        with set_current_vllm_config(config):
            init_distributed_environment(1, 0, f"tcp://127.0.0.1:{ports[0]}", 0, backend="gloo")
            ensure_model_parallel_initialized(1, 1)
        pipe.send({name: run(name, config, rank) for name in RUNS})
    except BaseException:
        pipe.send(traceback.format_exc())
        os._exit(1)
