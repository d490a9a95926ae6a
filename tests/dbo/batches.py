"""Real input batches of vLLM 0.26 from plain descriptions, and the plain reference of what a slice must hold."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from vllm.v1.worker.gpu.input_batch import InputBatch, InputBuffers

MAX_REQS, MAX_TOKENS = 12, 96


@dataclass(frozen=True)
class Plain:
    """A batch, said plainly.

    Attributes:
        requests: per request its computed tokens and the tokens scheduled now.
        pad_tokens: tokens of padding behind the real ones.
        pad_reqs: empty requests behind the real ones.
    """

    requests: tuple[tuple[int, int], ...]
    pad_tokens: int = 0
    pad_reqs: int = 0

    @property
    def tokens(self) -> list[tuple[int, int]]:
        """Of every real token: its request, and its position in that request."""
        return [(i, computed + k) for i, (computed, new) in enumerate(self.requests) for k in range(new)]

    @property
    def padded(self) -> int:
        return len(self.tokens) + self.pad_tokens

    @property
    def padded_reqs(self) -> int:
        return len(self.requests) + self.pad_reqs

    def visible(self, request: int, stop: int) -> int:
        """How many tokens of a request exist once the batch's tokens before `stop` are computed."""
        computed, _ = self.requests[request]
        return computed + sum(1 for owner, _ in self.tokens[:stop] if owner == request)


def token_id(request: int, position: int) -> int:
    """A different id for every token of a batch."""
    return 1 + request * 1000 + position


def make_buffers() -> InputBuffers:
    return InputBuffers(MAX_REQS, MAX_TOKENS, torch.device("cpu"))


def make_batch(plain: Plain, buffers: InputBuffers, cls: type[InputBatch] = InputBatch, **fields: Any) -> InputBatch:
    """What the native runner's `prepare_inputs` leaves for this batch; request i sits in state row 100 + i."""
    reqs, total = len(plain.requests), len(plain.tokens)
    computed = np.array([c for c, _ in plain.requests], dtype=np.int32)
    scheduled = np.array([n for _, n in plain.requests], dtype=np.int32)
    starts = np.full(MAX_REQS + 1, total, dtype=np.int32)
    starts[0] = 0
    np.cumsum(scheduled, out=starts[1 : reqs + 1])
    buffers.query_start_loc.copy_(torch.from_numpy(starts))
    buffers.seq_lens.zero_()
    buffers.seq_lens[:reqs] = torch.from_numpy(computed + scheduled)
    buffers.input_ids.zero_()
    buffers.positions.zero_()
    buffers.input_ids[:total] = torch.tensor([token_id(*t) for t in plain.tokens], dtype=torch.int32)
    buffers.positions[:total] = torch.tensor([position for _, position in plain.tokens])
    buffers.is_padding[:total] = False
    buffers.is_padding[total:] = True
    upper = np.zeros(plain.padded_reqs, dtype=np.int32)
    upper[:reqs] = computed + scheduled
    rows = torch.arange(100, 100 + reqs, dtype=torch.int32)
    return cls(
        req_ids=[f"request {i}" for i in range(reqs)],
        num_reqs=reqs,
        num_reqs_after_padding=plain.padded_reqs,
        idx_mapping=rows,
        idx_mapping_np=rows.numpy(),
        expanded_idx_mapping=rows,
        expanded_local_pos=torch.zeros(reqs, dtype=torch.int32),
        num_scheduled_tokens=scheduled,
        num_tokens=total,
        num_tokens_after_padding=plain.padded,
        num_draft_tokens=0,
        num_draft_tokens_per_req=None,
        query_start_loc=buffers.query_start_loc[: plain.padded_reqs + 1],
        query_start_loc_np=starts[: plain.padded_reqs + 1],
        seq_lens=buffers.seq_lens[: plain.padded_reqs],
        seq_lens_cpu_upper_bound=torch.from_numpy(upper),
        dcp_local_seq_lens=None,
        num_computed_tokens_np=computed,
        prefill_len_np=computed + scheduled,
        num_computed_prefill_tokens_np=computed,
        is_prefilling_np=scheduled > 1,
        max_seq_len_np=None,
        input_ids=buffers.input_ids[: plain.padded],
        positions=buffers.positions[: plain.padded],
        is_padding=buffers.is_padding[: plain.padded],
        logits_indices=buffers.query_start_loc[1 : reqs + 1] - 1,
        cu_num_logits=torch.arange(reqs + 1, dtype=torch.int32),
        cu_num_logits_np=np.arange(reqs + 1, dtype=np.int32),
        has_structured_output_reqs=False,
        prompt_lens=torch.arange(reqs, dtype=torch.int32) + 7,
        **fields,
    )


def plain_slices(plain: Plain, splits: list[int]) -> list[tuple[slice, slice]]:
    """Per ubatch its requests and tokens, for any split points; the last one also holds the padding."""
    edges = [0, *splits, plain.padded]
    owners = [owner for owner, _ in plain.tokens]
    last = len(plain.requests) - 1
    result = []
    for start, stop in itertools.pairwise(edges):
        inside = owners[start:stop]
        # A slice of padding alone holds the last request, with no tokens of it.
        first, end = (inside[0], inside[-1] + 1) if inside else (last, last + 1)
        result.append((slice(first, plain.padded_reqs if stop == plain.padded else end), slice(start, stop)))
    return result
