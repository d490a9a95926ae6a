"""Finds races: two streams touch the same memory, one of them writes, and no event orders them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tests.sim.streams import Stream, current_stream

on_change: list[Callable[[], None]] = []
"""Called in a thread when the checker may have come or gone."""


@dataclass(frozen=True)
class Race:
    """Two pieces of work that a device may do in either order."""

    first: str
    second: str
    first_stream: int
    second_stream: int

    def __str__(self) -> str:
        return f"{self.first} on stream {self.first_stream} / {self.second} on stream {self.second_stream}"


@dataclass(frozen=True)
class _Access:
    stream: int
    number: int
    start: int
    stop: int
    writes: bool
    name: str
    capture: int
    """Number of the capture it belongs to; 0 outside. What is captured has not happened: it meets its own capture only."""

    def meets(self, other: _Access) -> bool:
        return self.start < other.stop and other.start < self.stop

    def covers(self, other: _Access) -> bool:
        return self.start <= other.start and other.stop <= self.stop and self.writes >= other.writes


class Checker:
    """Remembers who touched which bytes last.

    Attributes:
        found: the races so far.
    """

    def __init__(self) -> None:
        self.found: list[Race] = []
        self._lock = threading.Lock()
        self._memory: dict[int, tuple[StorageWeakRef, list[_Access]]] = {}

    def ran(self, name: str, read: Sequence[torch.Tensor], written: Sequence[torch.Tensor]) -> None:
        """Work was issued to the current stream."""
        stream = current_stream()
        with self._lock:
            number = stream.issue()
            for group, writes in ((read, False), (written, True)):
                for tensor in group:
                    if tensor.numel() and tensor.device.type == "cpu":
                        self._touch(tensor, stream, number, writes, name)

    def _touch(self, tensor: torch.Tensor, stream: Stream, number: int, writes: bool, name: str) -> None:
        storage = tensor.untyped_storage()
        owner, before = self._memory.get(storage.data_ptr(), (None, []))
        if owner is None or owner.expired():  # fresh memory, whoever had it before
            owner, before = StorageWeakRef(storage), []
        start = int(tensor.storage_offset()) * tensor.itemsize
        span: int = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
        capture = stream.tape.number if stream.tape is not None else 0
        access = _Access(stream.stream_id, number, start, start + (span + 1) * tensor.itemsize, writes, name, capture)
        kept = []
        for other in before:
            if other.capture != capture:
                if not other.capture:
                    kept.append(other)
                continue
            ordered = stream.clock.get(other.stream, 0) >= other.number
            if not ordered and (writes or other.writes) and access.meets(other):
                self.found.append(Race(other.name, name, other.stream, stream.stream_id))
            if not (ordered and access.covers(other)):
                kept.append(other)
        self._memory[storage.data_ptr()] = (owner, [*kept, access])


_active: list[Checker] = []


def active() -> Checker | None:
    """The checker at work."""
    return _active[0] if _active else None


@contextlib.contextmanager
def checked() -> Iterator[list[Race]]:
    """Look for races in the block, in this thread and in those started in it; the list of those found."""
    if _active:
        raise RuntimeError("races are looked for already")
    run = threading.Thread.run

    def watched(self: threading.Thread) -> None:
        _changed()
        run(self)

    checker = Checker()
    _active.append(checker)
    threading.Thread.run = watched  # type: ignore[method-assign]
    _changed()
    try:
        yield checker.found
    finally:
        threading.Thread.run = run  # type: ignore[method-assign]
        _active.clear()
        _changed()


def _changed() -> None:
    for call in on_change:
        call()
