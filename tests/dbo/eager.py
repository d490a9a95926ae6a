"""Whole steps with the generated ubatch runner, in the processes of DP ranks: played, disturbed, ended."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import torch

from tests.sim.config import MOE, Dbo, make_config
from tests.sim.ranks import Rank
from tests.sim.runner import join_groups, make_runner
from tests.sim.scenario import Outcome, Scenario, play
from tests.sim.scheduler import Logits, LogitSpy, MiniScheduler
from tests.sim.trace import TRACE, Mark, hooked

SOON = 1.0
"""Seconds within which the caller has the exception."""


DBO = Dbo()


class OwnError(Exception):
    """What the tests let fail; it knows when."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.since = time.monotonic()


def play_off_and_on(rank: Rank, scenarios: Mapping[str, Scenario]) -> dict[str, tuple[Outcome, Outcome]]:
    """Each scenario with vLLM's own runner and single batches, and with the generated one and ubatches."""
    from tests.dbo.runners import DboRunner

    return {
        name: (play(rank, dataclasses.replace(scenario, dbo=None, races=False)), play(rank, scenario, DboRunner))
        for name, scenario in scenarios.items()
    }


def play_on(rank: Rank, scenario: Scenario) -> Outcome:
    """With the generated runner, whatever the configuration says of ubatches."""
    from tests.dbo.runners import DboRunner

    return play(rank, scenario, DboRunner)


class Session:
    """A generated runner on this rank, with requests of which none leaves its first block.

    Attributes:
        runner: it.
        scheduler: its requests.
        spy: the logits.
    """

    def __init__(
        self, rank: Rank, kind: type | None = None, dbo: Dbo | None = DBO, capture: bool | None = None,
        model: Mapping[str, object] = MOE, **more: Any,
    ) -> None:  # fmt: skip
        from tests.dbo.runners import DboRunner

        config = make_config(model, dbo=dbo, dp=(rank.index, rank.size), block_size=64, **more)
        join_groups(config, rank=rank.index, size=rank.size, rendezvous=rank.folder / "groups")
        self.rank, self.named = rank, 0
        self.runner = make_runner(config, kind or DboRunner, blocks=256, capture=capture)
        self.scheduler, self.spy = MiniScheduler(self.runner), LogitSpy(self.runner)
        TRACE.clear()

    def add(self) -> list[str]:
        """Three requests: decode steps are split in one and two."""
        names = []
        for at in range(3):
            names.append(f"{self.named}:{at}")
            self.scheduler.add(names[-1], [3 + at + self.rank.index, 5, 7 + 2 * at])
        self.named += 1
        return names

    def drop(self) -> None:
        """Finish all requests."""
        for name in list(self.scheduler.requests):
            self.scheduler.finish(name)

    def steps(self, count: int) -> Logits:
        """Run some steps; the logits of the last one."""
        for _ in range(count):
            self.spy.seen.clear()
            self.scheduler.step()
        return dict(self.spy.seen)


def clean() -> None:
    """Nothing of a step is left: no thread, no context, no registration.

    Raises:
        AssertionError: something is.
    """
    from vllm import forward_context
    from vllm.v1.worker import ubatching

    assert threading.active_count() == 1, threading.enumerate()
    assert forward_context._forward_context is None
    assert ubatching._THREAD_ID_TO_CONTEXT == {}
    assert set(ubatching._CURRENT_CONTEXTS) <= {None}


# ---- faults ---------------------------------------------------------------------------------------------------

Fault = Callable[[Session], contextlib.AbstractContextManager[None]]


def at_mark(wanted: Mark) -> Fault:
    """The step of an exchange fails, before it is done."""

    def fault(session: Session) -> contextlib.AbstractContextManager[None]:
        def hook(mark: Mark) -> None:
            if mark == wanted:
                raise OwnError(str(wanted))

        return hooked(hook)

    return fault


