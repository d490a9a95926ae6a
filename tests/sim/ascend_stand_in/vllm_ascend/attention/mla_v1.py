"""Latent attention: every token is a request of its own, in prefills too."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch_npu
from vllm.config import VllmConfig
from vllm.model_executor.layers.attention.mla_attention import MLACommonMetadataBuilder
from vllm.v1.attention.backend import AttentionBackend, AttentionCGSupport, MLAAttentionImpl
from vllm.v1.kv_cache_interface import AttentionSpec

from vllm_ascend.ascend_forward_context import _EXTRA_CTX
from vllm_ascend.attention.attention_v1 import AscendAttentionState
from vllm_ascend.compilation.acl_graph import get_graph_params, update_graph_params_workspaces
from vllm_ascend.ops.rotary_embedding import get_cos_and_sin_mla


class AscendMLABackend(AttentionBackend):
    """Says which classes belong together."""

    accept_output_buffer: bool = True

    @staticmethod
    def get_name() -> str:
        """A name in vLLM's table of backends."""
        return "FLASH_ATTN"

    @staticmethod
    def get_builder_cls():
        """The metadata builder."""
        return AscendMLAMetadataBuilder

    @staticmethod
    def get_impl_cls() -> type["MLAAttentionImpl"]:  # noqa: UP037
        """The attention of a layer."""
        return AscendMLAImpl

    @staticmethod
    def get_kv_cache_shape(
        num_blocks: int, block_size: int, num_kv_heads: int, head_size: int, cache_type: str = ""
    ) -> tuple[int, ...]:
        """The latent part and the positional one lie together."""
        return num_blocks, block_size, num_kv_heads, head_size

    @staticmethod
    def get_supported_kernel_block_sizes() -> list[int]:
        """One."""
        return [128]


@dataclass
class AscendMLADecodeMetadata:
    """Of each token."""

    block_table: torch.Tensor
    input_positions: torch.Tensor
    seq_lens: torch.Tensor
    seq_lens_list: list[int]
    seq_lens_device: torch.Tensor
    max_seq_lens: int
    cos: torch.Tensor = None
    sin: torch.Tensor = None
    attn_mask: torch.Tensor | None = None
    actual_seq_lengths_q: list[int] | None = None


@dataclass
class AscendMLAMetadata:
    """Of a step."""

    slot_mapping: torch.Tensor
    num_actual_tokens: int
    seq_lens: torch.Tensor
    seq_lens_cpu: torch.Tensor
    query_start_loc: torch.Tensor
    block_tables: torch.Tensor
    num_prefills: int
    num_decodes: int
    num_decode_tokens: int
    query_lens: list[int] | None = None
    num_input_tokens: int = 0
    attn_mask: torch.Tensor = None
    head_dim: int | None = None
    attn_state: AscendAttentionState = AscendAttentionState.ChunkedPrefill
    prefill: AscendMLAPrefillMetadata | None = None  # type: ignore[name-defined]  # noqa: F821 - never there
    decode: AscendMLADecodeMetadata | None = None
    reshape_cache_event: torch.npu.Event = None


class AscendMLAMetadataBuilder(MLACommonMetadataBuilder[AscendMLAMetadata]):
    """Takes lengths from the host."""

    decode_metadata_cls: type[AscendMLADecodeMetadata] = AscendMLADecodeMetadata

    @classmethod
    def get_cudagraph_support(
        cls: type["AscendMLAMetadataBuilder"], vllm_config: VllmConfig, kv_cache_spec: AttentionSpec  # noqa: UP037
    ) -> AttentionCGSupport:  # fmt: skip
        """Of steps in which all requests have as many tokens."""
        return AttentionCGSupport.UNIFORM_BATCH

    def build(
        self, common_prefix_len: int, common_attn_metadata: AscendCommonAttentionMetadata, fast_build: bool = False  # noqa: F821
    ) -> AscendMLAMetadata:  # fmt: skip
        """Decodes find their rotary factors where graphs read them."""
        m, lengths = common_attn_metadata, common_attn_metadata.seq_lens_cpu.tolist()
        counts = [stop - start for start, stop in zip(m.starts, m.starts[1:], strict=False)]
        decodes = m.max_query_len <= 1  # a request that is padding may have more
        owners = [request for request, count in enumerate(counts) for _ in range(count)]
        kept = (
            lengths
            if decodes
            else [lengths[r] - counts[r] + 1 + i for r in range(m.num_reqs) for i in range(counts[r])]
        )
        positions = m.positions[: m.num_actual_tokens]
        cos, sin = get_cos_and_sin_mla(positions, use_cache=decodes)
        tables = m.block_table_tensor[: m.num_reqs] if decodes else m.block_table_tensor[owners]
        decode = AscendMLADecodeMetadata(
            tables, positions, m.seq_lens_cpu, kept, m.seq_lens, max(lengths, default=0), cos, sin
        )
        return AscendMLAMetadata(
            m.slot_mapping[: m.num_actual_tokens], m.num_actual_tokens, m.seq_lens_cpu, m.seq_lens_cpu.clone(), m.query_start_loc,
            m.block_table_tensor, 0, m.num_reqs, m.num_actual_tokens, counts, attn_state=m.attn_state, decode=decode,
        )  # fmt: skip


