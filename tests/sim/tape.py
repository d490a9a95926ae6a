"""The tape: what a graph capture records, one entry per kernel, and how it is played again.

A dispatch mode sees every operator of a thread whose current stream is not the default one (and all of them while races are
looked for). Under capture, an operator that computes something is recorded with the tensors it was given: a replay computes it
again from what these hold then, into the tensors it returned. So addresses and values that were baked in behave as on a device.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._guards import TracingContext
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.sim import race, streams
from tests.sim.streams import CaptureError, Clock, SimulationError, Stream, current_stream, default_stream

Work = Callable[[], object]

ALLOCATIONS = frozenset({
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided",
})  # fmt: skip
"""Operators that touch no memory."""

HOST_READS = frozenset({
    "aten::_local_scalar_dense", "aten::_unique2", "aten::equal", "aten::is_nonzero", "aten::item", "aten::masked_select",
    "aten::nonzero", "aten::unique_dim",
})  # fmt: skip
"""Operators that bring a value to the host. On a device they may not be captured; here host tensors use them, too."""

PYTHON_OPERATORS: dict[str, Callable[..., Any]] = {}
"""Bodies of operators written in Python, by name: recorded kernel by kernel."""


_numbers = itertools.count(1)


class Gate:
    """An entry at which a replay stops until the gate is opened.

    Attributes:
        is_open: whether a replay passes.
        parked: the replays that wait: tape, entry to go on from, the stream that the graph was launched on.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.parked: list[tuple[Tape, int, Stream]] = []
        self._clock: Clock = {}

    def open(self, clock: Clock) -> None:
        """Let pass what comes after the work in `clock`, and play on what waits."""
        self.is_open, self._clock = True, dict(clock)
        parked, self.parked = self.parked, []
        for tape, at, stream in parked:
            with streams.StreamContext(stream):
                tape.replay(at)

    def close(self) -> None:
        """Stop the next replay."""
        self.is_open = False

    def passes(self, tape: Tape, at: int) -> bool:
        """Whether a replay on the current stream passes; if not, it is parked."""
        if self.is_open:
            current_stream().after(self._clock)
        else:
            self.parked.append((tape, at, current_stream()))
        return self.is_open


class TaskGroup(list[Work]):
    """What a task group does; the handle with which it is updated.

    Both are reported to the race checker: an update that nothing orders behind an earlier replay may change that one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._memory = torch.empty(1)

    def play(self) -> None:
        """Do it."""
        checker = race.active()
        if checker is not None:
            checker.ran("task group", [self._memory], [])
        for work in self:
            work()

    def update(self, new: Sequence[Work]) -> None:
        """Do something else from now on."""
        checker = race.active()
        if checker is not None:
            checker.ran("task group update", [], [self._memory])
        self[:] = new


class Tape:
    """The work of one capture, in order.

    Attributes:
        number: of this capture, from 1.
        origin: the stream on which the capture began, and has to end.
        entries: what was recorded.
        streams: the streams that took part.
        active: whether the capture still runs.
    """

    def __init__(self, origin: Stream) -> None:
        self.number = next(_numbers)
        self.origin = origin
        self.entries: list[Work | Gate] = []
        self.streams = {origin}
        self.active = True
        self._last: Clock = {}
        self._groups: dict[Stream, TaskGroup] = {}
        self._lock = threading.Lock()
        origin.tape = self

    def enlist(self, stream: Stream) -> None:
        """Let `stream` take part: it waits for an event of this capture.

        Raises:
            CaptureError: it takes part in another.
        """
        if stream.tape is None:
            stream.tape = self
            self.streams.add(stream)
        elif stream.tape is not self:
            raise CaptureError("a stream under capture waits for an event of another capture")

    def add(self, entry: Work | Gate) -> None:
        """Record one entry on the current stream; inside a task group it becomes a part of the group."""
        stream = current_stream()
        with self._lock:
            self._last[stream.stream_id] = stream.issue()
            group = self._groups.get(stream)
            if group is None:
                self.entries.append(entry)
            elif isinstance(entry, Gate):
                raise CaptureError("a task group waits for an external event")
            else:
                group.append(entry)

    def begin_group(self, stream: Stream) -> None:
        """Collect what is recorded on `stream` from now on."""
        if stream in self._groups:
            raise CaptureError("task groups do not nest")
        self._groups[stream] = TaskGroup()

    def end_group(self, stream: Stream) -> TaskGroup:
        """Record what was collected as one entry; the list may be changed later and is read at each replay."""
        if stream not in self._groups:
            raise CaptureError("there is no open task group on this stream")
        group = self._groups.pop(stream)

        self.add(group.play)
        return group

    def finish(self) -> None:
        """End the capture.

        Raises:
            CaptureError: a stream has work that the origin does not wait for, or a task group is open.
        """
        self.abandon()
        ends = self.origin.clock
        unjoined = [s for s in self.streams if ends.get(s.stream_id, 0) < self._last.get(s.stream_id, 0)]
        if unjoined:
            raise CaptureError(f"the capture ends with unjoined work on {', '.join(map(str, unjoined))}")
        if self._groups:
            raise CaptureError("the capture ends inside a task group")

    def abandon(self) -> None:
        """End the capture, whatever state it is in."""
        self.active = False
        for stream in self.streams:
            stream.tape = None

    def replay(self, start: int = 0) -> None:
        """Do the work again; at a closed gate, stop: whoever opens it plays on."""
        stalled.discard(self)
        for at in range(start, len(self.entries)):
            entry = self.entries[at]
            if not isinstance(entry, Gate):
                entry()
            elif not entry.passes(self, at):
                stalled.add(self)
                return


stalled: set[Tape] = set()
"""Tapes that stopped at a closed gate."""


def check_stalled() -> None:
    """Nothing may wait for a graph that does not end.

    Raises:
        SimulationError: there is one.
    """
    if stalled:
        raise SimulationError("the device would hang: a graph waits for an external event that nobody has recorded")


streams.on_synchronize.append(check_stalled)


def active_tape() -> Tape | None:
    """The capture that the current stream takes part in; another thread may have begun or ended it."""
    tape = current_stream().tape
    return tape if tape is not None and tape.active else None


# ---- what sees the operators ----------------------------------------------------------------------------------


def tensors(tree: object) -> list[torch.Tensor]:
    """The tensors in nested containers."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class _Watch(TorchDispatchMode):
    """Records operators, and reports them to the race checker."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """A device is not asked whether code is compiled either."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, torch._ops.HigherOrderOperator):  # compiled code: what is in it
            with self:
                return func.py_kernels[torch._C.DispatchKey.CompositeExplicitAutograd](*args, **kwargs)
        name = func._schema.name
        tape, checker = active_tape(), race.active()
        if (tape is None and checker is None) or name in ALLOCATIONS or TracingContext.try_get() is not None:
            return func(*args, **kwargs)  # nothing is done; what a compiler traces is not, either
        if name in PYTHON_OPERATORS:
            with self:
                return PYTHON_OPERATORS[name](*args, **kwargs)
        out = func(*args, **kwargs)
        given, written = tensors((args, kwargs)), _written(func, args, kwargs)
        known = {_storage(t) for t in given}
        made = tensors(out)
        fresh = [i for i, t in enumerate(made) if t.numel() and _storage(t) not in known]
        if not fresh and not written and name not in HOST_READS:
            return out  # a view
        if tape is not None and name not in HOST_READS:
            tape.add(_again(func, args, kwargs, made, fresh))
        if checker is not None:
            checker.ran(name, given, [*written, *(made[i] for i in fresh)])
        return out


