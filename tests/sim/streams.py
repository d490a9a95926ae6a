"""Streams and events: which stream work is issued to, and what a device would do before what.

Work runs at once, in program order. Each stream has a vector clock: how much was issued to it, and how much of every other
stream is known to be done before its next piece. Events carry that knowledge from stream to stream. The tape finds unjoined
forks in these clocks, the race checker finds work that nothing orders.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from tests.sim.tape import Tape

Clock = dict[int, int]
"""Per stream, by its id: how many pieces of its work are done."""


class SimulationError(RuntimeError):
    """What a device refuses to do, or would wait for until the end of time."""


class CaptureError(SimulationError):
    """A rule of graph capture is broken."""


on_switch: list[Callable[[], None]] = []
"""Called in a thread after its current stream changed."""

on_synchronize: list[Callable[[], None]] = []
"""Called when the host waits for the device."""

_ids = itertools.count(1)
_lock = threading.RLock()
_streams: weakref.WeakSet[Stream] = weakref.WeakSet()
_host: Clock = {}


def learn(clock: Clock, news: Clock) -> None:
    """Add to `clock` what `news` knows."""
    for stream, count in news.items():
        if clock.get(stream, 0) < count:
            clock[stream] = count


def synchronize(news: Clock | None = None) -> None:
    """The host waits for the work in `news`, or for all work; what it issues afterwards comes later."""
    for check in on_synchronize:
        check()
    with _lock:
        for clock in [news] if news is not None else [stream.clock for stream in _streams]:
            learn(_host, clock)


class Stream:
    """A queue of work; stands in for `torch.cuda.Stream`, `torch.Stream` and `torch.npu.Stream`.

    Attributes:
        clock: per stream, how much of its work is done before the next piece of this one.
        tape: the capture that this stream takes part in.
    """

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device = torch.device("cpu")
        self.device_index = self.device_type = 0
        self.priority = priority
        self.stream_id = self.cuda_stream = self.npu_stream = next(_ids)
        self.clock: Clock = {}
        self.tape: Tape | None = None
        self._outer: list[Stream] = []
        _streams.add(self)

    def issue(self) -> int:
        """Count one more piece of work; its number."""
        with _lock:
            learn(self.clock, _host)
            count = self.clock[self.stream_id] = self.clock.get(self.stream_id, 0) + 1
        return count

    def wait_event(self, event: Event) -> None:
        """What is issued from now on comes after what the event covers.

        Raises:
            CaptureError: the event and this stream are not in the same capture.
        """
        tape = event.tape
        if tape is not None and tape.active:
            tape.enlist(self)
        elif event.captured:
            raise CaptureError("a stream waits for an event that was recorded in a capture which has ended")
        elif self.tape is not None and event.recorded:
            raise CaptureError("a stream under capture waits for an event recorded outside of it")
        self.after(event.clock)

    def after(self, clock: Clock) -> None:
        """What is issued from now on comes after the work in `clock`."""
        with _lock:
            learn(self.clock, clock)

    def wait_stream(self, other: Stream) -> None:
        """What is issued from now on comes after all work of `other` so far."""
        self.wait_event(other.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Let the event (a new one by default) cover all work so far."""
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        """The host waits for all work so far.

        Raises:
            CaptureError: the stream is under capture.
        """
        if self.tape is not None:
            raise CaptureError("stream.synchronize() while capturing")
        synchronize(self.clock)

    def query(self) -> bool:
        """Whether all work is done: it is."""
        return True

    def __enter__(self) -> Stream:
        self._outer.append(current_stream())
        switch(self)
        return self

    def __exit__(self, *exc: object) -> None:
        switch(self._outer.pop())

    def __repr__(self) -> str:
        return f"<stream {self.stream_id}>"


class Event:
    """Covers the work of one stream up to a point; stands in for `torch.cuda.Event` and its like.

    Attributes:
        recorded: whether it covers anything.
        captured: whether it was recorded in a capture.
        clock: what it covers.
    """

    def __init__(self, device: Any = None, enable_timing: bool = False, blocking: bool = False, **options: Any) -> None:
        self.recorded = self.captured = False
        self.clock: Clock = {}
        self._tape: weakref.ref[Tape] | None = None

    @property
    def tape(self) -> Tape | None:
        """The capture that it was recorded in, while somebody keeps that: an event does not."""
        return self._tape() if self._tape is not None else None

    def record(self, stream: Stream | None = None) -> None:
        """Cover all work of `stream` so far."""
        stream = stream or current_stream()
        self.recorded, self.captured = True, stream.tape is not None
        self._tape = weakref.ref(stream.tape) if stream.tape is not None else None
        with _lock:
            self.clock = dict(stream.clock)

    def wait(self, stream: Stream | None = None) -> None:
        """As `Stream.wait_event`."""
        (stream or current_stream()).wait_event(self)

    def synchronize(self) -> None:
        """The host waits for the work covered.

        Raises:
            CaptureError: that work is only being captured.
        """
        tape = self.tape
        if tape is not None and tape.active:
            raise CaptureError("event.synchronize() while capturing")
        synchronize(self.clock)

    def query(self) -> bool:
        """Whether the work covered is done: it is."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds until `end`; the simulation says nothing about time."""
        return 0.0


class _Thread(threading.local):
    stream: Stream | None = None


_thread = _Thread()
_default = Stream()


def default_stream(device: Any = None) -> Stream:
    """The stream on which every thread begins."""
    return _default


def current_stream(device: Any = None) -> Stream:
    """The stream to which this thread issues its work."""
    return _thread.stream or _default


def set_stream(stream: Stream | None) -> None:
    """Issue the work of this thread to `stream`; None changes nothing, as in torch."""
    if stream is None:
        return
    _thread.stream = stream
    for call in on_switch:
        call()


setter: list[Callable[[Stream], None]] = [set_stream]
"""How the current stream is changed: vLLM wraps `torch.cuda.set_stream`, so that it knows, and the wrapper has to be used."""


def switch(stream: Stream) -> None:
    """`set_stream`, with whatever others put around it."""
    setter[0](stream)


class StreamContext:
    """Issues the work of a `with` block to another stream; stands in for `torch.cuda.stream`."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._outer: list[Stream] = []

    def __enter__(self) -> StreamContext:
        self._outer.append(current_stream())
        if self.stream is not None:
            switch(self.stream)
        return self

    def __exit__(self, *exc: object) -> None:
        switch(self._outer.pop())
