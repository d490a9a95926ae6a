"""Behaviour 6 to 8: batches are cut at any token, per-token inputs are views, outputs come together again."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

import numpy as np
import torch
from afd_backports.vllm_v026_mrv2_dbo.slicer import (
    _slice_input_batch,
    create_ubatch_slices,
    merge_ubatch_outputs,
    slice_ascend_fields,
    slice_model_inputs,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from vllm.sequence import IntermediateTensors
from vllm.v1.worker.gpu.input_batch import InputBatch
from vllm.v1.worker.ubatch_utils import UBatchSlice

from tests.dbo.batches import MAX_REQS, Plain, make_batch, make_buffers, plain_slices, token_id

pytestmark = pytest.mark.vllm

REQUESTS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=6).map(tuple)
PLAIN = st.builds(Plain, REQUESTS, st.integers(0, 30), st.integers(0, 3))
DECODES = st.builds(
    lambda computed, pad, reqs: Plain(tuple((c, 1) for c in computed), pad, reqs),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.integers(0, 12),
    st.integers(0, 3),
)
BATCHES = (PLAIN | DECODES).filter(lambda plain: plain.padded >= 2)


@st.composite
def cut_batches(draw: st.DrawFn) -> tuple[Plain, list[int]]:
    """A batch and one to three split points."""
    plain = draw(BATCHES)
    count = min(draw(st.integers(1, 3)), plain.padded - 1)
    points = draw(st.sets(st.integers(1, plain.padded - 1), min_size=count, max_size=count))
    return plain, sorted(points)


@dataclass
class Buffers:
    """The persistent buffers of one ubatch."""

    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor

    @classmethod
    def make(cls) -> Buffers:
        # What an earlier step left must not show.
        return cls(torch.full((MAX_REQS + 1,), -9, dtype=torch.int32), torch.full((MAX_REQS,), -9, dtype=torch.int32))


def cut(batch: InputBatch, slices: Sequence[tuple[slice, slice]], buffers: Sequence[Buffers]) -> list[InputBatch]:
    return [
        _slice_input_batch(batch, UBatchSlice(*pair), buffer.query_start_loc, buffer.seq_lens)
        for pair, buffer in zip(slices, buffers, strict=True)
    ]


def check(plain: Plain, slices: Sequence[tuple[slice, slice]], ubatches: Sequence[InputBatch]) -> None:
    """Every token of every ubatch belongs to the request, and stands at the position, that the batch says."""
    covered: list[tuple[int, int]] = []
    for (requests, tokens), ubatch in zip(slices, ubatches, strict=True):
        width = tokens.stop - tokens.start
        expected = plain.tokens[tokens.start : tokens.stop]
        starts = ubatch.query_start_loc.tolist()
        real = min(requests.stop, len(plain.requests)) - requests.start

        assert ubatch.num_tokens_after_padding == width
        assert ubatch.num_tokens == len(expected)
        assert ubatch.num_reqs == real
        assert ubatch.num_reqs_after_padding == requests.stop - requests.start
        assert ubatch.req_ids == [f"request {requests.start + j}" for j in range(real)]

        # Offsets: from zero, never falling, and each request's tokens between its two.
        assert starts == ubatch.query_start_loc_np.tolist()
        assert len(starts) == ubatch.num_reqs_after_padding + 1
        assert starts[0] == 0
        assert starts[-1] == len(expected)
        assert starts == sorted(starts)
        attributed = [requests.start + j for j in range(len(starts) - 1) for _ in range(starts[j + 1] - starts[j])]
        assert attributed == [owner for owner, _ in expected]
        assert ubatch.num_scheduled_tokens.tolist() == np.diff(starts).tolist()[:real]
        covered += [(owner, int(ubatch.positions[k])) for k, owner in enumerate(attributed)]

        # The tokens themselves, and the padding behind them.
        assert ubatch.input_ids[: len(expected)].tolist() == [token_id(*token) for token in expected]
        assert ubatch.is_padding.tolist() == [False] * len(expected) + [True] * (width - len(expected))
        assert [len(x) for x in (ubatch.input_ids, ubatch.positions, ubatch.is_padding)] == [width] * 3

        # Lengths: what the request has once this ubatch is computed, never what a later one adds.
        lengths = [plain.visible(requests.start + j, tokens.stop) for j in range(real)]
        padding = [0] * (ubatch.num_reqs_after_padding - real)
        assert ubatch.seq_lens.tolist() == lengths + padding
        assert ubatch.seq_lens_cpu_upper_bound.tolist() == lengths + padding

        # What is known per request.
        rows = list(range(requests.start, requests.start + real))
        assert ubatch.idx_mapping.tolist() == [100 + row for row in rows]
        assert ubatch.idx_mapping_np.tolist() == [100 + row for row in rows]
        assert ubatch.num_computed_tokens_np.tolist() == [plain.requests[row][0] for row in rows]
        assert ubatch.num_computed_prefill_tokens_np.tolist() == [plain.requests[row][0] for row in rows]
        assert ubatch.prefill_len_np.tolist() == [sum(plain.requests[row]) for row in rows]
        assert ubatch.is_prefilling_np.tolist() == [plain.requests[row][1] > 1 for row in rows]
        assert ubatch.prompt_lens.tolist() == [7 + row for row in rows]
        assert ubatch.dcp_local_seq_lens is None
    assert covered == plain.tokens


# ---- 6 --------------------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(cut_batches())
@example((Plain(((0, 1),), pad_tokens=3), [2]))  # the second slice is padding alone
@example((Plain(((4, 1),), pad_tokens=3, pad_reqs=3), [2]))
@example((Plain(((0, 9),)), [4]))  # one request in both
@example((Plain(((3, 4), (0, 4))), [4]))  # cut between two requests
@example((Plain(((3, 9), (0, 1))), [2, 4, 6]))  # one request in all four
def test_any_cut(case: tuple[Plain, list[int]]) -> None:
    plain, splits = case
    slices = plain_slices(plain, splits)
    batch = make_batch(plain, make_buffers())
    before = copy.deepcopy(batch)
    check(plain, slices, cut(batch, slices, [Buffers.make() for _ in slices]))
    for field in dataclasses.fields(batch):  # the whole batch is still whole
        old, new = getattr(before, field.name), getattr(batch, field.name)
        same = np.array_equal(old, new) if isinstance(old, np.ndarray | torch.Tensor) else old == new
        assert same, field.name


@settings(max_examples=400)
@given(BATCHES, st.integers(2, 4))
@example(Plain(((0, 1),), pad_tokens=3), 2)
@example(Plain(((5, 1), (6, 1), (7, 1)), pad_tokens=5, pad_reqs=5), 2)
def test_slices_of_the_midpoint(plain: Plain, count: int) -> None:
    if plain.padded < count:
        return
    batch = make_batch(plain, make_buffers())
    made = [(s.request_slice, s.token_slice) for s in create_ubatch_slices(batch, count)]
    step = plain.padded // count
    assert [tokens for _, tokens in made] == [
        slice(step * i, plain.padded if i == count - 1 else step * (i + 1)) for i in range(count)
    ]
    for (requests, tokens), (expected, _) in zip(
        made, plain_slices(plain, [step * i for i in range(1, count)]), strict=True
    ):
        assert 0 <= requests.start < requests.stop <= plain.padded_reqs
        if plain.tokens[tokens.start : tokens.stop]:
            assert requests.start == expected.start
            # A slice that runs into the padding may hold one empty request behind the real ones.
            assert requests.stop - expected.stop in ({0, 1} if tokens.stop > len(plain.tokens) else {0})
        else:
            assert requests.start == len(plain.requests) - 1
    assert made[-1][0].stop == plain.padded_reqs
    ubatches = cut(batch, made, [Buffers.make() for _ in made])
    assert [t for u in ubatches for t in u.input_ids[: u.num_tokens].tolist()] == [token_id(*t) for t in plain.tokens]
    for ubatch in ubatches:
        assert ubatch.query_start_loc[0] == 0
        assert ubatch.query_start_loc[-1] == ubatch.num_tokens == int(ubatch.num_scheduled_tokens.sum())


def test_an_empty_slice_is_refused() -> None:
    batch = make_batch(Plain(((0, 4),)), make_buffers())
    buffers = Buffers.make()
    with pytest.raises(AssertionError, match="is empty"):
        _slice_input_batch(batch, UBatchSlice(slice(0, 1), slice(2, 2)), buffers.query_start_loc, buffers.seq_lens)


@settings(max_examples=60)
@given(cut_batches(), st.integers(2, 3), st.integers(1, 3))
def test_context_parallel_lengths(case: tuple[Plain, list[int]], size: int, interleave: int) -> None:
    """The target's helper has another name and returns nothing; the lengths are the donor's all the same."""
    plain, splits = case
    batch = make_batch(plain, make_buffers())
    for requests, tokens in plain_slices(plain, splits):
        for rank in range(size):
            buffers = Buffers.make()
            local = torch.full((MAX_REQS,), -9, dtype=torch.int32)
            ubatch = _slice_input_batch(
                batch, UBatchSlice(requests, tokens), buffers.query_start_loc, buffers.seq_lens, local,
                dcp_size=size, dcp_rank=rank, cp_interleave=interleave,
            )  # fmt: skip
            owned = [sum(1 for p in range(n) if p // interleave % size == rank) for n in ubatch.seq_lens.tolist()]
            assert ubatch.dcp_local_seq_lens is not None
            assert ubatch.dcp_local_seq_lens.tolist() == owned
            assert ubatch.dcp_local_seq_lens.data_ptr() == local.data_ptr()


# ---- Ascend's fields ------------------------------------------------------------------------------------------


@dataclass
class HostLengths(InputBatch):
    """The fields that vLLM-Ascend's batch adds."""

    seq_lens_np: np.ndarray
    attn_state: Any = None


