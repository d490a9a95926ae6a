"""The ubatch runner beyond the native one, without a model: what stages are given and told, what is staged, how runs end."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

import torch
from afd_backports.vllm_v026_mrv2_dbo import ubatch_runner
from afd_backports.vllm_v026_mrv2_dbo.ubatch_runner import StageLeftBehindError, StageSupport, UBatchLifecycle
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.worker.ubatch_utils import UBatchSlice

pytestmark = pytest.mark.vllm

SLICES = [UBatchSlice(slice(0, 2), slice(0, 8)), UBatchSlice(slice(2, 5), slice(8, 16))]


def support(num_ubatches: int = 2) -> StageSupport:
    runner = StageSupport()
    runner.vllm_config = SimpleNamespace(parallel_config=SimpleNamespace(num_ubatches=num_ubatches))  # type: ignore[assignment]
    runner.attn_groups = ["groups"]  # type: ignore[list-item]
    return runner


# ---- what a stage is given ------------------------------------------------------------------------------------


def test_each_of_two_ubatches_has_metadata_builders_of_its_own() -> None:
    runner, host = support(), object()
    with mock.patch.object(ubatch_runner, "ubatch_attn_groups", lambda groups, index: (*groups, index)):
        runner.set_host(host)  # type: ignore[arg-type]
    assert runner.host is host
    assert runner.ubatch_attn_groups == [("groups", 0), ("groups", 1)]


@pytest.mark.parametrize("number", [1, 3])
def test_another_number_of_ubatches_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=rf"^parallel_config\.num_ubatches is {number}; this runner has exactly 2 stages$"):  # fmt: skip
        support(number).set_host(object())  # type: ignore[arg-type]


def test_the_platform_is_told_of_the_stage_and_gives_tensors_that_stay_the_stage_s_own() -> None:
    shared, other = torch.arange(8), object()
    platform = mock.Mock()
    platform.set_additional_forward_context.return_value = {"mask": shared[:3], "other": other, "theirs": 1}
    runner, stages = support(), list[Any]()
    runner.host = mock.Mock()
    runner.host.metadata.additional_kwargs = lambda stage: stages.append(stage) or {"own": 2, "theirs": 3}
    across = torch.tensor([8, 8])
    context: Any = SimpleNamespace(
        dp_metadata=SimpleNamespace(num_tokens_across_dp_cpu=across), attn_metadata={"layer": 1}
    )
    with mock.patch.object(ubatch_runner, "current_platform", platform):
        kwargs = runner.stage_kwargs(1, SLICES, 16, context)
    platform.set_additional_forward_context.assert_called_once_with(
        attn_metadata=context.attn_metadata, vllm_config=runner.vllm_config, dp_metadata=context.dp_metadata, num_tokens=8,
        num_tokens_across_dp=across, cudagraph_runtime_mode=CUDAGraphMode.NONE, batch_descriptor=None, ubatch_slices=SLICES,
    )  # fmt: skip
    shared.zero_()  # by the next stage
    assert kwargs.pop("mask").tolist() == [0, 1, 2]
    assert kwargs == {"other": other, "own": 2, "theirs": 3}  # the plugin has the last word
    assert [(stage.num_tokens, stage.dp_metadata) for stage in stages] == [(8, context.dp_metadata)]


def test_the_ffn_side_is_told_of_the_stages_that_have_tokens_of_ranks() -> None:
    runner = support()
    runner.host = mock.Mock()
    contexts = [SimpleNamespace(dp_metadata=metadata) for metadata in ("first", None, "third")]
    runner.announce(contexts)  # type: ignore[arg-type]
    runner.host.control.send.assert_called_once_with({0: "first", 2: "third"})


# ---- what is staged -------------------------------------------------------------------------------------------


def staging() -> tuple[StageSupport, Any]:
    """Buffers that hold another step's values; a state of two and three requests."""
    runner = support()
    runner.ubatch_seq_lens = [torch.full((6,), 9) for _ in SLICES]
    runner.ubatch_query_start_loc = [torch.full((7,), 9) for _ in SLICES]
    return runner, SimpleNamespace(slices=SLICES)


