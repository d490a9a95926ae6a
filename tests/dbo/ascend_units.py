"""What is written for vllm-ascend, function by function, in a process with it or its stand-in: who is called, with what, in which order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from tests.sim.ranks import Rank

Log = list[Any]


def noted(log: Log, name: str, result: Any = None) -> Callable[..., Any]:
    """A function that notes its arguments."""

    def function(*args: Any, **kwargs: Any) -> Any:
        log.append((name, *args, *([kwargs] if kwargs else [])))
        return result

    return function


def scope(log: Log, name: str) -> Callable[..., contextlib.AbstractContextManager[None]]:
    """A block that notes its beginning and its end."""

    @contextlib.contextmanager
    def block(*args: Any, **kwargs: Any) -> Iterator[None]:
        log.append((f"{name} begins", *args, *([kwargs] if kwargs else [])))
        yield
        log.append((f"{name} ends",))

    return block


def error_of(function: Callable[..., Any], *args: Any) -> str:
    """What it raises."""
    try:
        function(*args)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


# ---- parameters -----------------------------------------------------------------------------------------------


def recorded(rank: Rank) -> dict[str, Any]:
    """Where parameters go that a stage records while a graph is captured."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_params

    params = ascend_params.RecordedParams()
    seen: dict[str, Any] = {"before": (params.twin.num_tokens, params.workspaces)}
    params.twin = twin = ascend_params.TwinParams(4)
    seen["stages"], seen["tokens"], seen["workspaces"] = len(twin.stages), twin.num_tokens, twin.workspaces == {4: None}
    for stage in range(len(twin.stages)):
        with mock.patch.object(ascend_params, "dbo_current_ubatch_id", lambda stage=stage: stage):
            own = twin.stages[stage]
            kept = (params.events is own.events, params.handles is own.handles, params.attn_params is own.attn_params)
            seen[f"of {stage}"] = (*kept, params.workspaces is twin.workspaces is own.workspaces)
            seen[f"kept of {stage}"] = [own.events, own.handles, own.attn_params]
    return seen


def contexts(*stages: dict[str, Any]) -> list[Any]:
    """A forward context for each stage."""
    from vllm.forward_context import ForwardContext

    return [ForwardContext({}, metadata, {"stage": i}) for i, metadata in enumerate(stages)]  # type: ignore[arg-type, dict-item]


def merged(rank: Rank) -> dict[str, Any]:
    """One context of two; of two that do not fit; records of stages that do not fit."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_params

    from tests.dbo.params import twin

    stages = contexts({"b.1": "b of 0", "a.2": "a of 0"}, {"b.1": "b of 1", "a.2": "a of 1"})
    context = ascend_params.merged_context(stages)
    return {
        "metadata": list(context.attn_metadata.items()),
        "slots": context.slot_mapping,
        "first": stages[0].attn_metadata,  # as it was
        "others": [
            error_of(ascend_params.merged_context, contexts({"a": 1, "b": 2}, other))
            for other in ({"a": 1}, {"b": 2, "a": 1}, {"a": 1, "c": 2})
        ],
        "one of three": error_of(ascend_params.merged_context, contexts({"a": 1}, {"a": 2}, {"b": 3})),
        "records": error_of(twin([(2, 2, 2), (1, 2, 2)]).merged),
    }


def in_force(rank: Rank) -> dict[str, Any]:
    """What vllm-ascend sees while it updates a graph, and afterwards."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_params
    from vllm.forward_context import _forward_context, get_forward_context, override_forward_context
    from vllm_ascend.compilation import acl_graph

    seen: dict[str, Any] = {}
    (context, outer), called = contexts({"a": 1}, {"a": 2}), []

    def update(*args: Any) -> None:
        called.append((get_forward_context() is context, args))

    with mock.patch.object(ascend_params, "update_full_graph_params", update), override_forward_context(outer):
        ascend_params.update_stages("backend", "stream", context, 4, "config")  # type: ignore[arg-type]
        seen["context again"] = get_forward_context() is outer
    assert _forward_context is None
    seen["update"] = [(right, args[0], args[1], args[2] is context, *args[3:]) for right, args in called]
    before, own = acl_graph.get_graph_params(), object()
    for error in (None, KeyError("mine")):
        with contextlib.suppress(KeyError), ascend_params.params_in_force(own):
            seen["in force"] = acl_graph.get_graph_params() is own
            if error:
                raise error
        seen[f"after {error!r}"] = acl_graph.get_graph_params() is before
    return seen