def state_of(seq_lens: np.ndarray, reqs: int, scheduled: np.ndarray, valid: np.ndarray) -> str:
    assert valid.tolist() == scheduled.tolist()
    if np.array_equal(seq_lens[:reqs], scheduled):
        return "fresh prefill"
    return "decode" if np.all(scheduled == 1) else "chunked prefill"


@settings(max_examples=200)
@given(cut_batches())
def test_host_lengths_equal_device_lengths(case: tuple[Plain, list[int]]) -> None:
    plain, splits = case
    whole = np.full(MAX_REQS, -9, dtype=np.int32)  # Ascend passes its whole buffer
    whole[: plain.padded_reqs] = 0
    whole[: len(plain.requests)] = [sum(r) for r in plain.requests]
    kept = whole.copy()
    batch = make_batch(plain, make_buffers(), HostLengths, seq_lens_np=whole, attn_state="chosen")
    slices = plain_slices(plain, splits)
    ubatches = cut(batch, slices, [Buffers.make() for _ in slices])
    for pair, ubatch in zip(slices, ubatches, strict=True):
        done = slice_ascend_fields(batch, ubatch, UBatchSlice(*pair), state_of)
        assert type(done) is HostLengths
        assert done.seq_lens_np.tolist() == ubatch.seq_lens.tolist()
        assert done.attn_state == state_of(ubatch.seq_lens.numpy(), ubatch.num_reqs, *[ubatch.num_scheduled_tokens] * 2)
        assert slice_ascend_fields(batch, ubatch, UBatchSlice(*pair)).attn_state == "chosen"
    assert whole.tolist() == kept.tolist()


