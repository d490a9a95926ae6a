"""Steps that fail at every point, in the processes of DP ranks: what the caller gets, what is left, and the step after it."""

from __future__ import annotations

import contextlib
import gc
import os
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from tests.dbo.eager import SOON, Session, clean
from tests.dbo.points import OwnError, Point, failing, record
from tests.sim import streams
from tests.sim.config import Graphs
from tests.sim.ranks import Rank
from tests.sim.scheduler import Logits

LONG = "AFD_SOAK"
"""Environment variable: a number of steps makes the soak that long, and the matrix try every point each time it is reached."""

GRAPHS = Graphs((1, 4), "FULL_DECODE_ONLY")
"""One twin, which three requests replay."""


class Canary:
    """Dies with what holds it."""


class Canaries:
    """The living ones."""

    def __init__(self) -> None:
        self.alive: weakref.WeakSet[Canary] = weakref.WeakSet()

    def make(self) -> Canary:
        """One more."""
        canary = Canary()
        self.alive.add(canary)
        return canary


def make_host(canaries: Canaries) -> Any:
    """A host that gives a canary to the forward context of every stage."""
    from afd_backports.vllm_v026_mrv2_dbo.host import PlainHost, PlainMetadata

    class Metadata(PlainMetadata):
        def additional_kwargs(self, stage: Any) -> Mapping[str, Any]:
            return {"canary": canaries.make()}

    host = PlainHost()
    host.metadata = Metadata()
    return host


class Subject:
    """A runner that fails and goes on, and what shows that nothing is left of a failure.

    Attributes:
        session: it, and its requests.
        canaries: held by the stages' forward contexts, and by the model while it runs.
    """

    def __init__(self, rank: Rank, graphs: Graphs | None = None, **more: Any) -> None:
        from tests.dbo.runners import DboRunner

        canaries = self.canaries = Canaries()

        class Runner(DboRunner):
            def make_afd_host(self) -> Any:
                return make_host(canaries)

        self.natives = natives()
        self.session = Session(rank, Runner, graphs=graphs, **more)
        forward = self.session.runner.model.forward

        def watched(*args: Any, **kwargs: Any) -> Any:
            canary = canaries.make()
            outputs = forward(*args, **kwargs)
            del canary
            return outputs

        self.session.runner.model.forward = watched

    @property
    def runner(self) -> Any:
        return self.session.runner

    def left(self) -> Iterator[str]:
        """What is left of a step that should have left nothing."""
        try:
            clean()
        except AssertionError as error:
            yield f"left: {error}"
        yield from (f"{name} is not native" for name, value in natives().items() if value is not self.natives[name])
        ubatch_runner = self.runner.ubatch_runner
        control = ubatch_runner.host.control
        if control.is_warmup or control.is_graph_capturing or control.is_graph_replaying:
            yield "a flag of the control plane is raised"
        yield from (
            f"{name} is kept"
            for name in ("staged", "stage_run", "_pending_finish")
            if vars(ubatch_runner).get(name) is not None
        )
        if len(self.canaries.alive):
            yield f"kept: {[gc.get_referrers(canary) for canary in self.canaries.alive]}"[:400]


def natives() -> dict[str, object]:
    """What the generated code substitutes for a while."""
    from vllm.config import VllmConfig
    from vllm.v1.worker.gpu import model_runner
    from vllm.v1.worker.utils import AttentionGroup

    return {
        "validation": VllmConfig.__post_init__,
        "metadata builders": AttentionGroup.create_metadata_builders,
        "graph manager": model_runner.ModelCudaGraphManager,
        "stream": streams.current_stream(),
    }