def replayed(rank: Rank) -> dict[str, Any]:
    """The order of what is done at a replay: all well, an update fails, the replay itself does, the parameters do not fit."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_params
    from vllm_ascend.compilation import acl_graph

    from tests.dbo.params import twin

    seen: dict[str, Any] = {}
    for name, error, layers, recorded in (
        ("well", None, 2, 2),
        ("fails", ValueError("mine"), 2, 2),
        ("is interrupted", KeyboardInterrupt("mine"), 2, 2),
        ("replay fails", None, 2, 2),
        ("other layers", None, 1, 2),
    ):
        log: Log = []
        params = twin([(recorded, recorded, recorded)] * 2)
        for stage in params.stages:
            stage.events[4][:] = [mock.Mock(record=noted(log, "passes")) for _ in stage.events[4]]
        stages = contexts(*({f"layer.{i}": f"{i} of {stage}" for i in range(layers)} for stage in range(2)))
        before = acl_graph.get_graph_params()
        updates: Any = mock.Mock(wait_stream=noted(log, "update stream waits"))
        failing = mock.Mock(side_effect=ValueError("in the replay"))

        def update(
            backend: Any, stream: Any, context: Any, tokens: int, config: Any, log: Log = log, error: Any = error, before: Any = before,
            updates: Any = updates,
        ) -> None:  # fmt: skip
            in_force = acl_graph.get_graph_params()
            entries = None if in_force is before else in_force.handles
            log.append(("updates", backend, stream is updates, list(context.attn_metadata), tokens, config, entries))
            if error:
                raise error

        platform = mock.Mock(current_stream=lambda: "this thread's", synchronize=noted(log, "synchronizes"))
        with mock.patch.object(ascend_params, "update_stages", update), mock.patch.object(ascend_params, "current_platform", platform):  # fmt: skip
            try:
                log.append(("returns", ascend_params.replay_updated(
                    failing if name == "replay fails" else noted(log, "replays", "output"), params, stages, backend="backend", stream=updates, vllm_config="config",
                    lost=noted(log, "is lost"),
                )))  # fmt: skip
            except BaseException as raised:
                log.append((type(raised).__name__, str(raised)))
        seen[name] = [("passes", entry[1] is updates) if entry[0] == "passes" else entry for entry in log]
        assert acl_graph.get_graph_params() is before
    return seen


# ---- the device, the rotary factors ---------------------------------------------------------------------------


def device(rank: Rank) -> tuple[bool, Log, bool]:
    """How a graph is made and captured."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_device

    log: Log = []
    with mock.patch.object(ascend_device, "torch_npu_graph_wrapper", noted(log, "captures", "block")):
        graphs = ascend_device.AscendGraphs()
        made = isinstance(graphs.new(), torch.npu.NPUGraph)  # type: ignore[attr-defined]
        given = [graphs.capture("graph"), graphs.capture("graph", "pool", "stream")]  # type: ignore[arg-type]
    return made, log, given == ["block"] * 2


def rotary_factors(rank: Rank) -> dict[str, Any]:
    """Where vllm-ascend finds its buffers in the block, and after it, however it ends."""
    from afd_backports.vllm_v026_mrv2_dbo.ascend_stages import rotary_factors_from
    from vllm_ascend.ops import rotary_embedding

    seen: dict[str, Any] = {}
    cos, sin = torch.arange(6), torch.arange(6) + 10
    with mock.patch.multiple(rotary_embedding, _cos_mla=cos, _sin_mla=sin):
        for error in (None, ValueError("mine")):
            with contextlib.suppress(ValueError), rotary_factors_from(4):
                rotary_embedding._cos_mla[0] = 40  # what is written to the start of the stage's buffer
                seen["block"] = (rotary_embedding._cos_mla.tolist(), rotary_embedding._sin_mla.tolist())
                if error:
                    raise error
            seen[f"after {error!r}"] = rotary_embedding._cos_mla is cos and rotary_embedding._sin_mla is sin
    seen["written"] = cos.tolist()
    with mock.patch.multiple(rotary_embedding, _cos_mla=None, _sin_mla=None):
        with rotary_factors_from(4):
            seen["no MLA"] = (rotary_embedding._cos_mla, rotary_embedding._sin_mla)
        seen["no MLA after"] = (rotary_embedding._cos_mla, rotary_embedding._sin_mla)
    return seen


# ---- the runner -----------------------------------------------------------------------------------------------