def after_mark(wanted: Mark) -> Fault:
    """The handoff behind a step of an exchange is left by an error, as when what it waits for fails."""

    @contextlib.contextmanager
    def fault(session: Session) -> Iterator[None]:
        from afd_backports.vllm_v026_mrv2_dbo.ubatching import AFDUBatchContext

        seen: set[int] = set()
        native = AFDUBatchContext._cpu_yield

        def note(mark: Mark) -> None:
            if mark == wanted:
                seen.add(threading.get_ident())

        def handoff(self: Any) -> None:
            native(self)
            if threading.get_ident() in seen:
                seen.clear()
                raise OwnError(f"behind {wanted}")

        AFDUBatchContext._cpu_yield = handoff
        try:
            with hooked(note):
                yield
        finally:
            AFDUBatchContext._cpu_yield = native

    return fault


@contextlib.contextmanager
def replaced(owner: Any, name: str, new: Any) -> Iterator[None]:
    """An attribute is something else in the block."""
    before = vars(owner)[name]
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, before)


def before_the_barrier(stage: int) -> Fault:
    """A stage does not come to the start."""

    def fault(session: Session) -> contextlib.AbstractContextManager[None]:
        started: list[int] = []

        def set_device_index(*args: Any) -> None:
            if threading.current_thread() is not threading.main_thread():
                started.append(1)
                if len(started) == stage + 1:
                    raise OwnError(f"stage {stage} before the barrier")

        return replaced(torch.accelerator, "set_device_index", set_device_index)

    return fault


def no_thread(stage: int) -> Fault:
    """There is no thread for a stage."""

    def fault(session: Session) -> contextlib.AbstractContextManager[None]:
        native, started = threading.Thread.start, []

        def start(self: threading.Thread) -> None:
            started.append(1)
            if len(started) == stage + 1:
                raise OwnError(f"no thread for stage {stage}")
            native(self)

        return replaced(threading.Thread, "start", start)

    return fault


def in_module(module: str, name: str, call: int) -> Fault:
    """A function that a generated module uses fails at one of its calls."""

    def fault(session: Session) -> contextlib.AbstractContextManager[None]:
        import importlib

        owner = importlib.import_module(f"afd_backports.vllm_v026_mrv2_dbo.{module}")
        native, calls = vars(owner)[name], []

        def fails(*args: Any, **kwargs: Any) -> Any:
            calls.append(1)
            if len(calls) == call:
                raise OwnError(f"call {call} of {name}")
            return native(*args, **kwargs)

        return replaced(owner, name, fails)

    return fault


def marks() -> list[Mark]:
    """All steps of the exchanges of a split step, in the tiny model's two layers."""
    return [Mark(u, layer, step) for u in (0, 1) for layer in (0, 1) for step in ("compute", "dispatch", "expert", "combine")]


def faults() -> dict[str, Fault]:
    """One fault for every point of a split step at which something may fail."""
    found = {f"before {mark}": at_mark(mark) for mark in marks()}
    found |= {f"behind {mark}": after_mark(mark) for mark in marks() if mark.step in ("compute", "expert")}
    found |= {f"before the barrier, {stage}": before_the_barrier(stage) for stage in (0, 1)}
    found |= {f"no thread {stage}": no_thread(stage) for stage in (0, 1)}
    for name, calls in (("slice_model_inputs", 2), ("_slice_input_batch", 2), ("create_forward_context", 2), ("merge_ubatch_outputs", 1)):
        found |= {f"{name}, call {call}": in_module("ubatch_runner", name, call) for call in range(1, calls + 1)}
    found["make_ubatch_contexts"] = in_module("ubatch_runner", "make_ubatch_contexts", 1)
    return found


@dataclasses.dataclass
class Disturbed:
    """What came of a fault.

    Attributes:
        error: what the caller got.
        soon: whether within a second after it was raised.
        retried: the logits of the same step, run again.
        ubatches: those of that step.
    """

    error: str
    soon: bool
    retried: Logits
    ubatches: set[int]


