"""One dispatch on every DP rank, in processes of `tests.sim.ranks`: a real graph manager, a real reduction over gloo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist

from tests.sim.config import MOE, make_config
from tests.sim.ranks import Rank
from tests.sim.runner import join_groups

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
    from afd_backports.vllm_v026_mrv2_dbo.descriptor import AFDBatchExecutionDescriptor, UBatchGraphManager
    from vllm.config.compilation import CUDAGraphMode
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


def dispatch(rank: Rank, setting: Setting, steps: Sequence[Step]) -> Decision:
    """Call the generated dispatch as the generated execute path does, and count the collectives."""
    from afd_backports.vllm_v026_mrv2_dbo.dispatch import dispatch_cg_and_sync_dp

    if not dist.is_initialized():
        config = make_config(MOE, dp=(rank.index, rank.size))
        join_groups(config, rank=rank.index, size=rank.size, rendezvous=rank.folder / "groups")
    step = steps[rank.index]
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
            rank.size,
            rank.index,
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
