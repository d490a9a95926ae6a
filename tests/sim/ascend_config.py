"""Configurations for `tests.sim.ascend_model`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.sim.config import MOE

MLA: Mapping[str, object] = {
    **MOE,
    "architectures": ["SimMlaForCausalLM"],
    "model_type": "deepseek_v2",
    "num_key_value_heads": 4,
    "q_lora_rank": None,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "n_routed_experts": 0,
    "max_position_embeddings": 256,
}
"""A tiny model with latent attention."""

ENGINE: Mapping[str, Any] = {"block_size": 128, "max_model_len": 256}
"""Blocks of the only size that latent attention of vllm-ascend takes, and requests of two of them."""
