"""What graphs have on an NPU only: task groups whose parameters are updated from outside, and external events.

A replayed graph stops at an external event until somebody records it; meanwhile the parameters of the task group behind
it are updated. An update replaces what the group does, it runs nothing.
"""

from __future__ import annotations

import threading
from typing import Any

from tests.sim.streams import CaptureError, Event, Stream, StreamContext, current_stream
from tests.sim.tape import Gate, Tape, TaskGroup, Work, active_tape, unwatched


class ExternalEvent(Event):
    """A gate inside a graph, opened from outside by `record`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.gate = Gate()

    def wait(self, stream: Stream | None = None) -> None:
        """Under capture: the graph stops here until the event is recorded."""
        tape = (stream or current_stream()).tape
        if tape is not None:
            tape.add(self.gate)

    def reset(self, stream: Stream | None = None) -> None:
        """Under capture: after this point the event counts as not recorded."""
        tape = (stream or current_stream()).tape
        if tape is not None:
            tape.add(self.gate.close)

    def record(self, stream: Stream | None = None) -> None:
        """Let the graphs go on that wait, or the next one that comes by."""
        self.gate.open((stream or current_stream()).clock)


class _Thread(threading.local):
    update: tuple[TaskGroup, list[Work]] | None = None


_thread = _Thread()


def graph_task_group_begin(stream: Stream) -> None:
    """Begin a task group on a stream under capture."""
    _tape_of(stream).begin_group(stream)


def graph_task_group_end(stream: Stream) -> TaskGroup:
    """End it; the handle with which it is updated."""
    return _tape_of(stream).end_group(stream)


def graph_task_update_begin(stream: Stream, handle: TaskGroup) -> None:
    """The operators from here on are what the group shall do."""
    if _thread.update is not None:
        raise CaptureError("task group updates do not nest")
    _thread.update = (handle, [])


def graph_task_update_end(stream: Stream) -> None:
    """Replace what the group does.

    Raises:
        CaptureError: no update was begun, or it holds another number of operators than the group.
    """
    if _thread.update is None:
        raise CaptureError("there is no task group update to end")
    (group, new), _thread.update = _thread.update, None
    if len(group) != len(new):
        raise CaptureError(f"a task group of {len(group)} operators is updated with {len(new)}")
    with StreamContext(stream):
        group.update(new)


def emit(work: Work) -> None:
    """Issue one operator of the NPU: run it, record it, or make it the new task of a group."""
    tape = active_tape()
    if _thread.update is not None:
        _thread.update[1].append(work)
    elif tape is None:
        work()
    else:
        with unwatched():
            work()
        tape.add(work)


def _tape_of(stream: Stream) -> Tape:
    if stream.tape is None:
        raise CaptureError("task groups exist under capture only")
    return stream.tape
