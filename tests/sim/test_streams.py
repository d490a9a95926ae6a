"""Streams and events: what they order, and what they refuse under capture."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="runs in the environment that tools/vllm_env makes")

from tests.sim import streams
from tests.sim.streams import CaptureError, Event, Stream, StreamContext, current_stream, default_stream
from tests.sim.tape import Tape

pytestmark = pytest.mark.vllm


def knows(stream: Stream, other: Stream) -> int:
    """How much work of `other` comes before the next work of `stream`."""
    return stream.clock.get(other.stream_id, 0)


def test_each_thread_has_its_own_current_stream():
    mine, seen = Stream(), []
    with StreamContext(mine):
        thread = threading.Thread(target=lambda: seen.append(current_stream()))
        thread.start()
        thread.join()
        assert current_stream() is mine
    assert seen == [default_stream()]
    assert current_stream() is default_stream()


def test_contexts_nest_and_restore_when_they_fail():
    outer, inner = Stream(), Stream()
    with outer, pytest.raises(ZeroDivisionError), StreamContext(inner):
        _ = 1 / (current_stream() is not inner)
    with StreamContext(outer):
        with StreamContext(None):
            assert current_stream() is outer
        with inner:
            assert current_stream() is inner
        assert current_stream() is outer
    assert current_stream() is default_stream()


def test_an_event_covers_what_was_issued_before_it():
    first, second, third = Stream(), Stream(), Stream()
    first.issue()
    event = first.record_event()
    first.issue()
    second.wait_event(event)
    assert knows(second, first) == 1
    second.issue()
    third.wait_stream(second)
    assert (knows(third, first), knows(third, second)) == (1, 1)
    assert knows(first, second) == 0


WAITS: dict[str, Callable[[Stream], object]] = {
    "stream": Stream.synchronize,
    "event": lambda stream: stream.record_event().synchronize(),
    "device": lambda stream: streams.synchronize(),
}


@pytest.mark.parametrize("wait", WAITS)
def test_what_the_host_issues_after_waiting_comes_later(wait):
    first, second = Stream(), Stream()
    first.issue()
    second.issue()
    assert knows(second, first) == 0
    WAITS[wait](first)
    second.issue()
    assert knows(second, first) == 1


def outside(tape: Tape, stream: Stream) -> None:
    """The captured stream waits for an event recorded outside."""
    tape.origin.wait_event(Stream().record_event())


def another(tape: Tape, stream: Stream) -> None:
    """Two captures meet."""
    tape.origin.wait_event(Tape(Stream()).origin.record_event())


def ended(tape: Tape, stream: Stream) -> None:
    """An event outlives its capture."""
    event = tape.origin.record_event()
    tape.abandon()
    stream.wait_event(event)


def host_waits_for_stream(tape: Tape, stream: Stream) -> None:
    """Captured work has not been done."""
    tape.origin.synchronize()


def host_waits_for_event(tape: Tape, stream: Stream) -> None:
    """Captured work has not been done."""
    tape.origin.record_event().synchronize()


@pytest.mark.parametrize("breach", [outside, another, ended, host_waits_for_stream, host_waits_for_event])
def test_a_capture_is_isolated(breach):
    tape = Tape(Stream())
    with pytest.raises(CaptureError):
        breach(tape, Stream())


def test_an_event_that_was_never_recorded_orders_nothing():
    tape = Tape(Stream())
    tape.origin.wait_event(Event())
    assert tape.streams == {tape.origin}


def test_a_stream_joins_the_capture_that_it_waits_for():
    tape, side = Tape(Stream()), Stream()
    side.wait_event(tape.origin.record_event())
    assert side.tape is tape
    tape.abandon()
    assert side.tape is None


def test_an_event_keeps_no_capture_alive():
    tape = Tape(Stream())
    event = tape.origin.record_event()
    assert event.tape is tape
    tape.abandon()
    del tape
    assert event.tape is None
