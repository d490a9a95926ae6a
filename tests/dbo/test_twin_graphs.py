"""Graphs of split batches without a model: which there are, which is chosen, what is done around a capture and a replay."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from afd_backports.vllm_v026_mrv2_dbo import graph_manager
from afd_backports.vllm_v026_mrv2_dbo.descriptor import AFDBatchExecutionDescriptor
from afd_backports.vllm_v026_mrv2_dbo.graph_manager import (
    StagedStateError,
    TwinGraphs,
    UBatchGraphs,
    UBatchModelCudaGraphManager,
)
from afd_backports.vllm_v026_mrv2_dbo.host import SilentControl
from vllm.config import ParallelConfig
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor, ModelCudaGraphManager
from vllm.v1.worker.ubatch_utils import UBatchSlice

pytestmark = pytest.mark.vllm

FULL, NONE = CUDAGraphMode.FULL, CUDAGraphMode.NONE


class Control(SilentControl):
    """Says which flag is raised."""

    def said(self) -> str:
        flags = {"warm-up": self.is_warmup, "capture": self.is_graph_capturing, "replay": self.is_graph_replaying}
        return "+".join(name for name, raised in flags.items() if raised)


class Stages:
    """In the place of a ubatch runner; all that happens is in `log`."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.host = SimpleNamespace(control=Control())
        self.capture_stream = SimpleNamespace(wait_stream=lambda stream: self.log.append(("waits for", stream)))
        self.staged: Any = None

    def announce(self, contexts: Any) -> None:
        self.log.append(("announces", contexts, self.host.control.said()))

    def take_staged(self) -> Any:
        state, self.staged = self.staged, None
        return state


class Native:
    """In the place of a native graph manager."""

    def __init__(self, *shapes: int) -> None:
        self.called: list[Any] = []
        self.graphs: dict[Any, Any] = {}
        native = [BatchExecutionDescriptor(FULL, tokens, tokens, 1) for tokens in shapes]
        self._capture_descs = {FULL: native, CUDAGraphMode.PIECEWISE: [BatchExecutionDescriptor(FULL, 64, 64, 1)]}
        if not shapes:
            del self._capture_descs[FULL]
        parallel = ParallelConfig(enable_dbo=True, dbo_decode_token_threshold=2)
        self.vllm_config: Any = SimpleNamespace(parallel_config=parallel)

    def dispatch(self, *wanted: Any) -> BatchExecutionDescriptor:
        self.called.append(wanted)
        return BatchExecutionDescriptor(FULL, 16, 16, 1)

    def capture(self, **inputs: Any) -> None:
        self.called.append(inputs)

    def run_fullgraph(self, desc: Any) -> str:
        self.called.append(("replays", desc))
        return "output"


class Manager(UBatchGraphs, Native):  # type: ignore[misc]  # the stand-in says less than vLLM's
    """With some native shapes, large ones first as vLLM has them, and captured twins."""

    def __init__(self, *shapes: int) -> None:
        super().__init__(*shapes)
        self.stages = Stages()
        self.attach(self.stages)  # type: ignore[arg-type]

    def twin(self, tokens: int) -> AFDBatchExecutionDescriptor:
        return AFDBatchExecutionDescriptor(FULL, tokens, tokens, 1, num_ubatches=2)

    def captured(self, *shapes: int) -> Manager:
        for tokens in shapes:
            self.graphs[self.twin(tokens)] = f"graph of {tokens}"
            self.twin_slices[self.twin(tokens)] = halves(tokens)
        return self


