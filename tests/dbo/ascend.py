"""The generated runner on vllm-ascend, or on its stand-in, in the processes of DP ranks."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Collection, Mapping
from typing import Any
from unittest import mock

import torch

from tests.dbo import graphs
from tests.dbo.eager import OwnError, Session, clean
from tests.dbo.graphs import DBO, GRAPHS
from tests.sim import streams
from tests.sim.ascend import npu_runner
from tests.sim.ascend_config import ENGINE, MLA
from tests.sim.bugs import replaced
from tests.sim.npu import ExternalEvent
from tests.sim.ranks import Rank
from tests.sim.scenario import Outcome, Scenario, play
from tests.sim.trace import Mark, hooked

MODELS = ("SimMlaForCausalLM", "SimMoEForCausalLM", "SimCompiledMlaForCausalLM")


def dbo_runner(config: Any, device: torch.device, host: Any = None) -> Any:
    """The runner that a plugin would derive from the generated one; its configuration is accepted.

    Args:
        config: the configuration.
        device: the device.
        host: takes the place of the plugin's objects, but for the metadata.
    """
    from afd_backports.vllm_v026_mrv2_dbo.ascend_runner import AFDNPUAttentionModelRunnerV2, AscendMetadata

    from tests.dbo.configurations import Settings

    class Runner(AFDNPUAttentionModelRunnerV2):
        """As a plugin's."""

        def afd_settings(self, config: Any) -> Settings:
            return Settings(num_attention_ranks=2)

        def afd_models(self) -> Collection[str]:
            return MODELS

        def make_afd_host(self) -> Any:
            if host is None:
                return super().make_afd_host()
            host.metadata = AscendMetadata(self.vllm_config)
            return host

    # While it is judged: at run time vLLM and vllm-ascend want communicators for experts, and the tiny model has its own.
    with mock.patch.object(config.parallel_config, "enable_expert_parallel", True):
        return npu_runner(config, device, Runner)


def unvalidated(config: Any, device: torch.device) -> Any:
    """The same for a configuration that is not accepted: dense attention with graphs, which happens to work here."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_runner, validation

    assert issubclass(ascend_runner.AFDNPUAttentionModelRunnerV2, validation.AFDValidation)
    with mock.patch.object(validation, "validate"):
        return dbo_runner(config, device)


def refused(rank: Rank) -> str:
    """Dense attention with graphs."""
    from afd_backports.vllm_v026_mrv2_dbo.validation import UnsupportedConfigurationError

    try:
        Session(rank, dbo_runner, DBO, graphs=GRAPHS)  # type: ignore[arg-type]
    except UnsupportedConfigurationError as error:
        return str(error)
    return "accepted"


def play_off_and_on(
    rank: Rank, scenarios: Mapping[str, Scenario], runner: Any = dbo_runner
) -> dict[str, tuple[Outcome, Outcome]]:
    """Each scenario with vllm-ascend's own runner and single batches, and with the generated one and ubatches."""
    return {
        name: (play(rank, dataclasses.replace(scenario, dbo=None), npu_runner), play(rank, scenario, runner))
        for name, scenario in scenarios.items()
    }


def make(rank: Rank, native: bool = False, **more: Any) -> Session:
    """A runner whose host notes everything; or vllm-ascend's own, for single batches."""
    options: dict[str, Any] = {"model": MLA, "graphs": GRAPHS, **ENGINE, **more}
    if native:
        return Session(rank, npu_runner, None, **options)  # type: ignore[arg-type]
    host = graphs.control()
    session = Session(rank, lambda config, device: dbo_runner(config, device, host), DBO, **options)  # type: ignore[arg-type]
    session.host = host  # type: ignore[attr-defined]
    return session


def undisturbed(rank: Rank) -> Any:
    """The logits of the third step in single batches, eagerly."""
    session = make(rank, native=True, graphs=None)
    session.add()
    return logits(session, 3)


def logits(session: Session, steps: int) -> Any:
    """Logits of the last of some steps, by request."""
    return {(key[0].partition(":")[2], key[1]): value for key, value in session.steps(steps).items()}


# ---- parameters -----------------------------------------------------------------------------------------------


