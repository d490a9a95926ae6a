"""The descriptor: native one plus a number of ubatches."""

from __future__ import annotations

import dataclasses
import inspect
import itertools

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from afd_backports.vllm_v026_mrv2_dbo.descriptor import AFDBatchExecutionDescriptor, UBatchGraphManager
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor, CudaGraphManager

pytestmark = pytest.mark.vllm

FULL, NONE = CUDAGraphMode.FULL, CUDAGraphMode.NONE
NATIVE = BatchExecutionDescriptor(FULL, 8, 8, uniform_token_count=1, num_active_loras=0)
SINGLE = AFDBatchExecutionDescriptor(FULL, 8, 8, uniform_token_count=1, num_active_loras=0)
TWIN = dataclasses.replace(SINGLE, num_ubatches=2)


def test_fields_are_the_native_ones_and_the_number_of_ubatches() -> None:
    native = [field.name for field in dataclasses.fields(BatchExecutionDescriptor)]
    assert [field.name for field in dataclasses.fields(AFDBatchExecutionDescriptor)] == [*native, "num_ubatches"]
    assert SINGLE.num_ubatches == 1
    assert isinstance(SINGLE, BatchExecutionDescriptor)


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SINGLE.num_ubatches = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        TWIN.num_tokens = 4  # type: ignore[misc]


def test_of_keeps_every_field() -> None:
    native = BatchExecutionDescriptor(CUDAGraphMode.PIECEWISE, 7, None, 3, 2)
    made = AFDBatchExecutionDescriptor.of(native)
    assert dataclasses.asdict(made) == {**dataclasses.asdict(native), "num_ubatches": 1}
    assert AFDBatchExecutionDescriptor.of(TWIN) == TWIN
    assert AFDBatchExecutionDescriptor.of(TWIN).num_ubatches == 2


def test_a_single_batch_equals_the_native_descriptor_on_both_sides() -> None:
    assert SINGLE == NATIVE
    assert NATIVE == SINGLE
    assert hash(SINGLE) == hash(NATIVE)


@pytest.mark.parametrize(
    "other",
    [
        TWIN,
        dataclasses.replace(SINGLE, cg_mode=NONE),
        dataclasses.replace(SINGLE, num_tokens=9),
        dataclasses.replace(SINGLE, num_reqs=None),
        dataclasses.replace(SINGLE, uniform_token_count=None),
        dataclasses.replace(SINGLE, num_active_loras=1),
        "text",
        None,
    ],
    ids=lambda other: str(other)[:60],
)
def test_nothing_else_is_equal(other: object) -> None:
    for one, two in itertools.permutations([other, SINGLE]):
        assert one != two
    for one, two in itertools.permutations([other, NATIVE]):
        assert one != two


def test_as_graph_key_twins_and_native_graphs_do_not_collide() -> None:
    graphs = {NATIVE: "native", TWIN: "twin"}
    assert len(graphs) == 2
    assert graphs[SINGLE] == "native"
    assert graphs[dataclasses.replace(SINGLE, num_ubatches=2)] == "twin"
    assert dataclasses.replace(SINGLE, num_ubatches=3) not in graphs
    graphs[SINGLE] = "native again"
    assert graphs == {NATIVE: "native again", TWIN: "twin"}


def test_the_native_manager_replays_its_graph_for_a_single_batch() -> None:
    replayed: list[str] = []

    class Graph:
        def replay(self) -> None:
            replayed.append("native")

    manager = object.__new__(CudaGraphManager)  # replay reads the graphs and nothing else
    manager.graphs = {NATIVE: Graph()}
    manager.run_fullgraph(SINGLE)
    assert replayed == ["native"]
    with pytest.raises(AssertionError, match="No cudagraph"):
        manager.run_fullgraph(TWIN)


def test_a_manager_of_split_batches_has_to_say_how_it_dispatches() -> None:
    class Incomplete(CudaGraphManager, UBatchGraphManager):
        dispatch = UBatchGraphManager.dispatch

    with pytest.raises(TypeError, match="abstract"):
        Incomplete(None, None, CUDAGraphMode.NONE, 1)  # type: ignore[arg-type, abstract]


def test_a_batch_is_not_split_by_default() -> None:
    assert inspect.signature(UBatchGraphManager.dispatch).parameters["num_ubatches"].default == 1