def halves(tokens: int) -> list[UBatchSlice]:
    first, second = slice(0, tokens // 2), slice(tokens // 2, tokens)
    return [UBatchSlice(first, first), UBatchSlice(second, second)]


def state(tokens: int) -> Any:
    return SimpleNamespace(slices=halves(tokens), forward_contexts=[f"{tokens}, 0", f"{tokens}, 1"])


# ---- which twins there are ------------------------------------------------------------------------------------


def test_whole_native_shapes_have_twins_in_the_same_order() -> None:
    manager = Manager(8, 5, 4, 2, 1)
    assert manager.twin_descs == {FULL: [manager.twin(8), manager.twin(4), manager.twin(2)]}
    assert manager.stage_runner is manager.stages


@pytest.mark.parametrize("shapes", [(), (5, 1)], ids=["no native graphs", "none that can be halved"])
def test_without_twins_nothing_is_captured_split(shapes: tuple[int, ...]) -> None:
    manager = Manager(*shapes)
    assert manager.twin_descs == {}
    with mock.patch.object(manager, "capture_twins") as twins:
        manager.capture(*range(7))  # type: ignore[arg-type]
    assert not twins.called


def test_without_a_ubatch_runner_there_are_none() -> None:
    manager = Manager(8).captured(8)
    with manager.replay_hooks.installed(mock.Mock()):
        before = manager.replay_hooks
        manager.attach(None)
    assert (manager.twin_descs, manager.twin_slices, manager.stage_runner) == ({}, {}, None)
    assert manager.replay_hooks is not before  # hooks of another runner's time do not come back


def test_which_shape_has_a_twin_is_said_by_a_subclass() -> None:
    class Bare(TwinGraphs, Native):
        """Has twins, and does not say of what."""

    with pytest.raises(NotImplementedError):
        Bare(8).attach(Stages())  # type: ignore[arg-type]


# ---- which is chosen ------------------------------------------------------------------------------------------


def test_a_single_batch_is_chosen_natively() -> None:
    manager = Manager(8).captured(8)
    for chosen in (manager.dispatch(3, 5, 1, 7), manager.dispatch(3, 5, 1, 7, 1)):
        assert type(chosen) is AFDBatchExecutionDescriptor
        assert (chosen, chosen.num_ubatches) == (BatchExecutionDescriptor(FULL, 16, 16, 1), 1)
    assert manager.called == [(3, 5, 1, 7)] * 2


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ((3, 3, 1, 0, 2), 4), ((4, 4, 1, 0, 2), 4), ((5, 5, 1, 0, 2), 8), ((1, 1, 1, 0, 2), 4),
        ((9, 9, 1, 0, 2), None),  # no shape is large enough
        ((3, 3, 3, 0, 2), None),  # other tokens of a request
        ((3, 3, 1, 2, 2), None),  # other adapters
        ((3, 3, 1, 0, 3), None),  # another number of stages
    ],
)  # fmt: skip
def test_the_smallest_captured_twin_that_fits(wanted: tuple[int, ...], chosen: int | None) -> None:
    manager = Manager(8, 4, 2).captured(8, 4)  # that of 2 is not captured
    found = manager.dispatch(*wanted)
    requests, tokens, _, loras, ubatches = wanted
    eager = AFDBatchExecutionDescriptor(NONE, tokens, requests, num_active_loras=loras, num_ubatches=ubatches)
    assert vars(found) == vars(manager.twin(chosen) if chosen else eager)
    assert not manager.called


def test_nothing_captured_is_nothing_to_choose() -> None:
    assert Manager(8).dispatch(8, 8, 1, 0, 2).cg_mode == NONE
    assert Manager().dispatch(8, 8, 1, 0, 2).cg_mode == NONE


# ---- capture --------------------------------------------------------------------------------------------------

INPUTS = (
    "model", "model_state", "input_buffers", "intermediate_tensors", "block_tables", "attn_groups", "kv_cache_config",
    "has_lora", "use_aux_hidden_state_outputs", "lora_capture_hook", "progress_bar_desc",
)  # fmt: skip


def test_the_native_graphs_are_captured_first_with_all_that_vllm_gives() -> None:
    manager = Manager(8)
    values = dict(zip(INPUTS, (f"the {name}" for name in INPUTS), strict=True))
    with mock.patch.object(manager, "capture_twins", lambda **args: manager.called.append(args)):
        manager.capture(**values)  # type: ignore[arg-type]
    assert manager.called == [values, {**values, "progress_bar_desc": "the progress_bar_desc of two ubatches"}]


def test_what_vllm_leaves_out_is_what_it_means_by_that() -> None:
    manager = Manager(8)
    with mock.patch.object(manager, "capture_twins", lambda **args: manager.called.append(args)):
        manager.capture(*INPUTS[:7])  # type: ignore[arg-type]
    left_out = dict(zip(INPUTS[7:], (False, False, None, "Capturing CUDA graphs"), strict=True))
    assert manager.called[0] == {**dict(zip(INPUTS[:7], INPUTS[:7], strict=True)), **left_out}
    assert manager.called[1] == {**manager.called[0], "progress_bar_desc": "Capturing CUDA graphs of two ubatches"}


@pytest.mark.parametrize(("warmup", "said"), [(True, "warm-up"), (False, "capture")])
def test_the_ffn_side_hears_of_a_capture_after_the_preparation(warmup: bool, said: str) -> None:
    manager, prepared = Manager(8), state(8)
    with mock.patch.object(graph_manager, "current_stream", return_value="this thread's stream"):
        manager.before_capture(manager.twin(8), prepared, warmup)
    assert manager.stages.log == [
        ("waits for", "this thread's stream"), ("announces", prepared.forward_contexts, said),
    ]  # fmt: skip
    assert manager.twin_slices == {manager.twin(8): prepared.slices}
    assert manager.stages.host.control.said() == ""