def disturb(rank: Rank, names: list[str]) -> dict[str, Disturbed]:
    """A prefill step and a decode step; then a step that fails, and is run again."""
    session, outcomes = Session(rank), {}
    for name in names:
        session.add()
        session.steps(2)
        kind, took = "nothing", 0.0
        with faults()[name](session):
            try:
                session.scheduler.step()
            except OwnError as error:
                kind, took = repr(error), time.monotonic() - error.since
        clean()
        TRACE.clear()
        retried = session.steps(1)
        outcomes[name] = Disturbed(
            kind, took < SOON, {(key[0].partition(":")[2], key[1]): logits for key, logits in retried.items()}, {m.ubatch for m in TRACE.marks}
        )
        clean()
        session.drop()
    return outcomes


def undisturbed(rank: Rank) -> Logits:
    """The logits of that step in single batches."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    session = Session(rank, GPUModelRunner, None)
    session.add()
    return {(key[0].partition(":")[2], key[1]): logits for key, logits in session.steps(3).items()}


def fail_in_prefill(rank: Rank, fault: str) -> tuple[str, Logits]:
    """The first step of requests fails; they are given up, and others take their place."""
    session = Session(rank)
    session.add()
    with faults()[fault](session):
        try:
            session.scheduler.step()
        except OwnError as error:
            kind = type(error).__name__
    clean()
    session.drop()
    session.add()
    return kind, {(key[0].partition(":")[2], key[1]): logits for key, logits in session.steps(3).items()}


# ---- aborts and ends ------------------------------------------------------------------------------------------


def abort(rank: Rank) -> dict[str, Any]:
    """A run that has begun and is not finished is aborted: the model does not run; the next step does."""
    from afd_backports.vllm_v026_mrv2_dbo import ubatch_runner as generated

    session = Session(rank)
    session.add()
    session.steps(1)
    ubatch_runner, seen = session.runner.ubatch_runner, {}
    native = ubatch_runner.run
    logged: list[Any] = []

    def run(model: Any, model_inputs: Any, state: Any) -> Any:
        ubatch_runner.begin_capturable_run(model, model_inputs, state)
        seen["threads"] = threading.active_count()
        TRACE.clear()
        with mock.patch.object(generated, "logger") as logger:
            ubatch_runner.abort()
            logged.extend(logger.mock_calls)
        seen["left"], seen["marks"] = threading.active_count(), len(TRACE.marks)
        ubatch_runner.abort()  # nothing to do
        return native(model, model_inputs, state)

    ubatch_runner.run = run
    seen["logits"] = len(session.steps(1))
    ubatch_runner.close()
    ubatch_runner.close()
    seen["kept"], seen["logged"] = sorted(vars(ubatch_runner)), len(logged)
    return seen


def close_begun(rank: Rank) -> tuple[int, int]:
    """Closed while stages wait for their first turn."""
    session = Session(rank)
    session.add()
    session.steps(1)
    ubatch_runner = session.runner.ubatch_runner

    def run(model: Any, model_inputs: Any, state: Any) -> Any:
        ubatch_runner.begin_capturable_run(model, model_inputs, state)
        raise OwnError

    ubatch_runner.run = run
    with contextlib.suppress(OwnError):
        session.scheduler.step()
    before = threading.active_count()
    session.runner.shutdown()
    return before, threading.active_count()


def end(rank: Rank, how: str) -> dict[str, Any]:
    """Weak references to all that holds the model, after split steps, when the native shutdown returns."""
    from afd_backports.vllm_v026_mrv2_dbo.runner import UBatchExecution
    from afd_backports.vllm_v026_mrv2_dbo.ubatch_runner import UBatchLifecycle
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    seen: dict[str, Any] = {}

    class Watched(GPUModelRunner):
        def shutdown(self) -> None:
            super().shutdown()
            seen["alive"] = sorted(name for name, reference in references.items() if reference() is not None)
            seen["ubatch_runner"] = self.ubatch_runner

    class Runner(UBatchLifecycle, UBatchExecution, Watched):
        pass

    session = Session(rank, Runner)
    session.add()
    session.steps(3)
    runner = session.runner
    references = {name: weakref.ref(parameter) for name, parameter in runner.model.named_parameters()}
    references["model"], references["ubatch runner"] = weakref.ref(runner.model), weakref.ref(runner.ubatch_runner)
    references["model state"], references["metadata builder"] = (
        weakref.ref(runner.model_state),
        weakref.ref(runner.attn_groups[0][0].metadata_builders[1]),
    )
    seen["watched"] = len(references)
    if how == "after a failure":
        with at_mark(Mark(1, 1, "dispatch"))(session), contextlib.suppress(OwnError):
            session.scheduler.step()
    begin = time.monotonic()
    runner.shutdown()
    seen["soon"] = time.monotonic() - begin < 10 * SOON
    clean()
    return seen


# ---- state of the stages --------------------------------------------------------------------------------------


def look(rank: Rank) -> list[dict[str, Any]]:
    """What the forward context of each stage holds in a prefill step, and what the host was told."""
    from vllm.forward_context import ForwardContext, get_forward_context
    from vllm.platforms.interface import Platform

    from tests.dbo.runners import DboRunner

    shared = torch.zeros(64, dtype=torch.bool)
    seen: list[dict[str, Any]] = []
    names: list[list[str]] = []
    sent: list[dict[int, list[int]]] = []
    built: list[tuple[int, int]] = []

    class Host:
        """Takes the plugin's place."""

        def __init__(self) -> None:
            self.metadata = self.control = self
            self.is_warmup = self.is_graph_capturing = self.is_graph_replaying = False

        def complete(self, batch: Any, ubatch: Any, part: Any, for_capture: bool) -> Any:
            return dataclasses.replace(ubatch, req_ids=[f"{name}!" for name in ubatch.req_ids])

        @contextlib.contextmanager
        def building(self, part: Any) -> Iterator[None]:
            before = len(names)
            yield
            built.append((part.num_tokens, len(names) - before))

        def additional_kwargs(self, stage: Any) -> Mapping[str, Any]:
            return {"afd": (stage.index, stage.num_stages, stage.num_tokens, stage.slice.token_slice)}

        def send(self, dp_metadata_list: Mapping[int, Any]) -> None:
            sent.append({i: m.num_tokens_across_dp_cpu.tolist() for i, m in dp_metadata_list.items()})

    class Runner(DboRunner):
        def make_afd_host(self) -> Any:
            return Host()

    def additional(num_tokens: int, **kwargs: Any) -> dict[str, Any]:
        mask = shared[:num_tokens]  # a view of one persistent tensor, as vllm-ascend's mask is
        mask[:] = True
        shared[num_tokens:] = False
        return {"mask": mask, "tokens": num_tokens, "across": kwargs["dp_metadata"].num_tokens_across_dp_cpu.tolist()}

    def hook(mark: Mark) -> None:
        if mark.layer == 0 and mark.step == "compute":
            context = get_forward_context()
            layer = next(iter(context.attn_metadata))
            metadata = context.attn_metadata[layer]
            seen.append(
                {
                    "ubatch": mark.ubatch,
                    "foreign": sorted(set(vars(context)) - {f.name for f in dataclasses.fields(ForwardContext)}),
                    "kwargs": dict(context.additional_kwargs),
                    "own mask": context.additional_kwargs["mask"].untyped_storage().data_ptr() != shared.untyped_storage().data_ptr(),
                    "context": id(context),
                    "slots": context.slot_mapping[layer].tolist(),
                    "blocks": metadata.block_table[:, 0].tolist(),
                    "tokens": metadata.num_actual_tokens,
                    "lengths": metadata.seq_lens.tolist(),
                    "across": context.dp_metadata.num_tokens_across_dp_cpu.tolist(),
                }
            )

    session = Session(rank, Runner)
    session.add()
    state = session.runner.model_state
    native = state.prepare_attn

    def prepare_attn(batch: Any, *args: Any, **kwargs: Any) -> Any:
        names.append([name.partition(":")[2] for name in batch.req_ids])
        return native(batch, *args, **kwargs)

    state.prepare_attn = prepare_attn
    with replaced(Platform, "set_additional_forward_context", staticmethod(additional)), hooked(hook):
        session.scheduler.step()
    return [*seen, {"sent": sent, "requests": names, "built": built}]