def test_the_second_part_of_a_fresh_prefill_reads_the_cache() -> None:
    plain = Plain(((0, 8),))
    batch = make_batch(plain, make_buffers(), HostLengths, seq_lens_np=np.array([8]), attn_state="fresh prefill")
    slices = plain_slices(plain, [3])
    ubatches = cut(batch, slices, [Buffers.make(), Buffers.make()])
    done = [slice_ascend_fields(batch, u, UBatchSlice(*p), state_of) for p, u in zip(slices, ubatches, strict=True)]
    assert [d.seq_lens_np.tolist() for d in done] == [[3], [8]]
    assert [d.attn_state for d in done] == ["fresh prefill", "chunked prefill"]


# ---- 7 --------------------------------------------------------------------------------------------------------


def is_view(part: torch.Tensor, whole: torch.Tensor, offset: int) -> bool:
    return part.data_ptr() == whole.data_ptr() + offset * whole.element_size()


@given(cut_batches())
def test_inputs_per_token_are_views(case: tuple[Plain, list[int]]) -> None:
    plain, splits = case
    buffers = make_buffers()
    batch = make_batch(plain, buffers)
    slices = plain_slices(plain, splits)
    for (_, tokens), ubatch in zip(slices, cut(batch, slices, [Buffers.make() for _ in slices]), strict=True):
        assert is_view(ubatch.input_ids, buffers.input_ids, tokens.start)
        assert is_view(ubatch.positions, buffers.positions, tokens.start)
        assert is_view(ubatch.is_padding, buffers.is_padding, tokens.start)


@given(st.lists(cut_batches(), min_size=2, max_size=4))
def test_buffers_keep_their_addresses_between_steps(cases: list[tuple[Plain, list[int]]]) -> None:
    inputs = make_buffers()
    persistent = [Buffers.make() for _ in range(4)]
    addresses = [(b.query_start_loc.data_ptr(), b.seq_lens.data_ptr()) for b in persistent]
    for plain, splits in cases:
        slices = plain_slices(plain, splits)
        ubatches = cut(make_batch(plain, inputs), slices, persistent[: len(slices)])
        check(plain, slices, ubatches)  # nothing of the step before shows
        assert [(u.query_start_loc.data_ptr(), u.seq_lens.data_ptr()) for u in ubatches] == addresses[: len(slices)]


