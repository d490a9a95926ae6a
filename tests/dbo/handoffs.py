"""Stages without a model, in a process of `tests.sim.ranks`: threads that take turns by the generated contexts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from afd_backports.vllm_v026_mrv2_dbo import ubatching as generated
from vllm import forward_context as contexts
from vllm.utils.torch_utils import current_stream
from vllm.v1.worker import ubatching as native

Body = Callable[["Stages", int], None]


class OwnError(Exception):
    """What a stage raises."""


class Context:
    """In the place of a forward context; it must never be compared, only recognised."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise AssertionError("two contexts were compared")


class Stages:
    """Two threads in ubatch contexts.

    Attributes:
        log: what the stages noted, in order.
        errors: by stage.
        run: what they share.
        contexts: theirs.
    """

    def __init__(self, body: Body) -> None:
        self.log: list[Any] = []
        self.errors: dict[int, BaseException] = {}
        self.forward = [Context(), Context()]
        self.barrier = threading.Barrier(3)
        self.run = generated.StageRun(2)
        self.compute, self.comm = torch.cuda.Stream(), torch.cuda.Stream()
        self.contexts = generated.make_ubatch_contexts(
            2, self.compute, self.comm, self.forward, self.barrier, self.run
        )  # fmt: skip
        self.threads = [threading.Thread(target=self._main, args=(body, i)) for i in range(2)]

    def _main(self, body: Body, stage: int) -> None:
        try:
            with self.contexts[stage]:
                body(self, stage)
        except BaseException as error:
            self.errors[stage] = error

    def start(self) -> Stages:
        """Both stages wait for their first turn."""
        for thread in self.threads:
            thread.start()
        self.barrier.wait()
        return self

    def finish(self) -> Stages:
        """Let them run to their end."""
        self.contexts[0].cpu_wait_event.set()
        self.join()
        return self

    def join(self) -> None:
        """They have ended, and left nothing behind."""
        for thread in self.threads:
            thread.join()
        contexts._forward_context = None
        assert native._THREAD_ID_TO_CONTEXT == {}
        assert set(native._CURRENT_CONTEXTS) == {None}

    def kinds(self) -> dict[int, str]:
        """The errors' types."""
        return {stage: type(error).__name__ for stage, error in sorted(self.errors.items())}


def take_turns(rank: Any) -> list[Any]:
    def body(stages: Stages, stage: int) -> None:
        for turn in range(3):
            assert contexts._forward_context is stages.forward[stage]
            stages.log.append((stage, turn, native.dbo_current_ubatch_id(), generated.current_stage()))
            generated.hand_over()

    stages = Stages(body).start().finish()
    assert not stages.errors
    assert generated.current_stage() is None
    generated.hand_over()  # a single batch goes on at once
    return stages.log


def upstream_functions(rank: Any) -> list[Any]:
    """vLLM's own functions, captured from its class at import, work on these contexts."""

    def body(stages: Stages, stage: int) -> None:
        def note() -> None:
            stream = current_stream()
            assert stream is torch.cuda.current_stream()
            stages.log.append(
                (stage, "compute" if stream is stages.compute else "comm" if stream is stages.comm else "?")
            )

        note()
        native.dbo_yield_and_switch_from_compute_to_comm()
        note()
        native.dbo_switch_to_compute_sync()
        note()
        native.dbo_yield()
        note()
        native.dbo_switch_to_comm()
        native.dbo_yield_and_switch_from_comm_to_compute()
        note()

    stages = Stages(body).start().finish()
    assert not stages.errors, stages.errors
    return stages.log


def replaced_set_stream(rank: Any) -> list[Any]:
    """As vLLM-Ascend does it: torch.cuda.set_stream is a function of the device, which vLLM does not hear of."""
    from tests.sim import streams

    torch.cuda.set_stream = streams.set_stream
    return upstream_functions(rank)


def fail(rank: Any, who: int, turn: int, turns: int) -> tuple[dict[int, str], list[Any]]:
    """One stage fails in one of its turns."""

    def body(stages: Stages, stage: int) -> None:
        for now in range(turns):
            stages.log.append((stage, now))
            if (stage, now) == (who, turn):
                raise OwnError
            generated.hand_over()

    stages = Stages(body).start().finish()
    return stages.kinds(), stages.log


def fail_everywhere(rank: Any, turns: int) -> dict[tuple[int, int], tuple[dict[int, str], list[Any]]]:
    return {(who, turn): fail(rank, who, turn, turns) for who in range(2) for turn in range(turns)}


def swallow(rank: Any) -> tuple[dict[int, str], list[Any]]:
    """A stage that catches every `Exception` stops all the same."""

    def body(stages: Stages, stage: int) -> None:
        if stage == 1:
            raise OwnError
        while True:
            try:
                generated.hand_over()
            except Exception:
                stages.log.append("swallowed")

    stages = Stages(body).start().finish()
    return stages.kinds(), stages.log


def uneven(rank: Any, first: int, second: int) -> list[Any]:
    """One stage hands over more often than the other."""

    def body(stages: Stages, stage: int) -> None:
        for turn in range((first, second)[stage]):
            generated.hand_over()
            stages.log.append((stage, turn))

    stages = Stages(body).start().finish()
    assert not stages.errors
    return stages.log


def receive(rank: Any, fails: str) -> tuple[dict[int, str], list[Any]]:
    """Each stage registers a receive of the other one, which is done at the latest when that one ends."""

    def body(stages: Stages, stage: int) -> None:
        def hook() -> None:
            stages.log.append(f"receive of {1 - stage}")
            if fails == "hook":
                raise OwnError

        native.dbo_register_recv_hook(hook)
        generated.hand_over()
        if fails == "stage" and stage == 0:
            raise OwnError
        generated.hand_over()

    stages = Stages(body).start().finish()
    return stages.kinds(), stages.log


def cancel_parked(rank: Any) -> tuple[dict[int, str], list[Any]]:
    """Cancelled from outside before the first turn: nothing is run."""
    stages = Stages(lambda stages, stage: stages.log.append(stage)).start()
    stages.run.cancel()
    stages.join()
    return stages.kinds(), stages.log


def cancel_running(rank: Any) -> tuple[dict[int, str], list[Any]]:
    """Cancelled from outside while one stage runs: it stops at its next handoff."""
    running, cancelled = threading.Event(), threading.Event()

    def body(stages: Stages, stage: int) -> None:
        stages.log.append(stage)
        running.set()
        cancelled.wait()
        generated.hand_over()
        stages.log.append("went on")

    stages = Stages(body).start()
    stages.contexts[0].cpu_wait_event.set()
    running.wait()
    stages.run.cancel()
    cancelled.set()
    stages.join()
    return stages.kinds(), stages.log


def broken_barrier(rank: Any) -> dict[int, str]:
    """One stage does not come to the start."""
    stages = Stages(lambda stages, stage: stages.log.append(stage))
    stages.threads[0].start()
    stages.run.cancel()
    stages.threads[0].join()
    assert native._THREAD_ID_TO_CONTEXT == {}
    assert not stages.log
    return stages.kinds()
