"""DP ranks as real processes: each holds a real graph manager and takes part in dispatches over gloo."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TIMEOUT = 120  # seconds; far above what a dispatch takes, far below the patience of a CI job
STARTUP = 300  # importing vLLM on a busy machine

COLLECTIVES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "barrier", "broadcast",
    "broadcast_object_list", "reduce", "reduce_scatter_tensor",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """What one rank brings to a dispatch.

    Attributes:
        tokens: its real tokens.
        reqs: its requests; one per token when absent.
        uniform: its uniform token count, as its runner computes it.
        allow: whether it votes for ubatches.
        eager: whether it cannot use a graph.
    """

    tokens: int
    reqs: int | None = None
    uniform: int | None = None
    allow: bool = True
    eager: bool = False


@dataclass(frozen=True)
class Setting:
    """What all ranks have in common.

    Attributes:
        decode: threshold of uniform decode steps.
        prefill: threshold of all other steps.
        sizes: captured single-batch sizes (full decode graphs); empty when graphs are off.
        twins: sizes captured for two ubatches; None when the manager is vLLM's own.
        dbo: whether ubatches are configured.
        mode: what is captured, when anything is.
    """

    decode: int = 4
    prefill: int = 8
    sizes: tuple[int, ...] = ()
    twins: tuple[int, ...] | None = None
    dbo: bool = True
    mode: str = "FULL_DECODE_ONLY"


@dataclass(frozen=True)
class Decision:
    """What one rank got back."""

    mode: str
    tokens: int
    reqs: int | None
    ubatches: int
    uniform: int | None
    across: tuple[int, ...] | None
    type_name: str
    native_graph: bool  # the descriptor finds a graph that vLLM's own manager captured
    twin_graph: bool
    collectives: tuple[str, ...] = field(default=())


class Ranks:
    """The parent's side: starts the ranks, sends them steps, collects decisions."""

    def __init__(self, size: int, folder: Path) -> None:
        self.size, self.folder = size, folder
        self.processes: list[multiprocessing.process.BaseProcess] = []
        self.pipes: list[Connection] = []

    def __enter__(self) -> Ranks:
        context = multiprocessing.get_context("spawn")
        for rank in range(self.size):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_rank_main, args=(rank, self.size, str(self.folder / "rendezvous"), theirs), daemon=True
            )
            process.start()
            theirs.close()
            self.processes.append(process)
            self.pipes.append(ours)
        for rank in range(self.size):
            self._receive(rank, STARTUP)
        return self

    def __exit__(self, *exc: object) -> None:
        for pipe in self.pipes:
            try:
                pipe.send(None)
            except OSError:  # the rank is gone already
                continue
        for process in self.processes:
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()

    def dispatch(self, setting: Setting, steps: Sequence[Step]) -> list[Decision]:
        """Run one dispatch on all ranks at once."""
        assert len(steps) == self.size
        for pipe, step in zip(self.pipes, steps, strict=True):
            pipe.send((setting, step))
        return [self._receive(rank, TIMEOUT) for rank in range(self.size)]

    def _receive(self, rank: int, timeout: float) -> Any:
        if not self.pipes[rank].poll(timeout):
            raise TimeoutError(f"rank {rank} did not answer; its threads are on standard error")
        try:
            answer = self.pipes[rank].recv()
        except EOFError:
            raise RuntimeError(f"rank {rank} died; its last words are on standard error") from None
        if isinstance(answer, str):
            raise RuntimeError(f"rank {rank} failed:\n{answer}")
        return answer


# ---- in the rank's process ------------------------------------------------------------------------------------


def make_parallel_config(setting: Setting) -> Any:
    """The real configuration of the thresholds."""
    from vllm.config import ParallelConfig

    return ParallelConfig(
        enable_dbo=setting.dbo,
        dbo_decode_token_threshold=setting.decode,
        dbo_prefill_token_threshold=setting.prefill,
    )