def metadata(rank: Rank) -> dict[str, Any]:
    """What each stage needs: of a step, and of a capture."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_runner
    from vllm.v1.worker.ubatch_utils import UBatchSlice

    log: Log = []
    part = UBatchSlice(slice(1, 2), slice(3, 6))
    host = ascend_runner.AscendHost("config")  # type: ignore[arg-type]
    with (
        mock.patch.object(ascend_runner, "build_attn_state", noted(log, "state", "the state")),
        mock.patch.object(ascend_runner, "slice_ascend_fields", noted(log, "fields", "ubatch")),
        mock.patch.object(ascend_runner, "rotary_factors_from", noted(log, "factors", "block")),
    ):
        own = ascend_runner.AscendHost("config").metadata  # type: ignore[arg-type]
        for for_capture in (False, True):
            assert own.complete("batch", "part", part, for_capture) == "ubatch"  # type: ignore[arg-type, comparison-overlap]
        state = log[0][4]
        assert state("lengths", 2) == "the state"
        assert own.building(part) == "block"  # type: ignore[comparison-overlap]
    return {
        "log": [tuple("function" if entry is state else entry for entry in entries) for entries in log],
        "control": type(host.control).__name__,
        "part": part,
    }


def runner(rank: Rank) -> dict[str, Log]:
    """How a runner is made, with ubatches and without."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_runner

    class Runner(ascend_runner.AFDNPUAttentionModelRunnerV2):
        """As a plugin's."""

        def afd_settings(self, config: Any) -> str:
            return "settings"

        def afd_models(self) -> tuple[str, ...]:
            return ("model",)

    seen: dict[str, Log] = {}
    for name, on in (("on", True), ("off", False)):
        log = seen[name] = []
        config: Any = SimpleNamespace(parallel_config=SimpleNamespace(use_ubatching=on))

        def native(self: Any, vllm_config: Any, device: Any, log: Log = log, config: Any = config) -> None:
            log.append(("native", vllm_config is config, device))

        with (
            mock.patch.object(ascend_runner.NPUModelRunner, "__init__", native),
            mock.patch("afd_backports.vllm_v026_mrv2_dbo.validation.validate"),
            mock.patch.object(ascend_runner, "reset_workspace_manager", noted(log, "reset")),
            mock.patch.object(ascend_runner, "init_workspace_manager", noted(log, "workspaces")),
        ):
            made = Runner(config, "device")  # type: ignore[arg-type]
        made.vllm_config = config
        log.append(type(made.make_afd_host()).__name__)
    return seen


# ---- graphs ---------------------------------------------------------------------------------------------------