class Decode:
    """The next decode step of a session's requests, which can be run any number of times: nothing is sampled.

    Args:
        session: where it is run.
        prepared: whether the native preparation, most of the time of a step, is done once only.
    """

    def __init__(self, session: Session, prepared: bool = False) -> None:
        session.add()
        session.steps(2)
        self.runner, self.work = session.runner, session.scheduler.schedule()
        if prepared:
            self.runner.prepare_inputs = once(self.runner.prepare_inputs)
            self.runner.prepare_attn = once(self.runner.prepare_attn)

    @torch.inference_mode()
    def __call__(self) -> Logits:
        """Its logits."""
        self.runner.execute_model(self.work)
        state, self.runner.execute_model_state = self.runner.execute_model_state, None
        logits = self.runner.model.compute_logits(state.hidden_states[state.input_batch.logits_indices])
        return {(name.partition(":")[2], 0): logits[i] for i, name in enumerate(state.input_batch.req_ids)}


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call a function once for each value of its last argument."""
    results: dict[str, Any] = {}

    def called(*args: Any) -> Any:
        key = repr(args[-1]) if len(args) > 1 else str(id(args[-1]))  # a descriptor; a batch, which is kept here
        if key not in results:
            results[key] = function(*args)
        return results[key]

    return called


def undisturbed(rank: Rank) -> Logits:
    """The logits of that step of vLLM's own runner."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    return Decode(Session(rank, GPUModelRunner, None))()


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """What is kept by references in a circle alone is kept."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def fail(step: Callable[[], object], fault: AbstractContextManager[list[OwnError]]) -> Iterator[str]:
    """Let a step fail; what is wrong with what the caller gets."""
    with fault as raised:
        try:
            step()
        except BaseException as error:
            if [error] != raised:
                yield f"the caller got {error!r}"
            elif time.monotonic() - raised[0].since > SOON:
                yield "the caller had to wait"
        else:
            yield "no error for the caller"
        raised.clear()


def difference(ones: Logits, others: Logits) -> Iterator[str]:
    """What is wrong with the logits of a step."""
    worst = (
        max((float((ones[key] - others[key]).abs().max()) for key in others), default=0.0)
        if ones.keys() == others.keys()
        else float("inf")
    )
    if not worst < 1e-4:
        yield f"logits differ by {worst}"


Problems = dict[str, list[str]]


def chosen(points: Sequence[Point], briefly: Collection[str] = ()) -> list[Point]:
    """The points to try: all of them in a long run, else each place once, and each time the steps of exchanges and both ends of handoffs.

    Args:
        points: all there are.
        briefly: functions of which one point is enough, as they are tried elsewhere.
    """
    if os.environ.get(LONG):
        return list(points)
    handoffs = [point.place for point in points if point.function.endswith("._cpu_yield")]
    often = {*handoffs[:1], *handoffs[-1:], *(point.place for point in points if point.function.startswith("model."))}
    found, seen = [], set()
    for point in points:
        key = (point.thread, point.function if point.function in briefly else point.place)
        if point.place in often or key not in seen:
            found.append(point)
        seen.add(key)
    return found


# ---- steps ----------------------------------------------------------------------------------------------------


def points_of_steps(rank: Rank) -> dict[str, list[Point]]:
    """The points of a decode step, eager and replayed, of a prefill step, and of the capture of a twin."""
    from tests.dbo.points import instrument

    instrument()
    eager, graphs = Subject(rank), Subject(rank, GRAPHS, capture=False)
    twins = Capture(graphs)
    twins.capture()  # what happens once in a process has happened
    graphs.runner.cudagraph_manager.release_twins()
    found = {"capture": record(twins.capture)}
    eager.session.add()
    found["prefill"] = record(lambda: eager.session.steps(1))
    found["eager"] = record(Decode(eager.session))
    found["replay"] = record(Decode(graphs.session))
    return found


class Capture:
    """The capture of the twins, which can be repeated; the native graphs are captured once."""

    def __init__(self, subject: Subject) -> None:
        self.manager = subject.runner.cudagraph_manager
        native, calls = self.manager.capture_twins, []

        def capture_twins(**arguments: Any) -> None:
            calls.append(arguments)

        self.manager.capture_twins = capture_twins
        subject.runner.capture_model()
        del self.manager.capture_twins
        self._arguments, self._capture = calls[0], native

    def capture(self) -> None:
        """Capture them."""
        self._capture(**self._arguments)

    def twins(self) -> int:
        """How many there are."""
        return sum(vars(desc).get("num_ubatches", 1) == 2 for desc in self.manager.graphs)


def eager(rank: Rank, points: Sequence[Point]) -> Problems:
    """An eager decode step fails at each point, and is run again."""
    return disturb(Subject(rank), undisturbed(rank), points)


def prefill(rank: Rank, points: Sequence[Point]) -> Problems:
    """The first step of requests fails at each point; they are given up, and others take their place."""
    subject, problems, expected = Subject(rank), {}, undisturbed(rank)
    for point in points:
        subject.session.add()
        found = [*fail(subject.session.scheduler.step, failing(point)), *subject.left()]
        subject.session.drop()
        found += [*difference(Decode(subject.session)(), expected), *subject.left()]
        subject.session.drop()
        if found:
            problems[str(point)] = found
    return problems


def replay(rank: Rank, points: Sequence[Point]) -> Problems:
    """A decode step that replays a twin fails at each point, and is run again."""
    subject = Subject(rank, GRAPHS)
    problems = disturb(subject, undisturbed(rank), points)
    (replays,) = (
        graph.replays
        for desc, graph in subject.runner.cudagraph_manager.graphs.items()
        if vars(desc).get("num_ubatches", 1) == 2
    )
    if replays < len(points):
        problems["in all"] = [f"{replays} replays"]
    return problems


def disturb(subject: Subject, expected: Logits, points: Sequence[Point]) -> Problems:
    """A decode step fails at each point, and is run again."""
    step, problems = Decode(subject.session, prepared=True), {}
    with without_collections():
        for point in points:
            found = [*fail(step, failing(point)), *subject.left(), *difference(step(), expected), *subject.left()]
            if found:
                problems[str(point)] = found
                subject.canaries.alive.clear()
    return problems


def capture(rank: Rank, points: Sequence[Point]) -> Problems:
    """A capture fails at each point; the next step runs eagerly, and in the end the twins are captured and replayed."""
    expected, subject = undisturbed(rank), Subject(rank, GRAPHS, capture=False)
    twins = Capture(subject)
    step, problems = Decode(subject.session), {}
    with without_collections():
        for point in points:
            found = [*fail(twins.capture, failing(point)), *subject.left()]
            if twins.twins():
                found.append("a twin is left")
            found += [*difference(step(), expected), *subject.left()]
            if found:
                problems[str(point)] = found
                subject.canaries.alive.clear()
    twins.capture()
    found = [*subject.left(), *difference(step(), expected)]
    if twins.twins() != 1 or [
        g.replays for d, g in twins.manager.graphs.items() if vars(d).get("num_ubatches", 1) == 2
    ] != [1]:
        found.append("no twin is captured and replayed in the end")
    if found:
        problems["in the end"] = found
    return problems