def params(rank: Rank) -> dict[str, Any]:
    """Where the parameters of each graph are, and what becomes of them."""
    import torch_npu
    from vllm.distributed.device_communicators import cuda_communicator
    from vllm_ascend.compilation import acl_graph

    session = make(rank, capture=False)
    manager = session.runner.cudagraph_manager
    native = acl_graph.get_graph_params()
    during: list[tuple[bool, bool]] = []
    before = manager.before_capture
    communicator = cuda_communicator.CudaCommunicator

    def noted(*args: Any) -> None:
        switched = cuda_communicator.CudaCommunicator is not communicator
        during.append((acl_graph.get_graph_params() is manager.recorded, switched))
        before(*args)

    manager.before_capture = noted
    weak: list[torch.Tensor] = []

    def weak_reference(tensor: torch.Tensor) -> torch.Tensor:
        weak.append(tensor.view_as(tensor))
        return weak[-1]

    with replaced(torch_npu._C, "_weak_ref_tensor", weak_reference):
        session.runner.capture_model()
    session.add()
    session.steps(4)
    twins = dict(manager.twin_params)
    events = [event for own in twins.values() for stage in own.stages for event in stage.events[own.num_tokens]]
    spaces = [own.workspaces[own.num_tokens] for own in twins.values()]
    seen = {
        "during": during,
        "native again": acl_graph.get_graph_params() is native is manager.native_params
        and cuda_communicator.CudaCommunicator is communicator,
        "native": {size: len(kept) for size, kept in native.events.items()},
        "twins": {twin.num_tokens: own.num_tokens for twin, own in twins.items()},
        "recorded": [
            [
                len(kept[own.num_tokens])
                for stage in own.stages
                for kept in (stage.events, stage.handles, stage.attn_params)
            ]
            for own in twins.values()
        ],
        "distinct": len({id(e) for e in (*events, *(e for kept in native.events.values() for e in kept))}),
        "workspaces": len({id(space) for space in (*spaces, *native.workspaces.values())}),
        "weak": [any(space is reference for reference in weak) for space in spaces],
        "shared": all(stage.workspaces is own.workspaces for own in twins.values() for stage in own.stages),
    }
    session.runner.shutdown()
    return {**seen, "left": len(manager.twin_params)}


def update_fails(rank: Rank) -> dict[str, Any]:
    """A replay whose update fails half-way; then the same step again, and further ones."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_params

    session = make(rank)
    session.add()
    session.steps(2)
    manager = session.runner.cudagraph_manager
    native = ascend_params.update_stages

    def fails(backend: Any, stream: Any, context: Any, num_tokens: int, config: Any) -> None:
        half = dict(list(context.attn_metadata.items())[:1])
        native(backend, stream, dataclasses.replace(context, attn_metadata=half), num_tokens, config)
        raise OwnError

    seen: dict[str, Any] = {}
    with replaced(ascend_params, "update_stages", fails):
        try:
            session.scheduler.step()
        except OwnError:
            seen["raised"] = session.host.control.raised()  # type: ignore[attr-defined]
    streams.synchronize()  # nothing waits
    clean()
    seen["twins"] = sorted(d.num_tokens for d in manager.twin_params)
    session.host.control.sent.clear()  # type: ignore[attr-defined]
    seen["logits"] = logits(session, 1)
    seen["sent"] = [said for said, _ in session.host.control.sent]  # type: ignore[attr-defined]
    return seen


def given_up(rank: Rank) -> list[tuple[str, bool, int]]:
    """What is done when an update fails before any layer: in order, whether the graph is still there, how many events are recorded."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_params

    session = make(rank)
    session.add()
    session.steps(2)
    manager = session.runner.cudagraph_manager
    (twin,) = [desc for desc in manager.twin_params if desc.num_tokens == 4]
    done: list[tuple[str, bool, int]] = []
    passed: list[Any] = []
    record, synchronize = ExternalEvent.record, torch.npu.synchronize  # type: ignore[attr-defined]

    def note(what: str) -> None:
        done.append((what, twin in manager.graphs, len(passed)))

    def fails(*args: Any) -> None:
        note("fails")
        raise OwnError

    def recorded(event: Any, stream: Any) -> None:
        passed.append(event)
        record(event, stream)

    def waited() -> None:
        note("synchronizes")
        synchronize()

    with (
        replaced(ascend_params, "update_stages", fails),
        replaced(ExternalEvent, "record", recorded),
        replaced(torch.npu, "synchronize", waited),  # type: ignore[attr-defined]
        contextlib.suppress(OwnError),
    ):
        session.scheduler.step()
    note("raises")
    return done


def checks(rank: Rank) -> dict[str, str]:
    """What `TwinParams.check` says of what two stages have recorded, by how many layers there are, None and a number."""
    from afd_backports.vllm_v026_mrv2_dbo.ascend_params import GraphParamsError, TwinParams

    kinds = {
        "nothing": (0, 0, 0, 0),
        "two layers": (2, 2, 2, 2),
        "one stage": (2, 2, 0, 0),
        "a layer less": (2, 2, 1, 1),
        "events": (2, 1, 2, 1),
    }
    seen = {}
    for kind, (first, handles, second, others) in kinds.items():
        params = TwinParams(4)
        for stage, events, rest in zip(params.stages, (first, second), (handles, others), strict=True):
            stage.events[4] += [object()] * events
            stage.handles[4] += [object()] * rest
            stage.attn_params[4] += [()] * rest
        for layers in (None, 0, 1, 2, 3):
            try:
                params.check(layers)
                seen[f"{kind}, {layers}"] = ""
            except GraphParamsError as error:
                seen[f"{kind}, {layers}"] = str(error).rpartition("there have to be ")[2]
    return seen


