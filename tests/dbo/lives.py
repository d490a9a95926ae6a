"""A runner's beginning and its end with failures at every point, and what a failure on one rank alone does to the other."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from tests.dbo.eager import SOON, clean
from tests.dbo.matrix import GRAPHS, Capture, Decode, Problems, Subject, difference, fail, natives, undisturbed
from tests.dbo.points import Point, failing, instrument, record
from tests.sim.bugs import replaced
from tests.sim.ranks import Rank
from tests.sim.runner import side_group
from tests.sim.trace import hooked

# ---- beginnings -----------------------------------------------------------------------------------------------


def points_of_beginnings(rank: Rank) -> list[Point]:
    """The points of making a runner with graphs."""
    instrument()
    Subject(rank, GRAPHS, capture=False)  # what happens once in a process has happened
    return record(lambda: Subject(rank, GRAPHS, capture=False))


def begin(rank: Rank, points: Sequence[Point]) -> Problems:
    """Making a runner fails at each point: nothing is substituted any more, its model is gone; the next one works."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    models: list[weakref.ref[Any]] = []
    load = GPUModelRunner.load_model

    def load_model(self: Any, *args: Any, **kwargs: Any) -> None:
        load(self, *args, **kwargs)
        models.append(weakref.ref(self.model))

    before, problems, expected = natives(), {}, undisturbed(rank)
    GPUModelRunner.load_model = load_model
    for point in points:
        found = list(fail(lambda: Subject(rank, GRAPHS, capture=False), failing(point)))
        clean()
        found += [f"{name} is not native" for name, value in natives().items() if value is not before[name]]
        gc.collect()
        if any(model() is not None for model in models):
            found.append("the model is alive")
        models.clear()
        if found:
            problems[str(point)] = found
    GPUModelRunner.load_model = load
    found = list(difference(Decode(Subject(rank, GRAPHS).session)(), expected))
    return problems | ({"in the end": found} if found else {})


def validate(rank: Rank) -> Problems:
    """vLLM's validation, relaxed, fails at each point: it is vLLM's own afterwards, and the configuration is as it was."""
    instrument()
    from afd_backports.vllm_v026_mrv2_dbo import validation

    from tests.dbo import configurations

    with validation.relaxed_validation(configurations.parse, "cpu"):
        config = configurations.make(enable_dbo=True, **configurations.AFD)

    def again() -> None:
        with validation.relaxed_validation(configurations.parse, "cpu"):
            config.__post_init__()

    def state() -> tuple[object, ...]:
        parallel = config.parallel_config
        return (*natives().values(), parallel.enable_dbo, parallel.ubatch_size)

    before, problems = state(), {}
    points = record(again)
    for point in points:
        found = list(fail(again, failing(point)))
        if state() != before:
            found.append(f"{state()} is not {before}")
        if found:
            problems[str(point)] = found
    again()
    return problems if len(points) > 5 else {"in all": [f"{len(points)} points"]}


