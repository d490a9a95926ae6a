"""What a ubatch needs on Ascend beyond the native slices."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from vllm.v1.worker.ubatch_utils import UBatchSlice

if TYPE_CHECKING:
    from vllm_ascend.worker.v2.input_batch import AscendInputBatch


def slice_ascend_fields(
    input_batch: "AscendInputBatch",
    ubatch: "AscendInputBatch",
    ubatch_slice: UBatchSlice,
    build_attn_state: Callable[[np.ndarray, int, np.ndarray, np.ndarray], Any] | None = None,
) -> "AscendInputBatch":
    """Give a sliced batch the host-side fields of its own requests.

    Args:
        input_batch: the whole batch. Its `seq_lens_np` may be longer than the batch.
        ubatch: what the native slicer made of it; these two fields still describe the whole batch.
        ubatch_slice: the slice that `ubatch` was made with.
        build_attn_state: `(seq_lens_np, num_reqs, num_scheduled_tokens, num_valid_tokens)` to attention state, that is
            vLLM-Ascend's function of this name with its configuration bound. The second part of a fresh prefill reads
            the cache that the first part filled, so the state of the whole batch may be wrong for a part. None keeps
            the state of the whole batch: dummy and capture batches carry a chosen one.
    """
    requests = ubatch_slice.request_slice
    seq_lens_np = input_batch.seq_lens_np[requests].copy()
    # Tokens of the last request that belong to the next ubatch are not computed yet.
    seq_lens_np[-1] -= max(0, int(input_batch.query_start_loc_np[requests.stop]) - ubatch_slice.token_slice.stop)
    attn_state = ubatch.attn_state
    if build_attn_state is not None:
        # Without speculative decoding every scheduled token is valid.
        scheduled = ubatch.num_scheduled_tokens
        attn_state = build_attn_state(seq_lens_np, ubatch.num_reqs, scheduled, scheduled)
    return replace(ubatch, seq_lens_np=seq_lens_np, attn_state=attn_state)
