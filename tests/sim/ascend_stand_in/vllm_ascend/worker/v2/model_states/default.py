"""Builds attention metadata with what is on the host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.worker.gpu.model_states.default import DefaultModelState
from vllm.v1.worker.utils import AttentionGroup

from vllm_ascend.worker.v2.input_batch import AscendInputBatch


class AscendModelState(DefaultModelState):
    """Keeps the metadata that it has built last, for the update of a replay."""

    def prepare_attn(
        self, input_batch: AscendInputBatch, cudagraph_mode: CUDAGraphMode, block_tables: tuple[torch.Tensor, ...],
        slot_mappings: torch.Tensor, attn_groups: list[list[AttentionGroup]], kv_cache_config: KVCacheConfig,
        for_capture: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Of padded size for a graph."""
        batch, padded = input_batch, cudagraph_mode == CUDAGraphMode.FULL
        requests = batch.num_reqs_after_padding if padded else batch.num_reqs
        self.attn_metadata: dict[str, Any] = {}
        for tables, slots, groups in zip(block_tables, slot_mappings, attn_groups, strict=True):
            common = SimpleNamespace(
                num_reqs=requests, num_actual_tokens=batch.num_tokens_after_padding if padded else batch.num_tokens,
                starts=batch.query_start_loc_np[: requests + 1].tolist(), query_start_loc=batch.query_start_loc,
                max_query_len=int(batch.num_scheduled_tokens.max()), seq_lens=batch.seq_lens[:requests],
                seq_lens_cpu=torch.from_numpy(batch.seq_lens_np)[:requests], block_table_tensor=tables, slot_mapping=slots,
                positions=batch.positions, attn_state=batch.attn_state,
            )  # fmt: skip
            for group in groups:
                metadata = group.get_metadata_builder(0).build(0, common)
                self.attn_metadata.update(dict.fromkeys(group.layer_names, metadata))
        return self.attn_metadata
