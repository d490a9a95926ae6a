"""Graphs of split batches, in the processes of DP ranks: captured, replayed, staged wrongly, interrupted."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any

from tests.dbo.eager import OwnError, Session, clean
from tests.sim.bugs import replaced
from tests.sim.config import Dbo, Graphs
from tests.sim.ranks import Rank
from tests.sim.trace import TRACE, Mark, hooked

GRAPHS = Graphs((1, 2, 4, 8), "FULL_DECODE_ONLY")
DBO = Dbo(decode=2, prefill=4)


def control() -> Any:
    """A host that notes what the FFN side would be told."""
    from afd_backports.vllm_v026_mrv2_dbo.host import PlainHost, SilentControl

    class Control(SilentControl):
        def __init__(self) -> None:
            super().__init__()
            self.sent: list[tuple[str, dict[int, list[int]]]] = []

        def send(self, dp_metadata_list: Mapping[int, Any]) -> None:
            flags = {"warm-up": self.is_warmup, "capture": self.is_graph_capturing, "replay": self.is_graph_replaying}
            said = "+".join(name for name, raised in flags.items() if raised) or "eager"
            self.sent.append((said, {i: m.num_tokens_across_dp_cpu.tolist() for i, m in dp_metadata_list.items()}))
            TRACE.add(Mark(-1, -1, said))

        def raised(self) -> bool:
            """Whether any flag is raised."""
            return self.is_warmup or self.is_graph_capturing or self.is_graph_replaying

    host = PlainHost()
    host.control = Control()
    return host


def make(rank: Rank, native: bool = False, **more: Any) -> Session:
    """A runner whose host notes everything; or vLLM's own, for single batches."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    from tests.dbo.runners import DboRunner

    options: dict[str, Any] = {"graphs": GRAPHS, **more}
    if native:
        return Session(rank, GPUModelRunner, None, **options)
    host = control()

    class Runner(DboRunner):
        def make_afd_host(self) -> Any:
            return host

    session = Session(rank, Runner, DBO, **options)
    session.host = host  # type: ignore[attr-defined]
    return session


Maker = Callable[..., Session]
"""As `make`, on another platform for example."""


def captured(rank: Rank, make: Maker = make) -> dict[str, Any]:
    """What is captured, in which order, and what the FFN side hears of it."""
    from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor

    session = make(rank, capture=False)
    TRACE.clear()
    session.runner.capture_model()
    marks = list(TRACE.marks)
    manager = session.runner.cudagraph_manager
    native = make(rank, native=True).runner.cudagraph_manager
    said = [at for at, mark in enumerate(marks) if mark.ubatch < 0]
    return {
        "native": sorted(d.num_tokens for d in native.graphs),
        "same keys": {d for d in manager.graphs if type(d) is BatchExecutionDescriptor} == set(native.graphs),
        "twins": [
            (d.num_tokens, d.num_reqs, d.uniform_token_count, d.num_ubatches)
            for d in manager.graphs
            if type(d) is not BatchExecutionDescriptor
        ],
        "graphs": len({id(graph) for graph in manager.graphs.values()}) == len(manager.graphs),
        "sent": session.host.control.sent,  # type: ignore[attr-defined]
        # Between two notices: the steps of the exchanges of both stages in both layers.
        "steps": [
            sum(1 for mark in marks[at + 1 : end] if mark.ubatch >= 0)
            for at, end in zip(said, [*said[1:], len(marks)], strict=True)
        ],
        "raised": session.host.control.raised(),  # type: ignore[attr-defined]
    }


def replayed(rank: Rank, make: Maker = make) -> dict[str, Any]:
    """A prefill step, two decode steps, and one whose replay fails; then the same step again."""
    session = make(rank)
    sent = session.host.control.sent  # type: ignore[attr-defined]
    sent.clear()
    session.add()
    seen: dict[str, Any] = {}
    session.steps(3)
    seen["sent"] = list(sent)
    manager = session.runner.cudagraph_manager
    twin = next(d for d in manager.graphs if vars(d).get("num_ubatches") == 2 and d.num_tokens == 4)
    sent.clear()

    class Broken:
        def replay(self) -> None:
            seen["flag"] = session.host.control.is_graph_replaying  # type: ignore[attr-defined]
            raise OwnError

    graph, manager.graphs[twin] = manager.graphs[twin], Broken()
    try:
        session.scheduler.step()
    except OwnError:
        seen["broken"] = list(sent)
    seen["lost"] = twin not in manager.graphs
    if not seen["lost"]:
        manager.graphs[twin] = graph
    seen["raised"] = session.host.control.raised()  # type: ignore[attr-defined]
    seen["staged"] = session.runner.ubatch_runner.staged
    clean()
    seen["logits"] = {(key[0].partition(":")[2], key[1]): value for key, value in session.steps(1).items()}
    seen["replays"] = graph.replays
    return seen


