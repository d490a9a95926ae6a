"""The race checker: it finds what nothing orders, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="runs in the environment that tools/vllm_env makes")

import torch

from tests.sim import streams, tape
from tests.sim.graphs import Graph, GraphContext
from tests.sim.race import Race, checked
from tests.sim.streams import Stream, StreamContext, current_stream

pytestmark = pytest.mark.vllm

Tensor = torch.Tensor
Work = Callable[[Tensor], object]


def touched(first: Work, second: Work, order: Callable[[Stream, Stream], object] = lambda a, b: None) -> list[Race]:
    """The races of two pieces of work on two streams."""
    x, a, b = torch.zeros(8), Stream(), Stream()
    with checked() as found:
        with StreamContext(a):
            first(x)
        order(a, b)
        with StreamContext(b):
            second(x)
    return found


def read(x: Tensor) -> Tensor:
    return x + 1


def write(x: Tensor) -> Tensor:
    return x.fill_(1)


CONFLICTS: dict[str, tuple[Work, Work, bool]] = {
    "write, write": (write, write, True),
    "write, read": (write, read, True),
    "read, write": (read, write, True),
    "read, read": (read, read, False),
    "out": (lambda x: torch.add(x[:2], 1, out=x[4:6]), lambda x: read(x[5:]), True),
    "parts that meet": (lambda x: write(x[:5]), lambda x: write(x[4:]), True),
    "parts that do not": (lambda x: write(x[:4]), lambda x: write(x[4:]), False),
    "other shape, same bytes": (lambda x: write(x.view(2, 4)), lambda x: x.view(torch.int32).sum(), True),
    "views only": (lambda x: x.view(2, 4), lambda x: x[1:], False),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicts(name):
    first, second, expected = CONFLICTS[name]
    assert bool(touched(first, second)) is expected


def test_a_race_names_both(capsys):
    (race,) = touched(write, read)
    assert (race.first, race.second) == ("aten::fill_", "aten::add")
    assert str(race) == f"aten::fill_ on stream {race.first_stream} / aten::add on stream {race.second_stream}"


def through_a_third(a: Stream, b: Stream) -> None:
    third = Stream()
    third.wait_stream(a)
    b.wait_event(third.record_event())


ORDERS: dict[str, tuple[Callable[[Stream, Stream], object], bool]] = {
    "waits": (lambda a, b: b.wait_stream(a), True),
    "waits for a third": (through_a_third, True),
    "the host waits for the stream": (lambda a, b: a.synchronize(), True),
    "the host waits for the device": (lambda a, b: streams.synchronize(), True),
    "the wrong way round": (lambda a, b: a.wait_stream(b), False),
    "an event that was recorded too early": (lambda a, b: b.wait_event(Stream().record_event()), False),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders(name):
    order, enough = ORDERS[name]
    assert bool(touched(write, read, order)) is not enough


def test_an_older_conflict_is_not_hidden_by_a_later_harmless_access():
    x, a, b = torch.zeros(4), Stream(), Stream()
    with checked() as found:
        with StreamContext(a):
            write(x)
            read(x[:1])
        with StreamContext(b):
            read(x[2:])
    assert len(found) == 1


def test_memory_that_changed_hands_is_new():
    a, b = Stream(), Stream()
    with checked() as found:
        for _ in range(50):  # some of these get the memory of the one before
            with StreamContext(a):
                write(torch.empty(1000))
            with StreamContext(b):
                write(torch.empty(1000))
    assert found == []


def test_other_threads_are_watched():
    x, side = torch.zeros(2), Stream()

    def work() -> None:
        read(x)  # on the default stream, without any switch
        with StreamContext(side):
            write(x)

    with checked() as found:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [(race.first, race.second) for race in found] == [("aten::add", "aten::fill_")]


def test_what_a_kernel_writes_is_seen():
    x, y = torch.zeros(2), torch.zeros(2)

    def work(z: Tensor) -> None:
        tape.kernel("test::copy", lambda: y.copy_(x + 1), [x, y])

    with checked() as found:
        with Stream():
            read(x)
            work(x)
        with Stream():
            read(x)  # nobody wrote it
            read(y)
    assert [(race.first, race.second) for race in found] == [("test::copy", "aten::add")]


def forked(x: Tensor, *, join: bool) -> None:
    main, side = current_stream(), Stream()
    side.wait_stream(main)
    with StreamContext(side):
        write(x)
        event = side.record_event()
    if join:
        main.wait_event(event)
    read(x)
    main.wait_event(event)


@pytest.mark.parametrize("join", [True, False])
def test_inside_a_graph(join):
    x = torch.zeros(2)
    with checked() as found, GraphContext(Graph()):
        forked(x, join=join)
    assert bool(found) is not join


def test_captured_work_meets_others_when_it_is_replayed():
    x, graph = torch.zeros(2), Graph()
    with checked() as found:
        with Stream():
            read(x)
        with GraphContext(graph):
            write(x)
        with Stream():
            read(x)
        assert found == []
        with Stream():
            graph.replay()
    assert len(found) == 2


def test_it_ends_with_its_block():
    run = threading.Thread.run
    with checked() as found, pytest.raises(RuntimeError, match="already"), checked():
        pytest.fail("the block is not entered")
    assert threading.Thread.run is run
    x = torch.zeros(1)
    with Stream():
        write(x)
    with Stream():
        write(x)
    assert found == []
