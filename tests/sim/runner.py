"""Makes and drives model runners without an engine."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tests.sim.patience import PEER

GROUP_TIMEOUT = timedelta(seconds=PEER)


def join_groups(config: Any, *, rank: int, size: int, rendezvous: Path) -> None:
    """Join vLLM's groups, over gloo and a file: no port that another process could take first.

    A second call in a process does nothing: all configurations of one process have the same ranks.

    Args:
        config: the configuration whose groups they are.
        rank: the rank of this process among all.
        size: number of processes.
        rendezvous: a file that all ranks name and no other group does.
    """
    from vllm.config import set_current_vllm_config
    from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment

    if dist.is_initialized():
        return
    dist.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", world_size=size, rank=rank, timeout=GROUP_TIMEOUT
    )
    parallel = config.parallel_config
    world = parallel.tensor_parallel_size * parallel.pipeline_parallel_size
    with set_current_vllm_config(config):
        init_distributed_environment(world, rank % world, local_rank=0, backend="gloo")
        ensure_model_parallel_initialized(parallel.tensor_parallel_size, parallel.pipeline_parallel_size)


def side_group(rendezvous: Path, *, rank: int, size: int) -> Any:
    """A gloo group beside vLLM's: for ranks of which some are no ranks of vLLM's.

    Args:
        rendezvous: a file that all ranks of this group name and no other group does.
        rank: the rank of this process in the group.
        size: number of its ranks.
    """
    return dist.ProcessGroupGloo(dist.FileStore(str(rendezvous), size), rank, size, GROUP_TIMEOUT)


def make_runner(
    config: Any,
    runner_class: Callable[[Any, torch.device], Any] | None = None,
    *,
    blocks: int = 64,
    capture: bool | None = None,
) -> Any:
    """A model runner that is ready for its first step.

    Args:
        config: from `make_config`.
        runner_class: vLLM's model runner V2 by default.
        blocks: size of the KV cache.
        capture: whether to capture graphs; as the configuration says by default.
    """
    from vllm.config import CompilationMode, CUDAGraphMode, set_current_vllm_config
    from vllm.v1.core.kv_cache_utils import get_kv_cache_configs
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner
    from vllm.v1.worker.workspace import init_workspace_manager

    device = torch.device("cpu")
    with set_current_vllm_config(config):
        init_workspace_manager(device, 2)
        torch.manual_seed(0)
        runner = (runner_class or GPUModelRunner)(config, device)
        runner.load_model()
        scale_weights(runner.model)
        derive_weights(runner.model, config.model_config.dtype)
        if config.compilation_config.mode != CompilationMode.NONE:
            runner.profile_run()  # as a worker does, always; it is what compiles the model
        specs = runner.get_kv_cache_spec()
        resolve_kv_layout(config)
        memory = blocks * sum(spec.page_size_bytes for spec in specs.values())
        kv_config = get_kv_cache_configs(config, [specs], [memory])[0]
        config.cache_config.num_gpu_blocks = kv_config.num_blocks
        runner.initialize_kv_cache(kv_config)
        if capture is None:
            capture = config.compilation_config.cudagraph_mode != CUDAGraphMode.NONE
        if capture:
            runner.capture_model()
    return runner


def resolve_kv_layout(config: Any) -> None:
    """Choose the layout of the KV cache; in vLLM 0.30 that is the engine's business."""
    if "kv_cache_layout" in type(config.cache_config).__dataclass_fields__ and not config.cache_config.kv_cache_layout:
        config.cache_config.kv_cache_layout = "NHD"


def derive_weights(model: torch.nn.Module, dtype: torch.dtype) -> None:
    """Compute what latent attention derives from its weights, again."""
    from vllm.model_executor.layers.attention.mla_attention import MLAAttention

    for module in model.modules():
        if isinstance(module, MLAAttention):
            module.process_weights_after_loading(dtype)


def scale_weights(model: torch.nn.Module, seed: int = 1) -> None:
    """Weights with which everything matters: of vLLM's dummy weights (0.001) attention would hardly reach the logits.

    They depend on the parameter's name alone, so that a part of a model has the weights that it has in the whole.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                generator = torch.Generator().manual_seed(seed + zlib.crc32(name.encode()))
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 2 / parameter.shape[1] ** 0.5)