def test_what_is_staged_for_a_replay_is_taken_once_and_has_no_rows_of_another_step() -> None:
    runner, state = staging()
    runner.stage(state, CUDAGraphMode.FULL)
    assert [kept.tolist() for kept in runner.ubatch_seq_lens] == [[9, 9, 0, 0, 0, 0], [9, 9, 9, 0, 0, 0]]
    assert [kept.tolist() for kept in runner.ubatch_query_start_loc] == [[9, 9, 9, 8, 8, 8, 8], [9, 9, 9, 9, 8, 8, 8]]
    assert runner.take_staged() is state
    assert runner.take_staged() is None


def test_an_eager_step_forgets_what_was_staged_and_touches_nothing() -> None:
    runner, state = staging()
    runner.staged = state
    runner.stage(state, CUDAGraphMode.NONE)
    assert runner.staged is None
    assert all((kept == 9).all() for kept in (*runner.ubatch_seq_lens, *runner.ubatch_query_start_loc))


@pytest.mark.parametrize("name", ["ubatch_seq_lens", "ubatch_query_start_loc"])
def test_each_stage_has_buffers(name: str) -> None:
    runner, state = staging()
    del vars(runner)[name][1]
    with pytest.raises(ValueError, match="shorter"):
        runner.stage(state, CUDAGraphMode.FULL)


# ---- runs and their ends --------------------------------------------------------------------------------------


@contextlib.contextmanager
def waiting() -> Iterator[threading.Thread]:
    """A thread that is in a call for as long as the block."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        yield thread
    finally:
        over.set()
        thread.join()


def done() -> threading.Thread:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    return thread


def test_there_is_no_run_beside_a_stage_that_was_left_behind() -> None:
    runner = support()
    with waiting() as thread:
        runner.left_behind = [done(), thread]
        with pytest.raises(StageLeftBehindError, match=r"in a call that has not returned.*: shut this runner down$"):
            runner.new_run()
    run = runner.new_run()  # it has returned
    assert not run.alone
    run.end(0)
    assert run.alone  # of two


def test_an_ended_run_is_cancelled_its_threads_are_joined_and_what_was_held_for_them_is_let_go() -> None:
    runner, log = support(), list[str]()
    run, stack = ubatch_runner.StageRun(2), contextlib.ExitStack()
    stack.callback(log.append, "let go")
    parked = threading.Event()

    def stage() -> None:
        parked.wait()
        log.append("stage ends")

    run.watch(threading.Barrier(3), [parked])
    runner.stage_run, runner._pending_finish = run, lambda: None
    thread, never_started = threading.Thread(target=stage), threading.Thread(target=stage)
    thread.start()
    runner.end_run([thread, never_started], stack)
    assert log == ["stage ends", "let go"]
    assert run.cancelled
    assert (runner.stage_run, runner._pending_finish, list(runner.left_behind)) == (None, None, [])
    runner.end_run([], contextlib.ExitStack())  # without a run there is nothing to cancel


def test_a_stage_that_does_not_come_back_is_left_behind_and_known() -> None:
    runner, log = support(), list[str]()
    stack = contextlib.ExitStack()
    stack.callback(log.append, "let go")
    with waiting() as thread, mock.patch.object(ubatch_runner, "PATIENCE", 0.01):
        runner.end_run([done(), thread], stack)
        assert list(runner.left_behind) == [thread]
    assert log == ["let go"]


def test_what_was_held_is_let_go_when_a_run_cannot_be_cancelled() -> None:
    runner, log = support(), list[str]()
    runner.stage_run = mock.Mock(cancel=mock.Mock(side_effect=ValueError("mine")))
    stack = contextlib.ExitStack()
    stack.callback(log.append, "let go")
    with pytest.raises(ValueError, match="mine"):
        runner.end_run([], stack)
    assert log == ["let go"]
    assert runner.stage_run is None


def test_a_closed_runner_has_stopped_and_keeps_nothing() -> None:
    with pytest.raises(NotImplementedError):
        support().abort()
    for error in (None, ValueError("mine")):
        runner = support()
        with mock.patch.object(StageSupport, "abort", side_effect=error) as abort, pytest.raises(ValueError, match="mine") if error else contextlib.nullcontext():  # fmt: skip
            runner.close()
        assert abort.call_count == 1
        assert vars(runner) == {}


def test_messages_of_upstream_s_code_come_from_upstream_s_logger() -> None:
    assert ubatch_runner.logger.name == "vllm.v1.worker.gpu.ubatch_utils"


# ---- compiled models ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [None, ValueError("mine")])
def test_classes_of_a_compiled_model_have_their_own_code_after_a_run(error: Exception | None) -> None:
    class Wrapper(torch.nn.Module):
        """In the place of vLLM's: what is compiled derives from it."""

    class Layer(Wrapper):
        """Compiled."""

        def forward(self) -> str:
            return "own"

    class Bound(Wrapper):
        """Has no code of its own."""

        forward = partial(str, "bound")

    class Plain(torch.nn.Module):
        """Not compiled."""

        def forward(self) -> str:
            return "own"

    def compiled(self: object) -> str:
        return "compiled"

    runner, model = support(), torch.nn.Sequential(Layer(), Bound(), Layer(), Plain())
    with mock.patch.object(ubatch_runner, "TorchCompileWithNoGuardsWrapper", Wrapper), mock.patch.object(model, "modules", wraps=model.modules) as asked:  # fmt: skip
        for _ in range(2):
            with (
                pytest.raises(ValueError, match="mine") if error else contextlib.nullcontext(),
                runner.code_kept(model),
            ):
                Layer.forward.__code__ = Plain.forward.__code__ = compiled.__code__
                if error:
                    raise error
            assert Layer().forward() == "own"
            assert Plain().forward() == "compiled"  # nobody's business
        assert asked.call_count == 1