def _written(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    found = []
    for at, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found += tensors(args[at] if at < len(args) else kwargs.get(argument.name))
    return found


def _again(func: Any, args: Any, kwargs: dict[str, Any], made: list[torch.Tensor], fresh: list[int]) -> Work:
    def work() -> None:
        out = func(*args, **kwargs)
        for leaf in tree_leaves(out):  # a collective hands back what to wait for
            if isinstance(leaf, torch.ScriptObject):
                torch._C._distributed_c10d.Work.unbox(leaf).wait()
        new = tensors(out)
        for i in fresh:
            made[i].copy_(new[i])

    return work


class _Thread(threading.local):
    watch: _Watch | None = None


_thread = _Thread()


def refresh() -> None:
    """Begin or end watching the operators of this thread, as its current stream and the race checker want it."""
    want = race.active() is not None or current_stream() is not default_stream()
    if want and _thread.watch is None:
        _thread.watch = _Watch()
        _thread.watch.__enter__()
    elif not want:
        _end()


def _end() -> None:
    watch, _thread.watch = _thread.watch, None
    if watch is not None:
        watch.__exit__(None, None, None)


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Operators of the block are the inside of a kernel: not recorded, not checked."""
    _end()
    try:
        yield
    finally:
        refresh()


streams.on_switch.append(refresh)
race.on_change.append(refresh)


def record(name: str, work: Work, operands: Sequence[torch.Tensor] = ()) -> bool:
    """Record one opaque kernel without running it, as a device does; whether there is a capture. As `kernel`."""
    tape = active_tape()
    if tape is not None:
        tape.add(lambda: kernel(name, work, operands))
    return tape is not None


def kernel(name: str, work: Work, operands: Sequence[torch.Tensor] = ()) -> Any:
    """Run, and under capture record, one opaque kernel.

    Args:
        name: what a race calls it.
        work: what it does; called again at each replay.
        operands: what it may read or write. What it does write is found by comparing, while races are looked for.
    """
    checker = race.active()
    before = [t.clone() for t in operands] if checker is not None else []
    with unwatched():
        out = work()
        if checker is not None:
            pairs = zip(operands, before, strict=True)
            checker.ran(name, operands, [t for t, old in pairs if not torch.equal(_bits(t), _bits(old))])
    record(name, work, operands)
    return out


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that equals itself even where it is NaN."""
    return tensor.contiguous().view(-1).view(torch.uint8) if tensor.numel() else tensor