def manager(log: Log) -> Any:
    """A graph manager whose native part notes what is asked of it; one native shape, of which there is a twin."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_graphs
    from vllm.config import ParallelConfig
    from vllm.config.compilation import CUDAGraphMode
    from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor

    def native(self: Any, config: Any, *more: Any) -> None:
        log.append(("native", *more))
        self.graphs, self.update_stream, self.vllm_config = {}, "update stream", config
        self._capture_descs = {CUDAGraphMode.FULL: [BatchExecutionDescriptor(CUDAGraphMode.FULL, 4, 4, 1)]}
        group = SimpleNamespace(backend="backend")
        self.model_runner = SimpleNamespace(attn_groups=[[group]])

    config: Any = SimpleNamespace(parallel_config=ParallelConfig(enable_dbo=True, dbo_decode_token_threshold=2))
    with mock.patch.object(ascend_graphs.ModelAclGraphManager, "__init__", native):
        made = ascend_graphs.AFDModelAclGraphManagerV2(config, *("device", "mode", 1, "runner", [0]))  # type: ignore[arg-type]
    assert made.twin_descs == {}
    return made


def stages(log: Log) -> Any:
    """In the place of a ubatch runner."""
    return SimpleNamespace(
        host=SimpleNamespace(control=SimpleNamespace(is_warmup=False, is_graph_capturing=False, is_graph_replaying=False)),
        capture_stream=mock.Mock(), announce=noted(log, "announces"), take_staged=lambda: None,
    )  # fmt: skip


def prepared(*tokens: int) -> Any:
    """Stages with so many tokens."""
    return SimpleNamespace(slices=[SimpleNamespace(num_tokens=n) for n in tokens], forward_contexts=["first", "second"])


def graphs(rank: Rank) -> dict[str, Any]:
    """A manager is made, attached, captures and lets go."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_graphs, graph_manager
    from vllm_ascend.compilation import acl_graph

    seen: dict[str, Any] = {}
    log: Log = []
    with mock.patch.object(acl_graph, "_graph_params", "native parameters"):
        own = manager(log)
        seen["made"], seen["native"] = list(log), own.native_params
        own.attach(stages(log))
        (twin,) = next(iter(own.twin_descs.values()))
        first = own.recorded
        log.clear()

        def capture(self: Any, model: Any, *inputs: Any, **named: Any) -> None:
            in_force = acl_graph.get_graph_params() is own.recorded
            log.append(
                (type(model).__name__, *inputs, named.get("model_state"), named.get("progress_bar_desc"), in_force)
            )

        with (
            mock.patch.object(graph_manager.UBatchGraphs, "capture_twins", capture),
            mock.patch.object(ascend_graphs, "communicator_switch", scope(log, "communicator")),
            mock.patch.object(ascend_graphs.ModelAclGraphManager, "capture", noted([], "native")),
        ):  # as vllm-ascend's runner does it
            own.capture(torch.nn.Identity(), "state", *[None] * 5, progress_bar_desc="Graphs")
        seen["captured"] = list(log)
        seen["again native"] = acl_graph.get_graph_params()

        with mock.patch.object(graph_manager.TwinGraphs, "before_capture", lambda self, *args: log.append(args[2])):
            for warmup in (True, False):
                log.clear()
                own.before_capture(twin, prepared(2, 2), warmup)
                kept = own.twin_params.get(twin)
                seen[f"before, {warmup}"] = (list(log), kept and kept.num_tokens, own.recorded.twin is kept)
        with mock.patch.object(graph_manager.TwinGraphs, "after_capture", lambda self, desc: log.append(desc)):
            log.clear()
            seen["nothing recorded"] = error_of(own.after_capture, twin)
            assert not log
            for stage in own.twin_params[twin].stages:
                for kept in (stage.events, stage.handles, stage.attn_params):
                    kept[2].append("entry")
            own.after_capture(twin)
            seen["after"] = log == [twin]
        own.graphs[twin] = "graph"
        own.release_twin(twin)
        own.release_twin(twin)
        seen["released"] = (dict(own.graphs), dict(own.twin_params))
        own.before_capture(twin, prepared(2, 2), False)
        own.graphs[twin] = "graph"
        own.release_twins()
        seen["all released"] = (
            dict(own.graphs),
            dict(own.twin_params),
            own.recorded.twin.num_tokens,
            own.recorded is not first,
        )
        own.before_capture(twin, prepared(2, 2), False)
        own.attach(None)
        seen["detached"] = (own.twin_descs, own.twin_params, own.recorded.twin.num_tokens)
    return seen


def replays(rank: Rank) -> dict[str, Log]:
    """Who replays a graph of a whole batch, and of a split one."""
    from afd_backports.vllm_v026_mrv2_dbo import ascend_graphs
    from afd_backports.vllm_v026_mrv2_dbo.descriptor import AFDBatchExecutionDescriptor
    from vllm.config.compilation import CUDAGraphMode
    from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor, ModelCudaGraphManager

    log: Log = []
    own = manager(log)
    own.attach(stages(log))
    (twin,) = next(iter(own.twin_descs.values()))
    own.twin_params[twin], own.graphs[twin] = "parameters", "graph"

    def updated(replay: Any, params: Any, contexts: Any, **more: Any) -> Any:
        config, lost = more.pop("vllm_config"), more.pop("lost")
        log.append((params, contexts, more, config is own.vllm_config))
        output = replay()
        lost()
        return output

    seen: dict[str, Log] = {}
    native = AFDBatchExecutionDescriptor(CUDAGraphMode.FULL, 4, 4, 1)
    with (
        mock.patch.object(ascend_graphs.ModelAclGraphManager, "run_fullgraph", lambda self, desc: log.append(("vllm-ascend", desc)) or "native"),
        mock.patch.object(ModelCudaGraphManager, "run_fullgraph", lambda self, desc: log.append(("vLLM", desc == twin)) or "output"),
        mock.patch.object(ascend_graphs, "replay_updated", updated),
        mock.patch.object(own, "staged_replay", return_value=contextlib.nullcontext(prepared(2, 2))),
    ):  # fmt: skip
        for name, desc in (("native", BatchExecutionDescriptor(CUDAGraphMode.FULL, 4, 4, 1)), ("single", native), ("split", twin)):  # fmt: skip
            log.clear()
            output = own.run_fullgraph(desc)
            seen[name] = [*(("vllm-ascend", e[1] is desc) if e[0] == "vllm-ascend" else e for e in log), output]
    seen["lost"] = [own.graphs, own.twin_params]
    return seen