def staged_by_a_step(session: Session) -> Any:
    """Play a step whose twin is replayed; what was staged for it."""
    ubatch_runner = session.runner.ubatch_runner
    native, kept = ubatch_runner.take_staged, []

    def keep() -> Any:
        kept.append(native())
        return kept[-1]

    ubatch_runner.take_staged = keep
    session.steps(1)
    ubatch_runner.take_staged = native
    return kept[0]


def staged_wrongly(rank: Rank, make: Maker = make) -> dict[str, str]:
    """A twin is asked for without its ubatches, and with those of another shape."""
    session = make(rank)
    session.add()
    session.steps(2)
    manager, ubatch_runner = session.runner.cudagraph_manager, session.runner.ubatch_runner
    twins = {d.num_tokens: d for d in manager.graphs if vars(d).get("num_ubatches") == 2}
    replays = {tokens: manager.graphs[twin].replays for tokens, twin in twins.items()}
    seen: dict[str, str] = {}

    def ask(name: str, tokens: int) -> None:
        try:
            manager.run_fullgraph(twins[tokens])
        except BaseException as error:
            seen[name] = f"{type(error).__name__}: {error}"

    ask("nothing", 4)
    ubatch_runner.staged = staged_by_a_step(session)
    ask("another shape", 8)
    seen["replayed"] = str({t: manager.graphs[twin].replays - replays[t] for t, twin in twins.items()})
    ubatch_runner.staged = None
    manager.stage_runner = None
    ask("no runner", 4)
    return seen


def interrupted(rank: Rank, points: list[int], make: Maker = make) -> list[dict[str, Any]]:
    """Captures that fail at one of their steps."""
    outcomes = []
    for point in points:
        session = make(rank, capture=False)
        seen: list[Mark] = []

        def hook(mark: Mark, seen: list[Mark] = seen, point: int = point) -> None:
            seen.append(mark)
            if len(seen) == point:
                raise OwnError(str(point))

        outcome: dict[str, Any] = {"point": point}
        with hooked(hook):
            try:
                session.runner.capture_model()
            except OwnError as error:
                outcome["error"] = str(error)
        outcome["threads"] = threading.active_count()
        manager = session.runner.cudagraph_manager
        outcome["twins"] = [d for d in manager.graphs if vars(d).get("num_ubatches") == 2]
        outcome["natives"] = len(manager.graphs)
        outcome["raised"] = session.host.control.raised()  # type: ignore[attr-defined]
        clean()
        # The runner goes on: native graphs for whole batches, eager ubatches.
        session.add()
        outcome["logits"] = {(key[0].partition(":")[2], key[1]): value for key, value in session.steps(3).items()}
        clean()
        session.runner.shutdown()
        outcomes.append(outcome)
    return outcomes


def ended(rank: Rank, make: Maker = make) -> dict[str, Any]:
    """Weak references, when the native shutdown of a runner whose graphs were replayed returns."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    seen: dict[str, Any] = {}
    native = GPUModelRunner.shutdown

    def shutdown(self: Any) -> None:
        native(self)
        seen["alive"] = sorted(name for name, reference in references.items() if reference() is not None)

    session = make(rank)
    session.add()
    session.steps(3)
    runner = session.runner
    references: dict[str, Any] = {name: weakref.ref(value) for name, value in runner.model.named_parameters()}
    references["model"] = weakref.ref(runner.model)
    references["twin"] = weakref.ref(
        next(g for d, g in runner.cudagraph_manager.graphs.items() if vars(d).get("num_ubatches") == 2)
    )
    with replaced(GPUModelRunner, "shutdown", shutdown), contextlib.suppress(OwnError):
        runner.shutdown()
    seen["watched"] = len(references)
    clean()
    return seen


def ended_badly(rank: Rank, failing: Collection[str], make: Maker = make) -> dict[str, Any]:
    """A shutdown in which some layers raise, after a replay: what the caller gets, and what was done all the same."""
    session = make(rank)
    session.add()
    session.steps(3)
    runner, manager, ubatch_runner = session.runner, session.runner.cudagraph_manager, session.runner.ubatch_runner
    references = {name: weakref.ref(value) for name, value in runner.model.named_parameters()}
    references["model"] = weakref.ref(runner.model)
    called: list[str] = []

    def fails(name: str) -> Callable[[], None]:
        def layer() -> None:
            called.append(name)
            raise OwnError(name)

        return layer

    for name in failing:  # of the graph manager, or of the ubatch runner
        setattr(ubatch_runner if name == "abort" else manager, name, fails(name))
    error = ""
    try:
        runner.shutdown()
    except OwnError as raised:
        error = str(raised)
    return {
        "error": error,
        "called": called,
        "graphs": len(manager.graphs),
        "kept": sorted(vars(ubatch_runner)),
        "ubatch runner": runner.ubatch_runner,
        "alive": sorted(name for name, reference in references.items() if reference() is not None),
    }