def make_manager(setting: Setting, parallel_config: Any) -> Any:
    """A graph manager with captured shapes: vLLM's own, or one that also holds graphs of two ubatches."""
    import torch
    from afd_backports.vllm_v026_mrv2_dbo.descriptor import AFDBatchExecutionDescriptor, UBatchGraphManager
    from vllm.config.compilation import CUDAGraphMode
    from vllm.platforms import current_platform
    from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager

    class TwinManager(CudaGraphManager, UBatchGraphManager):
        """As the graph manager of the patch set: native shapes, and uniform decode shapes split in two."""

        def dispatch(self, num_reqs, num_tokens, uniform_token_count, num_active_loras, num_ubatches=1):
            if num_ubatches == 1:
                native = super().dispatch(num_reqs, num_tokens, uniform_token_count, num_active_loras)
                return AFDBatchExecutionDescriptor.of(native)
            for size in sorted(setting.twins or ()):
                if size >= num_tokens and size >= num_reqs and uniform_token_count == 1:
                    return twin(size)
            return AFDBatchExecutionDescriptor(
                CUDAGraphMode.NONE, num_tokens, num_reqs, num_active_loras=num_active_loras, num_ubatches=num_ubatches
            )

    def twin(size: int) -> AFDBatchExecutionDescriptor:
        return AFDBatchExecutionDescriptor(CUDAGraphMode.FULL, size, size, uniform_token_count=1, num_ubatches=2)

    type(current_platform)._global_graph_pool = (0, 0)  # there is no device to ask
    config = SimpleNamespace(
        scheduler_config=SimpleNamespace(max_num_seqs=64),
        compilation_config=SimpleNamespace(
            cudagraph_capture_sizes=list(setting.sizes), max_cudagraph_capture_size=max(setting.sizes, default=0)
        ),
        parallel_config=parallel_config,
        speculative_config=None,
    )
    mode = CUDAGraphMode[setting.mode] if setting.sizes else CUDAGraphMode.NONE
    kind = CudaGraphManager if setting.twins is None else TwinManager
    manager = kind(config, torch.device("cpu"), mode, decode_query_len=1)
    manager._graphs_captured = True
    for descs in manager._capture_descs.values():
        manager.graphs.update((desc, "native") for desc in descs)
    manager.graphs.update((twin(size), "twin") for size in setting.twins or ())
    return manager


def dispatch(setting: Setting, step: Step, size: int, rank: int) -> Decision:
    """Call the generated dispatch as the generated execute path does, and count the collectives."""
    import torch.distributed as dist
    from afd_backports.vllm_v026_mrv2_dbo.dispatch import dispatch_cg_and_sync_dp

    parallel_config = make_parallel_config(setting)
    manager = make_manager(setting, parallel_config)
    seen: list[str] = []
    originals = {name: getattr(dist, name) for name in COLLECTIVES}

    def counted(name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            return originals[name](*args, **kwargs)

        return call

    for name in COLLECTIVES:
        setattr(dist, name, counted(name))
    try:
        desc, across = dispatch_cg_and_sync_dp(
            manager,
            step.tokens if step.reqs is None else step.reqs,
            step.tokens,
            step.uniform,
            size,
            rank,
            need_eager=step.eager,
            parallel_config=parallel_config,
            allow_ubatching=step.allow,
            uniform_decode=step.uniform == 1,
        )
    finally:
        for name, original in originals.items():
            setattr(dist, name, original)
    found = manager.graphs.get(desc)
    return Decision(
        mode=desc.cg_mode.name,
        tokens=desc.num_tokens,
        reqs=desc.num_reqs,
        ubatches=desc.num_ubatches,
        uniform=desc.uniform_token_count,
        across=None if across is None else tuple(across.tolist()),
        type_name=type(desc).__name__,
        native_graph=found == "native",
        twin_graph=found == "twin",
        collectives=tuple(seen),
    )


def join_group(size: int, rank: int, rendezvous: str) -> None:
    """Make the gloo group that vLLM's `get_dp_group` returns, and a pipeline group of this rank alone."""
    import torch.distributed as dist
    from vllm.distributed import parallel_state

    dist.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", world_size=size, rank=rank, timeout=timedelta(seconds=TIMEOUT)
    )

    def group(ranks: list[list[int]], name: str) -> Any:
        return parallel_state.GroupCoordinator(ranks, rank, "gloo", use_device_communicator=False, group_name=name)

    parallel_state._DP = group([list(range(size))], "dp")
    parallel_state._PP = group([[i] for i in range(size)], "pp")


def _rank_main(rank: int, size: int, rendezvous: str, pipe: Connection) -> None:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    try:
        faulthandler.dump_traceback_later(STARTUP, exit=True)
        import torch

        torch.set_num_threads(1)
        join_group(size, rank, rendezvous)
        pipe.send(rank)
        while True:
            faulthandler.cancel_dump_traceback_later()
            message = pipe.recv()
            if message is None:
                break
            faulthandler.dump_traceback_later(TIMEOUT, exit=True)
            pipe.send(dispatch(*message, size, rank))
    except EOFError:  # the parent is gone
        pass
    except BaseException:
        pipe.send(traceback.format_exc())
        os._exit(1)