def other_layers(rank: Rank) -> dict[str, Any]:
    """A replay is staged with metadata of fewer layers, of both stages or of one; then the same step again."""
    session = make(rank)
    session.add()
    session.steps(2)
    graph = next(
        g
        for d, g in session.runner.cudagraph_manager.graphs.items()
        if vars(d).get("num_ubatches") == 2 and d.num_tokens == 4
    )
    ubatch_runner = session.runner.ubatch_runner
    stage, replays, seen = ubatch_runner.stage, graph.replays, {}
    for name, stages in (("both", (0, 1)), ("one", (1,))):

        def fewer(state: Any, cg_mode: Any, stages: tuple[int, ...] = stages) -> None:
            for at in stages:
                state.forward_contexts[at].attn_metadata.popitem()
            stage(state, cg_mode)

        ubatch_runner.stage = fewer
        try:
            session.scheduler.step()
        except Exception as error:
            seen[name] = f"{type(error).__name__}: {error}"
        ubatch_runner.stage = stage
    seen["replays"] = graph.replays - replays
    seen["logits"] = logits(session, 1)
    return seen


def released(rank: Rank) -> dict[str, Any]:
    """A capture that fails: whose parameters are in force, and which are left."""
    from vllm_ascend.compilation import acl_graph

    session = make(rank, capture=False)
    manager = session.runner.cudagraph_manager
    marks: list[Mark] = []

    def hook(mark: Mark) -> None:
        marks.append(mark)
        if len(marks) == 100:  # while the first twin is captured
            raise OwnError

    seen: dict[str, Any] = {}
    with hooked(hook):
        try:
            session.runner.capture_model()
        except OwnError:
            seen["params"] = len(manager.twin_params)
    seen["native"] = acl_graph.get_graph_params() is manager.native_params
    seen["recorded"] = manager.recorded.twin.num_tokens
    return seen


def disturbed(rank: Rank) -> dict[str, Any]:
    """A split step that fails in the middle of each stage's forward pass, each time run again; then the end of the runner."""
    session = make(rank, graphs=None)
    session.add()
    session.steps(2)
    seen: dict[str, Any] = {"errors": [], "logits": []}
    wanted = [
        Mark(ubatch, layer, step)
        for ubatch in (0, 1)
        for layer in (0, 1)
        for step in ("compute", "dispatch", "combine")
    ]
    for point in wanted:

        def hook(mark: Mark, point: Mark = point) -> None:
            if mark == point:
                raise OwnError(str(point))

        with hooked(hook):
            try:
                session.scheduler.step()
            except OwnError as error:
                seen["errors"].append(str(error))
        clean()
        seen["logits"].append(session.steps(1))
        clean()
        session.drop()
        session.add()
        session.steps(2)
    seen["wanted"] = [str(point) for point in wanted]
    seen["logits"] = [
        {(name.partition(":")[2], at): value for (name, at), value in found.items()} for found in seen["logits"]
    ]
    model = weakref.ref(session.runner.model)
    with hooked(hook), contextlib.suppress(OwnError):
        session.scheduler.step()
    session.runner.shutdown()
    seen["alive"] = model() is not None
    return seen


def workspaces(rank: Rank) -> list[int]:
    """How many ubatches vLLM has workspaces for, after vllm-ascend's worker has made them and the runner is there."""
    from vllm.v1.worker import workspace

    def runner(config: Any, device: torch.device) -> Any:
        workspace.reset_workspace_manager()
        workspace.init_workspace_manager(device, 1)  # as vllm-ascend's worker
        made = dbo_runner(config, device) if config.parallel_config.use_ubatching else npu_runner(config, device)
        counts.append(workspace.current_workspace_manager()._num_ubatches)
        return made

    counts: list[int] = []
    for dbo in (DBO, None):
        Session(rank, runner, dbo, model=MLA, **ENGINE)  # type: ignore[arg-type]
    return counts


def look(rank: Rank) -> list[dict[str, Any]]:
    """What the forward context of each stage holds in a prefill step."""
    from vllm.forward_context import ForwardContext, get_forward_context

    session = make(rank)
    session.add()
    seen: list[dict[str, Any]] = []

    def hook(mark: Mark) -> None:
        if mark.layer == 0 and mark.step == "compute":
            context = get_forward_context()
            metadata = next(iter(context.attn_metadata.values()))
            kwargs = context.additional_kwargs
            seen.append(
                {
                    "foreign": sorted(set(vars(context)) - {f.name for f in dataclasses.fields(ForwardContext)}),
                    "tokens": (kwargs["num_tokens"], kwargs["max_tokens_across_dp"], kwargs["mc2_mask"].tolist()),
                    "capturing": kwargs["capturing"],
                    "lengths": metadata.seq_lens_cpu.tolist(),
                    "state": metadata.attn_state.name,
                }
            )

    with hooked(hook):
        session.scheduler.step()
    return seen