def test_a_model_may_be_a_function() -> None:
    with support().code_kept(lambda: None):
        pass


# ---- in a model runner ----------------------------------------------------------------------------------------


class Native:
    """In the place of vLLM's model runner; all that happens is in `log`."""

    def __init__(self, use_ubatching: bool = True) -> None:
        self.log: list[Any] = []
        self.parallel_config = SimpleNamespace(use_ubatching=use_ubatching)
        self.vllm_config, self.device, self.model_state, self.max_num_reqs = "config", "device", "state", 8
        self.cudagraph_manager = mock.Mock()
        self.fails = False

    def initialize_kv_cache(self, kv_cache_config: Any) -> str:
        self.log.append(("native", kv_cache_config))
        self.attn_groups, self.kv_cache_config = "groups", kv_cache_config
        return "natively"

    def execute_model(self, **arguments: Any) -> str:
        self.log.append(arguments)
        if self.fails:
            raise ValueError("mine")
        return "output"

    def shutdown(self) -> None:
        self.log.append("native")


class Runner(UBatchLifecycle, Native):  # type: ignore[misc]  # the stand-in says less than vLLM's
    """With marks around what belongs together."""

    def marked(self, name: str) -> contextlib.AbstractContextManager[None]:
        @contextlib.contextmanager
        def block() -> Iterator[None]:
            self.log.append(f"{name} begins")
            yield
            self.log.append(f"{name} ends")

        return block()

    def graph_manager_scope(self) -> contextlib.AbstractContextManager[None]:
        return self.marked("manager")

    def make_afd_host(self) -> Any:
        return "host"

    def twin_graphs(self, cudagraph_manager: Any) -> Any:
        return cudagraph_manager


