"""How the stages of a split step take turns, and how they stop."""

import threading
from collections.abc import Callable

import torch
from vllm.utils import torch_utils
from vllm.v1.worker import ubatching


class StageCancelled(BaseException):
    """Ends a stage whose step has failed elsewhere. No `Exception`: code of a model may not take it for its own."""


class StageRun:
    """What the stages of one run share: whether it goes on, and who still takes part.

    Attributes:
        cancelled: whether the stages are to stop.
        failure: what the stage raised that failed first.
    """

    def __init__(self, num_stages: int) -> None:
        self.cancelled = False
        self.failure: BaseException | None = None
        self._running = set(range(num_stages))
        self._wake: list[Callable[[], None]] = []

    def watch(self, ready_barrier: threading.Barrier, turns: list[threading.Event]) -> None:
        """Name all that a stage may wait for."""
        self._wake = [ready_barrier.abort, *(turn.set for turn in turns)]

    def cancel(self, failure: BaseException | None = None) -> None:
        """Wake all stages; each of them stops where it waits, or at its next handoff.

        Args:
            failure: what a stage raised; None when the run is cancelled from outside.
        """
        if not self.cancelled:
            self.failure, self.cancelled = failure, True
        for wake in self._wake:
            wake()

    def check(self) -> None:
        """Go on, or stop.

        Raises:
            StageCancelled: the run is cancelled.
        """
        if self.cancelled:
            raise StageCancelled

    def raise_failure(self) -> None:
        """Raise what the first stage that failed has raised, if one has, and keep no reference to it."""
        failure, self.failure = self.failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # its traceback holds this frame

    def end(self, stage: int) -> None:
        """A stage takes no more turns."""
        self._running.discard(stage)

    @property
    def alone(self) -> bool:
        """Whether there is no other stage left to hand over to."""
        return len(self._running) < 2


def hand_over(hidden_states: torch.Tensor | None = None) -> None:
    """Let the sibling stage run, and go on when it hands back; in a single batch, go on at once.

    The model proxy calls it in each layer, between sending to the FFN side and receiving from it.

    Args:
        hidden_states: what has been sent and is received into, or anything made of the one and used for the other. With it this
            can be compiled (`fullgraph=True`): an operator that says that it changes them, so what comes before it stays
            before, and what comes after stays after.

    Raises:
        StageCancelled: the sibling has failed.
    """
    if hidden_states is None:
        ubatching.dbo_yield()
    else:
        torch.ops.vllm.afd_hand_over(hidden_states)


def _hand_over(hidden_states: torch.Tensor) -> None:
    ubatching.dbo_yield()


def _hand_over_fake(hidden_states: torch.Tensor) -> None:
    return


torch_utils.direct_register_custom_op("afd_hand_over", _hand_over, ["hidden_states"], _hand_over_fake)


def current_stage() -> int | None:
    """Number of the stage that this thread runs; None outside of a split step."""
    return ubatching._THREAD_ID_TO_CONTEXT.get(threading.get_ident())
