"""Configurations of tiny models, made as vLLM makes them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VOCABULARY = 64

LLAMA: Mapping[str, object] = {
    "architectures": ["SimLlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "float32",
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 128,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
"""vLLM's own Llama."""

MOE: Mapping[str, object] = {**LLAMA, "architectures": ["SimMoEForCausalLM"], "sim_experts": 2}
"""The model of `tests.sim.model`: one expert per DP rank (not a number that vLLM knows: it would want a communicator for them)."""


@dataclass(frozen=True)
class Graphs:
    """Graph capture.

    Attributes:
        sizes: token counts that are captured.
        mode: vLLM's name of what is captured.
    """

    sizes: tuple[int, ...] = (1, 2, 4, 8)
    mode: str = "FULL"


@dataclass(frozen=True)
class Dbo:
    """Dual batch overlap.

    Attributes:
        decode: least tokens of a uniform decode step that is split.
        prefill: least tokens of any other step.
    """

    decode: int = 2
    prefill: int = 4


def register_models() -> None:
    """Tell vLLM of the models; as classes, so that it needs no other process to look at them."""
    from vllm import ModelRegistry
    from vllm.model_executor.models.llama import LlamaForCausalLM

    from tests.sim.model import SimMoEForCausalLM

    known = ModelRegistry.get_supported_archs()
    for name, model in (("SimLlamaForCausalLM", LlamaForCausalLM), ("SimMoEForCausalLM", SimMoEForCausalLM)):
        if name not in known:
            ModelRegistry.register_model(name, model)


def engine_arguments(model: Mapping[str, object] = LLAMA, graphs: Graphs | None = None, **more: Any) -> dict[str, Any]:
    """Arguments of vLLM's engine for a tiny model; the folder with its description is left to the temporary folder."""
    register_models()
    folder = Path(tempfile.mkdtemp(prefix="sim-model-"))
    (folder / "config.json").write_text(json.dumps(dict(model)), encoding="utf-8")
    arguments: dict[str, Any] = {
        "model": str(folder),
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "dtype": "float32",
        "max_model_len": 128,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 64,
        "block_size": 16,
        "enable_prefix_caching": False,
        "seed": 0,
        "enforce_eager": graphs is None,
    }
    if graphs is not None:
        arguments["compilation_config"] = {
            "mode": 0,
            "cudagraph_mode": graphs.mode,
            "cudagraph_capture_sizes": list(graphs.sizes),
        }
    return {**arguments, **more}


def make_config(
    model: Mapping[str, object] = LLAMA,
    *,
    graphs: Graphs | None = None,
    dbo: Dbo | None = None,
    dp: tuple[int, int] = (0, 1),
    **more: Any,
) -> Any:
    """A `VllmConfig`.

    Args:
        model: `LLAMA`, `MOE`, or one like them.
        graphs: None runs eagerly.
        dbo: set after vLLM has validated the rest: it rejects DBO without its own all-to-all kernels.
        dp: DP rank and number of DP ranks.
        more: further engine arguments.
    """
    from vllm.engine.arg_utils import EngineArgs

    config = EngineArgs(**engine_arguments(model, graphs, **more)).create_engine_config()
    parallel = config.parallel_config
    rank, size = dp
    if size > 1:
        parallel.data_parallel_size = size
        parallel.data_parallel_rank = parallel.data_parallel_rank_local = parallel.data_parallel_index = rank
        parallel.data_parallel_master_ip = "127.0.0.1"
        parallel._data_parallel_master_port_list = [1]  # taken, and not used: the group is there already
        parallel.is_moe_model = True
    if dbo is not None:
        parallel.enable_dbo = True
        parallel.dbo_decode_token_threshold = dbo.decode
        parallel.dbo_prefill_token_threshold = dbo.prefill
    return config
