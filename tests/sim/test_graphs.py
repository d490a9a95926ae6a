"""Graphs: what is recorded, what a replay computes, and the rules of capture."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="runs in the environment that tools/vllm_env makes")

import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.sim import graphs, tape
from tests.sim.graphs import Graph, GraphContext
from tests.sim.ranks import Rank, run_ranks
from tests.sim.streams import CaptureError, Stream, StreamContext, current_stream, default_stream

pytestmark = pytest.mark.vllm

Tensor = torch.Tensor


def captured(function: Callable[[], object]) -> Graph:
    graph = Graph()
    with GraphContext(graph):
        function()
    return graph


def test_a_replay_computes_from_what_the_inputs_hold_into_the_same_tensors():
    x, out = torch.ones(3), []
    graph = captured(lambda: out.append((x * 2).relu()))
    address = out[0].data_ptr()
    x.copy_(torch.tensor([-1.0, 5.0, 0.0]))
    assert out[0].tolist() == [2, 2, 2]
    graph.replay()
    assert out[0].tolist() == [0, 10, 0]
    assert (out[0].data_ptr(), graph.replays) == (address, 1)


def test_a_value_of_the_host_is_baked_in():
    x, factor, out = torch.ones(2), 3, []
    graph = captured(lambda: out.append(x * factor))
    factor = 5
    graph.replay()
    assert out[0].tolist() == [3, 3]


def test_a_tensor_that_takes_the_place_of_a_captured_one_is_not_read():
    box, out = [torch.ones(2)], []
    graph = captured(lambda: out.append(box[0] + 1))
    box[0] = torch.full((2,), 7.0)
    graph.replay()
    assert out[0].tolist() == [2, 2]


RECORDED: dict[str, tuple[Callable[[Tensor], object], int]] = {
    "views": (lambda x: x.view(2, 2)[0].t().unsqueeze(0), 0),
    "allocation": (lambda x: torch.empty(4), 0),
    "in place": (lambda x: x.add_(1), 1),
    "through a view": (lambda x: x.view(2, 2)[1].fill_(5), 1),
    "with out": (lambda x: torch.add(x, 1, out=torch.empty(4)), 1),
    "two results": (lambda x: x.view(2, 2).max(dim=1), 1),
    "index": (lambda x: x.index_put_((torch.tensor([0, 1]),), torch.tensor([9.0, 8.0])), 1),
    "a value for the host": (lambda x: x.sum().item(), 1),
}


@pytest.mark.parametrize("name", RECORDED)
def test_one_entry_for_each_kernel(name):
    function, kernels = RECORDED[name]
    x = torch.arange(4.0)
    graph = captured(lambda: function(x))
    assert graph.tape is not None
    assert len(graph.tape.entries) == kernels
    x.copy_(torch.arange(4.0))
    function(y := torch.arange(4.0))
    graph.replay()
    assert torch.equal(x, y)


def test_operators_written_in_python_are_recorded_kernel_by_kernel():
    library = torch.library.Library("simtest", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: (x + x) * 1, "CPU")
    x = torch.ones(2)
    try:
        assert len(captured(lambda: torch.ops.simtest.twice(x)).tape.entries) == 1
        tape.PYTHON_OPERATORS["simtest::twice"] = lambda x: (x + x) * 1
        assert len(captured(lambda: torch.ops.simtest.twice(x)).tape.entries) == 2
    finally:
        tape.PYTHON_OPERATORS.pop("simtest::twice", None)
        library._destroy()


# ---- any program ----------------------------------------------------------------------------------------------

STEPS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    lambda a, b: a + b,
    lambda a, b: a.mul_(0.5),
    lambda a, b: a.copy_(b),
    lambda a, b: a.view(2, 3).t().reshape(6),
    lambda a, b: torch.cat([a[:3], b[3:]]),
    lambda a, b: a[2:5].fill_(2.0) if a.shape[0] > 4 else a,
    lambda a, b: torch.where(a > b, a, b),
    lambda a, b: a.sort().values,
    lambda a, b: torch.sub(a, b, out=torch.empty(6)),
    lambda a, b: a.index_put_((torch.tensor([0, 5]),), b[:2].clone(), accumulate=True),
)
Program = list[tuple[int, int, int]]


def run(program: Program, inputs: list[Tensor]) -> list[Tensor]:
    """Each step works on two of the tensors so far; those of another shape are left alone."""
    found = list(inputs)
    for number, one, other in program:
        a, b = found[one % len(found)], found[other % len(found)]
        if a.shape == b.shape == (6,):
            found.append(STEPS[number](a, b))
    return found


@given(
    st.lists(st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 9), st.integers(0, 9)), max_size=8),
    st.integers(0, 99),
)
def test_a_replay_does_what_the_program_does(program, seed):
    generator = torch.Generator().manual_seed(seed)
    fresh = [torch.rand(6, generator=generator) for _ in range(3)]
    expected = run(program, [t.clone() for t in fresh])
    inputs = [torch.zeros(6) for _ in range(3)]
    results: list[Tensor] = []
    graph = captured(lambda: results.extend(run(program, inputs)))
    for tensor, value in zip(inputs, fresh, strict=True):
        tensor.copy_(value)
    graph.replay()
    for result, value in zip(results, expected, strict=True):
        assert torch.equal(result, value)


# ---- streams under capture ------------------------------------------------------------------------------------


def fork(x: Tensor, *, back: bool = True) -> Tensor:
    main, side = current_stream(), Stream()
    side.wait_stream(main)
    with StreamContext(side):
        y = x + 1
    if back:
        main.wait_stream(side)
    return y


def test_forked_work_is_recorded():
    x, out = torch.zeros(1), []
    graph = captured(lambda: out.append(fork(x) * 10))
    assert len(graph.tape.streams) == 2
    x.fill_(4)
    graph.replay()
    assert out[0].item() == 50


def test_work_on_a_stream_that_was_not_forked_is_not_recorded():
    def function() -> None:
        with Stream():
            x.add_(1)

    x = torch.zeros(1)
    captured(function).replay()
    assert x.item() == 1


def test_a_fork_that_is_not_joined_is_refused():
    with pytest.raises(CaptureError, match="unjoined work on <stream"):
        captured(lambda: fork(torch.zeros(1), back=False))


def test_work_after_the_join_is_unjoined_again():
    def function() -> None:
        main, side = current_stream(), Stream()
        side.wait_stream(main)
        main.wait_stream(side)
        with StreamContext(side):
            torch.zeros(1).add_(1)

    with pytest.raises(CaptureError, match="unjoined"):
        captured(function)


def test_threads_share_a_capture():
    x, out, go = torch.ones(2), [], threading.Event()
    stream = Stream()

    def work() -> None:
        with torch.inference_mode(), StreamContext(stream):  # as a ubatch thread, which is there before the capture
            go.wait()
            out.append(x + 1)

    thread = threading.Thread(target=work)
    thread.start()
    graph = Graph()
    with GraphContext(graph, stream=stream):
        go.set()
        thread.join()
        out.append(out[0] * 2)
    x.fill_(10)
    graph.replay()
    assert [t.tolist() for t in out] == [[11, 11], [22, 22]]


# ---- refusals -------------------------------------------------------------------------------------------------


def test_the_default_stream_cannot_be_captured():
    with pytest.raises(CaptureError, match="default stream"):
        Graph().capture_begin()
    with pytest.raises(CaptureError, match="default stream"), GraphContext(Graph(), stream=default_stream()):
        pytest.fail("the block is not entered")
    assert current_stream() is default_stream()


def test_captures_do_not_nest():
    with pytest.raises(CaptureError, match="already"):
        captured(lambda: captured(lambda: None))
    assert not graphs.is_current_stream_capturing()


def test_a_capture_ends_where_it_began():
    graph = Graph()
    with Stream():
        graph.capture_begin()
    with Stream(), pytest.raises(CaptureError, match="another stream"):
        graph.capture_end()
    with pytest.raises(CaptureError, match="no capture"):
        graph.capture_end()


def test_a_capture_that_failed_leaves_an_empty_graph_and_a_usable_stream():
    graph, stream = Graph(), Stream()
    with pytest.raises(ZeroDivisionError), GraphContext(graph, stream=stream):
        torch.ones(1).add_(1 / 0)
    assert graph.tape is None
    assert current_stream() is default_stream()
    with pytest.raises(CaptureError, match="without a capture"):
        graph.replay()
    with GraphContext(graph, stream=stream):
        torch.ones(1).add_(1)
    graph.replay()


def test_a_graph_keeps_its_tensors_until_it_is_reset():
    def made() -> tuple[Graph, weakref.ref[Tensor]]:
        weight = torch.ones(2)
        return captured(lambda: weight + 1), weakref.ref(weight)

    graph, alive = made()
    gc.collect()
    assert alive() is not None
    assert graph in graphs.captured_graphs()
    graph.reset()
    gc.collect()
    assert alive() is None
    assert graph not in graphs.captured_graphs()


# ---- Triton ---------------------------------------------------------------------------------------------------


def triton_in_a_graph(rank: Rank) -> list[float]:
    """Capture and replay a launch of a kernel."""
    from tests.sim.kernels import add_one

    x, y = torch.arange(4.0), torch.zeros(4)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add_one[(1,)](x, y, 4)
    x.fill_(9)
    graph.replay()
    return y.tolist()


def test_launches_of_triton_kernels_are_recorded():
    assert run_ranks(triton_in_a_graph, world=1) == [[10, 10, 10, 10]]
