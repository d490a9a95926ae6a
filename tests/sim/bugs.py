"""Bugs to be injected into vLLM's native dual batch overlap: the tests of the tests.

Each is a context manager that is entered on every rank before a scenario is played; `rank` is its number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

Bug = Callable[[int], AbstractContextManager[None]]


@contextlib.contextmanager
def replaced(holder: Any, name: str, value: Any) -> Iterator[None]:
    """Another attribute in the block."""
    before = vars(holder)[name]
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)


def untruncated_lengths(rank: int) -> AbstractContextManager[None]:
    """The first ubatch gets the full length of a request that goes on in the second."""
    from vllm.v1.worker.gpu import ubatch_utils

    def sliced(seq_lens: Any, out: Any, query_start_loc: Any, start: int, stop: int, tokens: int) -> Any:
        return out.copy_(seq_lens[start:stop])

    return replaced(ubatch_utils, "_slice_seq_lens", sliced)


def shared_buffer(rank: int) -> AbstractContextManager[None]:
    """Both ubatches write their lengths into one buffer."""
    return _changed_runner(lambda runner: runner.ubatch_seq_lens.__setitem__(1, runner.ubatch_seq_lens[0]))


def moving_buffer(rank: int) -> AbstractContextManager[None]:
    """The lengths of the ubatches lie elsewhere in every step: a graph reads those of its capture."""
    from vllm.v1.worker.gpu.ubatch_utils import UBatchRunner

    prepare = UBatchRunner.prepare

    def prepared(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.ubatch_seq_lens[:] = [buffer.clone() for buffer in self.ubatch_seq_lens]
        return prepare(self, *args, **kwargs)

    return replaced(UBatchRunner, "prepare", prepared)


def wrong_order(rank: int) -> AbstractContextManager[None]:
    """The outputs of the ubatches are put together the wrong way round."""
    from vllm.v1.worker.gpu import ubatch_utils

    merge = ubatch_utils.merge_ubatch_outputs
    return replaced(ubatch_utils, "merge_ubatch_outputs", lambda outputs: merge(outputs[::-1]))


def missing_join(rank: int) -> AbstractContextManager[None]:
    """The computation does not wait for the communication."""
    return _changed_context("_wait_comm_done")


def missing_compute_wait(rank: int) -> AbstractContextManager[None]:
    """The communication does not wait for the computation."""
    return _changed_context("_wait_compute_done")


def disagreeing_vote(rank: int) -> AbstractContextManager[None]:
    """One rank decides otherwise than the others, after all have voted."""
    from vllm.v1.worker.gpu import dp_utils

    if rank == 0:
        return contextlib.nullcontext()
    return replaced(dp_utils, "check_ubatch_thresholds", lambda *args, **kwargs: False)


def lonely_vote(rank: int) -> AbstractContextManager[None]:
    """One rank votes against ubatches in every step: nothing is wrong, and nothing overlaps."""
    from vllm.v1.worker.gpu import dp_utils

    sync = dp_utils.sync_cudagraph_and_dp_padding

    def synced(*args: Any, **kwargs: Any) -> Any:
        return sync(*args, **{**kwargs, "allow_ubatching": False})

    return contextlib.nullcontext() if rank == 0 else replaced(dp_utils, "sync_cudagraph_and_dp_padding", synced)


def no_handoff(rank: int) -> AbstractContextManager[None]:
    """The ubatches run one after the other."""
    return _changed_context("_cpu_yield")


def unsliced_slots(rank: int) -> AbstractContextManager[None]:
    """The second ubatch writes its keys and values where the first one's belong."""
    from vllm.v1.worker.gpu.model_states.default import DefaultModelState

    prepare = DefaultModelState.prepare_attn
    first: list[Any] = []

    def prepared(
        self: Any, batch: Any, mode: Any, tables: Any, slots: Any, *args: Any, ubatch_idx: int = 0, **kwargs: Any
    ) -> Any:
        if ubatch_idx == 0:
            first[:] = [slots]
        else:
            both = min(slots.shape[-1], first[0].shape[-1])
            slots = slots.clone()
            slots[:, :both] = first[0][:, :both]
        return prepare(self, batch, mode, tables, slots, *args, ubatch_idx=ubatch_idx, **kwargs)  # type: ignore[call-arg]

    return replaced(DefaultModelState, "prepare_attn", prepared)


def _changed_context(name: str) -> AbstractContextManager[None]:
    from vllm.v1.worker.ubatching import UBatchContext

    return replaced(UBatchContext, name, lambda self: None)


def _changed_runner(change: Callable[[Any], object]) -> AbstractContextManager[None]:
    from vllm.v1.worker.gpu.ubatch_utils import UBatchRunner

    make = UBatchRunner.__init__

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        change(self)

    return replaced(UBatchRunner, "__init__", made)