def test_model_inputs_are_views_and_the_rest_is_left_alone() -> None:
    ids, embeds = torch.arange(10), torch.randn(10, 4)
    hidden = IntermediateTensors({"hidden_states": torch.randn(10, 3), "residual": torch.randn(10, 3)})
    extra = object()
    given_inputs = {
        "input_ids": ids, "inputs_embeds": embeds, "positions": torch.arange(10),
        "intermediate_tensors": hidden, "extra": extra,
    }  # fmt: skip
    got = slice_model_inputs(given_inputs, slice(4, 7))
    assert got.keys() == given_inputs.keys()
    assert got["input_ids"].tolist() == [4, 5, 6]
    assert is_view(got["input_ids"], ids, 4)
    assert got["positions"].tolist() == [4, 5, 6]
    assert is_view(got["positions"], given_inputs["positions"], 4)
    assert torch.equal(got["inputs_embeds"], embeds[4:7])
    assert is_view(got["inputs_embeds"], embeds, 4 * 4)
    for key, value in hidden.tensors.items():
        assert is_view(got["intermediate_tensors"].tensors[key], value, 4 * 3)
        assert got["intermediate_tensors"].tensors[key].shape == (3, 3)
    assert got["extra"] is extra
    assert given_inputs["input_ids"] is ids


def test_model_inputs_that_are_absent_stay_absent() -> None:
    positions = torch.arange(30).reshape(3, 10)  # sections of a multimodal rotary embedding
    got = slice_model_inputs(
        {"input_ids": None, "inputs_embeds": None, "positions": positions, "intermediate_tensors": None}, slice(8, 10)
    )
    assert (got["input_ids"], got["inputs_embeds"], got["intermediate_tensors"]) == (None, None, None)
    assert got["positions"].tolist() == [[8, 9], [18, 19], [28, 29]]
    assert is_view(got["positions"], positions, 8)


# ---- 8 --------------------------------------------------------------------------------------------------------


def split(value: Any, edges: Sequence[int]) -> list[Any]:
    """The parts of a model output, by plain indexing."""
    return [narrowed(value, slice(start, stop)) for start, stop in itertools.pairwise(edges)]


def narrowed(value: Any, part: slice) -> Any:
    if isinstance(value, IntermediateTensors):
        return IntermediateTensors({key: tensor[part] for key, tensor in value.tensors.items()})
    if isinstance(value, tuple | list):
        return type(value)(narrowed(item, part) for item in value)
    return value[part]


def assert_same(got: Any, expected: Any) -> None:
    assert type(got) is type(expected)
    if isinstance(expected, IntermediateTensors):
        assert got.tensors.keys() == expected.tensors.keys()
        for key, value in expected.tensors.items():
            assert_same(got.tensors[key], value)
    elif isinstance(expected, tuple | list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other)
    else:
        assert got.dtype == expected.dtype
        assert torch.equal(got, expected)


@st.composite
def outputs(draw: st.DrawFn) -> tuple[Any, list[int]]:
    tokens = draw(st.integers(2, 20))
    edges = [0, *sorted(draw(st.sets(st.integers(1, tokens - 1), min_size=1, max_size=3))), tokens]
    counter = iter(range(100))

    def tensor() -> torch.Tensor:
        width, dtype = draw(st.integers(1, 4)), draw(st.sampled_from([torch.float32, torch.bfloat16, torch.int64]))
        return (torch.arange(tokens * width).reshape(tokens, width) + 1000 * next(counter)).to(dtype)

    def tensors() -> list[torch.Tensor]:
        return [tensor() for _ in range(draw(st.integers(0, 3)))]

    kind = draw(st.sampled_from(["tensor", "tuple", "with a list", "with a tuple", "intermediate"]))
    if kind == "tensor":
        return tensor(), edges
    if kind == "tuple":
        return (tensor(), tensor(), tensor()), edges
    if kind == "with a list":
        return (tensor(), tensors()), edges
    if kind == "with a tuple":
        return (tensor(), tuple(tensors())), edges
    return IntermediateTensors({f"key {i}": value for i, value in enumerate([tensor(), *tensors()])}), edges


@settings(max_examples=200)
@given(outputs())
def test_merging_undoes_splitting(case: tuple[Any, list[int]]) -> None:
    value, edges = case
    assert_same(merge_ubatch_outputs(split(value, edges)), value)


def test_hidden_states_with_a_list_of_auxiliaries() -> None:
    hidden, first, second = torch.arange(8.0).reshape(4, 2), torch.arange(4.0), torch.arange(4.0) + 10
    merged = merge_ubatch_outputs([(hidden[:3], [first[:3], second[:3]]), (hidden[3:], [first[3:], second[3:]])])
    assert isinstance(merged, tuple)
    assert isinstance(merged[1], list)
    assert merged[0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [aux.tolist() for aux in merged[1]] == [[0, 1, 2, 3], [10, 11, 12, 13]]


def test_ubatches_with_different_numbers_of_auxiliaries_are_an_error() -> None:
    one = torch.zeros(1)
    with pytest.raises(ValueError, match="zip"):
        merge_ubatch_outputs([(one, [one]), (one, [one, one])])