def test_a_runner_with_ubatches_is_set_up_for_them() -> None:
    runner = Runner()

    def build(*arguments: Any) -> str:
        runner.log.append(arguments)
        return "ubatch runner"

    with (
        mock.patch.object(ubatch_runner, "ubatch_metadata_builders", return_value=runner.marked("builders")),
        mock.patch.object(ubatch_runner, "maybe_build_ubatch_runner", build),
    ):
        runner.initialize_kv_cache("caches")  # type: ignore[arg-type]
    assert runner.log == [
        "builders begins", "manager begins", ("native", "caches"), "manager ends", "builders ends",
        ("config", "device", "state", "groups", "caches", 8, "host"),
    ]  # fmt: skip
    assert runner.ubatch_runner == "ubatch runner"
    runner.cudagraph_manager.attach.assert_called_once_with("ubatch runner")


def test_a_runner_without_ubatches_is_set_up_natively() -> None:
    runner = Runner(use_ubatching=False)
    with mock.patch.object(ubatch_runner, "maybe_build_ubatch_runner") as build:
        assert runner.initialize_kv_cache("caches") == "natively"  # type: ignore[arg-type, func-returns-value]
    assert runner.log == [("native", "caches")]
    assert not build.called
    assert runner.ubatch_runner is None
    assert not runner.cudagraph_manager.attach.called


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("staged", [None, mock.Mock])
def test_what_a_step_has_staged_is_gone_when_it_ends(staged: Any, fails: bool) -> None:
    runner = Runner()
    runner.ubatch_runner, runner.fails = staged and staged(), fails
    with pytest.raises(ValueError, match="mine") if fails else contextlib.nullcontext():
        assert runner.execute_model("scheduled") == "output"  # type: ignore[arg-type, comparison-overlap]
    if staged:
        runner.ubatch_runner.take_staged.assert_called_once_with()  # type: ignore[union-attr]
    # What vLLM leaves out is what it means by that.
    assert runner.log == [
        {
            "scheduler_output": "scheduled", "intermediate_tensors": None, "dummy_run": False, "skip_attn_for_dummy_run": False,
            "is_profile": False,
        }
    ]  # fmt: skip


def test_all_that_vllm_says_of_a_step_is_passed_on() -> None:
    runner, said = Runner(), {"intermediate_tensors": "tensors", "dummy_run": True, "skip_attn_for_dummy_run": True, "is_profile": True}  # fmt: skip
    runner.execute_model("scheduled", **said)  # type: ignore[arg-type]
    assert runner.log == [{"scheduler_output": "scheduled", **said}]


def test_a_shutdown_lets_go_of_graphs_and_stages_before_the_native_one() -> None:
    alive: list[bool] = []

    class Stages:
        """Can be watched."""

        def close(self) -> None:
            runner.log.append("stages")

    class Ending(Runner):
        """Looks at who is left."""

        def twin_graphs(self, cudagraph_manager: Any) -> Any:
            assert self.ubatch_runner is None
            return mock.Mock(release=lambda: self.log.append("graphs"))

    class Looking(Native):
        """The native runner collects what is unreachable now."""

        def shutdown(self) -> None:
            alive.append(stages() is not None)
            super().shutdown()

    runner: Any = type("Last", (Ending, Looking), {})()
    runner.ubatch_runner = Stages()
    stages = weakref.ref(runner.ubatch_runner)
    runner.shutdown()
    assert runner.log == ["graphs", "stages", "native"]
    assert alive == [False]
    runner.shutdown()  # there is nothing of ours any more
    assert runner.log[3:] == ["native"]


@pytest.mark.parametrize("failing", ["graphs", "stages"])
def test_a_shutdown_goes_on_when_a_part_fails(failing: str) -> None:
    runner, done = Runner(), list[str]()

    def part(name: str) -> None:
        done.append(name)
        if name == failing:
            raise ValueError("mine")

    runner.cudagraph_manager.release = lambda: part("graphs")
    runner.ubatch_runner = mock.Mock(close=lambda: part("stages"))
    with pytest.raises(ValueError, match="mine"):
        runner.shutdown()
    assert (done, runner.log) == (["graphs", "stages"], ["native"])