# ---- replay ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "desc", [BatchExecutionDescriptor(FULL, 8, 8, 1), AFDBatchExecutionDescriptor(FULL, 8, 8, 1)], ids=["native", "AFD"]
)
def test_the_graph_of_a_single_batch_is_replayed_natively(desc: BatchExecutionDescriptor) -> None:
    manager = Manager(8).captured(8)
    manager.stages.staged = staged = state(8)
    assert manager.run_fullgraph(desc) == "output"
    assert manager.called == [("replays", desc)]
    assert (manager.stages.log, manager.stages.staged) == ([], staged)


def test_a_twin_is_replayed_for_what_is_staged() -> None:
    manager = Manager(8).captured(8)
    log, control = manager.stages.log, manager.stages.host.control
    manager.called = log

    @contextlib.contextmanager
    def hook(desc: Any) -> Iterator[None]:
        log.append(("hook", desc, control.said()))
        yield
        log.append(("hook ends", desc, control.said()))

    manager.stages.staged = staged = state(8)
    with manager.replay_hooks.installed(hook):
        assert manager.run_fullgraph(manager.twin(8)) == "output"
    twin = manager.twin(8)
    assert log == [
        ("hook", twin, "replay"), ("announces", staged.forward_contexts, "replay"), ("replays", twin), ("hook ends", twin, "replay"),
    ]  # fmt: skip
    assert (control.said(), manager.stages.staged) == ("", None)
    manager.stages.staged = staged
    with manager.staged_replay(twin) as given:
        assert given is staged


@pytest.mark.parametrize(
    ("staged", "runner", "said"),
    [
        (8, False, "there is no ubatch runner, so nothing can be staged for the replay of AFDBatchExecutionDescriptor("),
        (None, True, "no ubatches are staged for the replay of AFDBatchExecutionDescriptor("),
        (4, True, f"{halves(4)} are staged; AFDBatchExecutionDescriptor("),
    ],
)  # fmt: skip
def test_other_ubatches_are_refused_before_anybody_hears_of_them(staged: int | None, runner: bool, said: str) -> None:
    manager = Manager(8).captured(8)
    manager.stages.staged = None if staged is None else state(staged)
    if not runner:
        manager.stage_runner = None
    with pytest.raises(StagedStateError) as refused:
        manager.run_fullgraph(manager.twin(8))
    assert str(refused.value).startswith(said)
    assert (staged == 4) == str(refused.value).endswith(f" was captured for {halves(8)}")
    assert manager.called == manager.stages.log == []


# ---- release --------------------------------------------------------------------------------------------------


def test_one_graph_is_dropped_or_all_of_split_batches_or_all() -> None:
    manager = Manager(8, 4, 2).captured(8, 4)
    native = BatchExecutionDescriptor(FULL, 8, 8, 1)
    manager.graphs[native] = "native"  # type: ignore[assignment]
    manager.release_twin(manager.twin(2))  # is not there
    manager.release_twin(manager.twin(4))
    assert set(manager.graphs) == {native, manager.twin(8)}
    assert set(manager.twin_slices) == {manager.twin(8)}
    manager.release_twins()
    assert set(manager.graphs) == {native}
    assert manager.twin_slices == {}
    manager.release()
    assert (manager.graphs, manager.twin_descs, manager.stage_runner) == ({}, {}, None)


def test_at_the_end_a_platform_lets_go_of_each_twin() -> None:
    released: list[Any] = []

    class Platform(Manager):
        """Keeps something for each."""

        def release_twin(self, desc: Any) -> None:
            released.append(desc)
            super().release_twin(desc)

    manager = Platform(8, 4).captured(8, 4)
    manager.release()
    assert released == [manager.twin(8), manager.twin(4)]


def test_all_is_dropped_when_a_platform_cannot_let_go() -> None:
    manager = Manager(8).captured(8)
    with mock.patch.object(manager, "release_twin", side_effect=ValueError("mine")), pytest.raises(ValueError, match="mine"):  # fmt: skip
        manager.release()
    assert (manager.graphs, manager.twin_descs, manager.stage_runner) == ({}, {}, None)


def test_vllm_s_own_manager_is_made_as_vllm_makes_it() -> None:
    made = {}

    def native(self: Any, **arguments: Any) -> None:
        made.update(arguments)
        self._capture_descs = {FULL: [BatchExecutionDescriptor(FULL, 8, 8, 1)]}

    with mock.patch.object(ModelCudaGraphManager, "__init__", native):
        manager = UBatchModelCudaGraphManager("config", "device", "mode", 1, [4])  # type: ignore[arg-type]
    assert made == {
        "vllm_config": "config", "device": "device", "cudagraph_mode": "mode", "decode_query_len": 1, "lora_capture_cases": [4],
    }  # fmt: skip
    assert manager.twin_descs == {}