class AscendMLAImpl(MLAAttentionImpl):
    """The attention of a layer."""

    def __init__(
        self, num_heads: int, head_size: int, scale: float, num_kv_heads: int, alibi_slopes: list[float] | None,
        sliding_window: int | None, kv_cache_dtype: str, logits_soft_cap: float | None, attn_type: str,
        kv_sharing_target_layer_name: str | None, **kwargs,
    ):  # fmt: skip
        self.num_heads, self.scale, self.num_kv_heads, self.kv_cache_dtype = (
            num_heads,
            scale,
            num_kv_heads,
            kv_cache_dtype,
        )
        self.latent, self.rope = kwargs["kv_lora_rank"], kwargs["qk_rope_head_dim"]
        self.nope, self.value = kwargs["qk_nope_head_dim"], kwargs["v_head_dim"]
        self.q_proj, self.kv_b_proj, self.o_proj = kwargs["q_proj"], kwargs["kv_b_proj"], kwargs["o_proj"]
        self.kv_a_proj, self.norm = kwargs["kv_a_proj_with_mqa"], kwargs["kv_a_layernorm"]

    def process_weights_after_loading(self, act_dtype: torch.dtype):
        """The two halves of the projection, by head."""
        weight = self.kv_b_proj.weight.data.T.view(self.latent, self.num_heads, self.nope + self.value)
        keys, values = weight.split([self.nope, self.value], -1)
        self.W_UK_T, self.W_UV = keys.permute(1, 2, 0).contiguous(), values.transpose(0, 1).contiguous()

    def forward_mha(
        self, layer_name: str, hidden_states: torch.Tensor, kv_cache: tuple[torch.Tensor], attn_metadata: M,  # noqa: F821
        need_gather_q_kv: bool = False, output: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Not used."""
        raise NotImplementedError

    def forward_mqa(
        self, layer_name: str, hidden_states: torch.Tensor, kv_cache: tuple[torch.Tensor], attn_metadata: M,  # noqa: F821
        need_gather_q_kv: bool = False, output: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Not used."""
        raise NotImplementedError

    def forward(
        self, layer_name, hidden_states: torch.Tensor, kv_cache: tuple[torch.Tensor], attn_metadata: M,  # noqa: F821
        need_gather_q_kv: bool = False, output: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Into `output`."""
        if attn_metadata is None:  # a profiling run
            return output.fill_(0)
        count, decode = attn_metadata.num_actual_tokens, attn_metadata.decode
        hidden = hidden_states[:count]
        query, rotated = self.q_proj(hidden)[0].view(count, self.num_heads, -1).split([self.nope, self.rope], -1)
        query = torch.bmm(query.transpose(0, 1), self.W_UK_T).transpose(0, 1)[:, :, None]
        rotated = torch_npu.npu_interleave_rope(rotated[:, :, None], decode.cos, decode.sin)
        latent, positional = kv_cache.split([self.latent, self.rope], -1)
        torch_npu.npu_kv_rmsnorm_rope_cache(
            self.kv_a_proj(hidden)[0][:, None, None], self.norm.weight, decode.cos, decode.sin, attn_metadata.slot_mapping.long(),
            positional, latent, epsilon=self.norm.variance_epsilon, cache_mode="PA",
        )  # fmt: skip
        attended = self._attend(query, latent.transpose(1, 2), rotated, positional.transpose(1, 2), decode)
        attended = torch_npu.npu_transpose_batchmatmul(attended[:, :, 0], self.W_UV, perm_y=(1, 0, 2))
        output.zero_()
        output[:count] = self.o_proj(attended.reshape(count, -1))[0]
        return output

    def _attend(self, query, keys, query_rope, key_rope, decode):
        """Eagerly; or captured so that it waits for an update, with what that needs among the parameters."""
        options = {
            "query_rope": query_rope, "key_rope": key_rope, "block_table": decode.block_table, "softmax_scale": self.scale,
            "input_layout": "BNSD_NBSD", "actual_seq_qlen": None, "return_softmax_lse": False,
        }  # fmt: skip
        operator = torch_npu.npu_fused_infer_attention_score_v2
        if not _EXTRA_CTX.capturing:
            return operator(query, keys, keys, actual_seq_kvlen=decode.seq_lens_list, **options)[0]
        count, params, stream = len(query), get_graph_params(), torch.npu.current_stream()
        event = torch.npu.ExternalEvent()
        event.wait(stream)
        event.reset(stream)
        if params.workspaces.get(count) is None:
            workspace = torch_npu._npu_fused_infer_attention_score_v2_get_max_workspace(query, keys, keys, **options)
            update_graph_params_workspaces(count, workspace)
        out = query.new_empty(self.num_heads, count, 1, self.latent)
        torch.npu.graph_task_group_begin(stream)
        operator.out(
            query,
            keys,
            keys,
            actual_seq_kvlen=decode.seq_lens_list,
            workspace=params.workspaces[count],
            out=[out],
            **options,
        )
        params.handles[count].append(torch.npu.graph_task_group_end(stream))
        params.attn_params[count].append((query, keys, options, out))
        params.events[count].append(event)
        return out

    @staticmethod
    def update_graph_params(
        update_stream, forward_context, num_tokens, vllm_config=None, speculative_config=None, draft_attn_metadatas=None
    ):
        """New lengths for each layer; then it may go on."""
        params = get_graph_params()
        kept = (params.attn_params[num_tokens], params.handles[num_tokens], params.events[num_tokens])
        with torch.npu.stream(update_stream):
            for metadata, (query, keys, options, out), handle, event in zip(
                forward_context.attn_metadata.values(), *kept, strict=False
            ):
                lengths = metadata.decode.seq_lens_list
                torch.npu.graph_task_update_begin(update_stream, handle)
                torch_npu.npu_fused_infer_attention_score_v2.out(
                    query, keys, keys, actual_seq_kvlen=lengths + [0] * (num_tokens - len(lengths)),
                    workspace=params.workspaces[num_tokens], out=[out], **options,
                )  # fmt: skip
                torch.npu.graph_task_update_end(update_stream)
                event.record(update_stream)