# ---- ends -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def watched(runner: Any) -> Iterator[list[str]]:
    """What is alive of a runner's model, and of what holds it, when the native shutdown in the block returns."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    references: dict[str, weakref.ref[Any]] = {
        name: weakref.ref(value) for name, value in runner.model.named_parameters()
    }
    references["model"], references["ubatch runner"] = weakref.ref(runner.model), weakref.ref(runner.ubatch_runner)
    assert len(references) > 20
    alive = ["no shutdown"]
    native = GPUModelRunner.shutdown

    def shutdown(self: Any) -> None:
        native(self)
        alive[:] = sorted(name for name, reference in references.items() if reference() is not None)

    GPUModelRunner.shutdown = shutdown
    try:
        yield alive
    finally:
        GPUModelRunner.shutdown = native


def shut_down(subject: Subject) -> Iterator[str]:
    """What is wrong with the end of a runner."""
    runner = subject.runner
    vars(runner.model).pop("forward")  # the test's own
    begin = time.monotonic()
    with watched(runner) as alive:
        runner.shutdown()
    if alive:
        yield f"alive after the shutdown: {alive}"
    if time.monotonic() - begin > 10 * SOON:
        yield "the shutdown took long"
    if runner.ubatch_runner is not None:
        yield "there still is a ubatch runner"
    clean()


def end(rank: Rank, points: dict[str, list[Point]]) -> Problems:
    """A step fails, and the runner is shut down right after."""
    problems = {}
    for kind, chosen in points.items():
        for point in chosen:
            subject = Subject(rank, None if kind == "eager" else GRAPHS, capture=False)
            if kind == "capture":
                step: Callable[[], object] = Capture(subject).capture
            else:
                if kind == "replay":
                    subject.runner.capture_model()
                step = Decode(subject.session)
            found = list(fail(step, failing(point)))
            del step  # it holds the model
            found += shut_down(subject)
            if found:
                problems[f"{kind}: {point}"] = found
    return problems


def end_well(rank: Rank) -> list[str]:
    """Steps are run, and the runner is shut down, with graphs and without."""
    found: list[str] = []
    for graphs in (None, GRAPHS):
        subject = Subject(rank, graphs)
        subject.session.add()
        subject.session.steps(3)
        found += shut_down(subject)
    return found


# ---- one rank alone -------------------------------------------------------------------------------------------

PATIENCE = 5.0
"""Seconds after which a collective gives up."""


def set_patience(seconds: float) -> None:
    """Let collectives of the DP group give up earlier."""
    from vllm.distributed.parallel_state import get_dp_group

    group = get_dp_group()
    for one in (group.cpu_group, group.device_group):
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=seconds), one)


def alone(rank: Rank, kind: str, point: Point) -> list[str]:
    """A step fails on rank 0 alone. That one lives on; the other gets an error when its collective gives up. Both can end."""
    instrument()
    side = side_group(rank.folder / "side", rank=rank.index, size=rank.size)
    subject = Subject(rank, GRAPHS if kind == "replay" else None)
    step = Decode(subject.session)
    set_patience(PATIENCE)
    if rank.index == 0:
        found = list(fail(step, failing(point)))
    else:
        found = left_alone(step, PATIENCE + 10 * SOON)
    found += subject.left()
    side.barrier().wait()  # the groups of both are there until now
    found += shut_down(subject)
    side.barrier().wait()
    return found


def left_alone(step: Callable[[], object], most: float) -> list[str]:
    """A step whose other rank is missing ends by an error of its own, in a time."""
    begin = time.monotonic()
    try:
        step()
    except RuntimeError:
        took = time.monotonic() - begin
        return [] if took < most else [f"it took {took:.1f} s"]
    return ["no error"]


def bereaved(rank: Rank, point: Point, note: Path) -> None:
    """Rank 0 dies at a point. The other gets an error at once, far before its collective gives up, and can end."""
    instrument()
    subject = Subject(rank)
    step = Decode(subject.session)
    if rank.index == 0:
        with failing(point):
            try:
                step()
            finally:
                os._exit(1)
    found = [*left_alone(step, 10 * SOON), *subject.left(), *shut_down(subject)]
    note.write_text(repr(found), encoding="utf-8")


def interrupted(rank: Rank) -> list[str]:
    """Rank 0 does not take part in a step. The other waits in a collective, and is interrupted long before that gives up.

    It gets the interrupt and can end, though its stage is in the collective still. That stops when the collective returns.
    """
    from afd_backports.vllm_v026_mrv2_dbo import ubatch_runner as generated

    side = side_group(rank.folder / "side", rank=rank.index, size=rank.size)
    subject = Subject(rank)
    step = Decode(subject.session)
    set_patience(2 * PATIENCE)
    found: list[str] = []
    if rank.index == 0:
        with (
            contextlib.suppress(InterruptedError),
            replaced(type(subject.runner.ubatch_runner), "run", raise_interrupted),
        ):
            step()  # the agreement of the ranks, and nothing more
    else:
        signal.signal(signal.SIGALRM, raise_interrupted)
        generated.PATIENCE = 0.2
        with hooked(lambda mark: signal.setitimer(signal.ITIMER_REAL, 0.2)):  # the stage has begun
            try:
                step()
            except InterruptedError:
                pass
            else:
                found.append("no interrupt")
        stuck = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
        if len(stuck) != 1 or not stuck[0].daemon:
            found.append(f"one stage is in the collective, and does not keep the process alive: {stuck}")
        with contextlib.suppress(generated.StageLeftBehindError):
            subject.runner.ubatch_runner.new_run()
            found.append("the stages of another run would begin")
        subject.runner.shutdown()
        if threading.active_count() == 1:
            found.append("the shutdown took as long as the collective")
        # Not joined: Python 3.11 takes a thread for stopped whose join was interrupted.
        while threading.active_count() > 1:
            time.sleep(0.01)
        clean()
        gc.collect()
        found += [f"alive: {canary}" for canary in subject.canaries.alive]
    side.barrier().wait()  # the groups of both are there until now
    return found


def raise_interrupted(*args: Any, **kwargs: Any) -> None:
    """As a signal handler."""
    raise InterruptedError
