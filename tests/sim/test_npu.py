"""Task groups and external events: parameters of a captured graph are updated while it waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

pytest.importorskip("torch", reason="runs in the environment that tools/vllm_env makes")

import torch

from tests.sim import npu, tape
from tests.sim.graphs import Graph, GraphContext
from tests.sim.npu import ExternalEvent, emit
from tests.sim.race import checked
from tests.sim.streams import CaptureError, SimulationError, Stream, current_stream

pytestmark = pytest.mark.vllm


@pytest.fixture(autouse=True)
def _nothing_stalled() -> Iterator[None]:
    yield
    tape.stalled.clear()


class Scaled:
    """A graph whose only parameter is a number: `out = x * factor`, as attention whose lengths the host passes in."""

    def __init__(self) -> None:
        self.x, self.out, self.after = torch.ones(2), torch.zeros(2), torch.zeros(2)
        self.event, self.graph = ExternalEvent(), Graph()
        with GraphContext(self.graph):
            stream = current_stream()
            self.event.wait(stream)
            self.event.reset(stream)
            npu.graph_task_group_begin(stream)
            self.scale(2)
            self.handle = npu.graph_task_group_end(stream)
            torch.add(self.out, 1, out=self.after)

    def scale(self, factor: float) -> None:
        """The operator in question."""
        emit(lambda: torch.mul(self.x, factor, out=self.out))

    def update(self, factor: float, stream: Stream | None = None) -> None:
        """Give the group another parameter."""
        stream = stream or Stream()
        npu.graph_task_update_begin(stream, self.handle)
        self.scale(factor)
        npu.graph_task_update_end(stream)
        self.event.record(stream)

    def result(self) -> list[float]:
        """What a step sees, once the host has waited for the device."""
        current_stream().record_event().synchronize()
        return self.after.tolist()


def test_an_update_takes_effect_in_the_replay_that_waits_for_it():
    graph = Scaled()
    for factor in (3, 5):
        graph.graph.replay()
        graph.update(factor)
        assert graph.result() == [factor + 1, factor + 1]


def test_an_update_may_come_before_the_replay():
    graph = Scaled()
    graph.update(7)
    graph.graph.replay()
    assert graph.result() == [8, 8]


def test_an_update_runs_nothing():
    graph = Scaled()
    before = graph.out.clone()
    graph.update(9)
    assert torch.equal(graph.out, before)


def test_a_missing_update_is_a_hang():
    graph = Scaled()
    graph.graph.replay()
    with pytest.raises(SimulationError, match="would hang"):
        graph.result()
    graph.update(3)
    assert graph.result() == [4, 4]


def test_an_update_of_another_graph_is_a_hang_here_and_a_wrong_value_there():
    one, other = Scaled(), Scaled()
    one.graph.replay()
    other.update(3)
    with pytest.raises(SimulationError, match="would hang"):
        one.result()


def test_an_event_recorded_without_an_update_replays_the_old_parameter():
    graph = Scaled()
    graph.update(3)
    graph.graph.replay()
    graph.event.record()
    graph.graph.replay()
    assert graph.result() == [4, 4]


def test_another_thread_may_update():
    graph = Scaled()
    graph.graph.replay()
    thread = threading.Thread(target=graph.update, args=(6,))
    thread.start()
    thread.join()
    assert graph.result() == [7, 7]


def test_operators_outside_of_groups_run_at_once_or_are_recorded():
    x = torch.zeros(1)
    emit(lambda: x.add_(1))
    assert x.item() == 1
    graph = Graph()
    with GraphContext(graph):
        emit(lambda: x.add_(1))
    graph.replay()
    assert (x.item(), len(graph.tape.entries)) == (3, 1)


@pytest.mark.parametrize("ordered", [True, False])
def test_an_update_that_does_not_wait_for_the_replay_before_is_a_race(ordered: bool):
    graph, updates = Scaled(), Stream()
    with checked() as races:
        for factor in (3, 5):
            if ordered:
                updates.wait_stream(current_stream())
            graph.graph.replay()
            graph.update(factor, updates)
        assert graph.result() == [6, 6]
    assert [(race.first, race.second) for race in races] == ([] if ordered else [("task group", "task group update")])


def test_an_update_has_as_many_operators_as_the_group():
    graph = Scaled()
    stream = Stream()
    npu.graph_task_update_begin(stream, graph.handle)
    with pytest.raises(CaptureError, match="1 operators is updated with 0"):
        npu.graph_task_update_end(stream)


def test_groups_and_updates_need_their_other_half():
    stream = Stream()
    with pytest.raises(CaptureError, match="under capture only"):
        npu.graph_task_group_begin(stream)
    with pytest.raises(CaptureError, match="no task group update"):
        npu.graph_task_update_end(stream)
    with pytest.raises(CaptureError, match="inside a task group"), GraphContext(Graph()):
        npu.graph_task_group_begin(current_stream())
    with GraphContext(Graph()), pytest.raises(CaptureError, match="no open task group"):
        npu.graph_task_group_end(current_stream())
