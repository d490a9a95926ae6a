"""What stays for an NPU when the backport retires, on vLLM 0.30.0 and its native ubatches, as far as vllm-ascend can be imported there."""

from __future__ import annotations

import importlib
import threading
import traceback
from types import SimpleNamespace
from typing import Any

import torch

from tests.sim import npu, streams
from tests.sim.bugs import replaced
from tests.sim.ranks import Rank

TOKENS, LAYERS = 2, ("layer.0", "layer.1")

WANTED = (
    "vllm_ascend.compilation.acl_graph", "vllm_ascend.worker.v2.utils", "vllm_ascend.worker.v2.aclgraph_utils", "vllm_ascend.ops.rotary_embedding",
    "vllm_ascend.worker.v2.input_batch", "vllm_ascend.attention.mla_v1", "vllm_ascend.worker.v2.model_runner",
)  # fmt: skip
"""Modules of vllm-ascend that a runner with ubatches needs."""


def imports(rank: Rank) -> dict[str, str]:
    """What each of the modules, and the patches, say when they are imported: where in vllm-ascend, and what is not there."""
    seen = {name: _said(lambda name=name: importlib.import_module(name)) for name in WANTED}  # type: ignore[misc]
    seen["patches"] = _said(lambda: importlib.import_module("vllm_ascend.utils").adapt_patch(is_global_patch=True))
    return seen


def _said(call: Any) -> str:
    try:
        call()
    except ImportError as error:
        last = [frame for frame in traceback.extract_tb(error.__traceback__) if "/vllm_ascend/" in frame.filename][-1]
        place = "vllm_ascend/" + last.filename.rpartition("/vllm_ascend/")[2]
        return f"{place}:{last.lineno}: {str(error).partition(' (')[0]}"
    return "imported"


class Implementation:
    """The attention of a layer: it writes a length, which an update brings."""

    @staticmethod
    def update_graph_params(stream: Any, context: Any, num_tokens: int, *rest: Any, **options: Any) -> None:
        """As vllm-ascend's: the parameters in force, entry by entry."""
        from vllm_ascend.compilation import acl_graph

        params = acl_graph.get_graph_params()
        kept = zip(params.attn_params[num_tokens], params.handles[num_tokens], params.events[num_tokens], strict=True)
        with torch.npu.stream(stream):  # type: ignore[attr-defined]
            for metadata, (out, handle, event) in zip(context.attn_metadata.values(), kept, strict=True):
                if metadata.length < 0:
                    raise ValueError("no length")
                npu.graph_task_update_begin(stream, handle)
                npu.emit(lambda out=out, length=metadata.length: out.fill_(length))  # type: ignore[misc]
                npu.graph_task_update_end(stream)
                event.record(stream)


BACKEND = SimpleNamespace(get_impl_cls=lambda: Implementation)


def attend(out: torch.Tensor) -> None:
    """Captured so that a replay waits for the update, with what that needs among the parameters in force."""
    from vllm_ascend.compilation import acl_graph

    params, stream = acl_graph.get_graph_params(), streams.current_stream()
    event = npu.ExternalEvent()
    event.wait(stream)
    event.reset(stream)
    npu.graph_task_group_begin(stream)
    npu.emit(lambda: out.fill_(-1))
    params.handles[TOKENS].append(npu.graph_task_group_end(stream))
    params.attn_params[TOKENS].append(out)
    params.events[TOKENS].append(event)


def contexts(*lengths: tuple[int, int]) -> list[Any]:
    """A forward context for each stage, with a length for each layer."""
    from vllm.forward_context import ForwardContext

    return [
        ForwardContext({}, {name: SimpleNamespace(length=n) for name, n in zip(LAYERS, own, strict=True)}, {})
        for own in lengths
    ]


def capture(outs: list[list[torch.Tensor]]) -> tuple[Any, Any]:
    """A graph of two native stages that take turns at each layer, and its parameters."""
    from afd_backports.vllm_v026_mrv2_dbo.ascend_params import RecordedParams, TwinParams, params_in_force
    from vllm.v1.worker import ubatching

    stream, barrier = streams.Stream(), threading.Barrier(3)
    # vllm-ascend redirects names of torch.cuda; torch.Event, which native ubatches make, is not among them.
    with replaced(torch, "Event", streams.Event):
        stages = ubatching.make_ubatch_contexts(2, stream, streams.Stream(), contexts((0, 0), (0, 0)), barrier)

    def run(stage: Any) -> None:
        with stage:
            for out in outs[stage.id]:
                attend(out)
                ubatching.dbo_yield()

    threads = [threading.Thread(target=run, args=(stage,)) for stage in stages]
    recorded, graph = RecordedParams(), torch.npu.NPUGraph()  # type: ignore[attr-defined]
    recorded.twin = TwinParams(TOKENS)
    with replaced(torch.cuda, "set_stream", streams.set_stream), params_in_force(recorded):
        for thread in threads:
            thread.start()
        barrier.wait()
        with torch.npu.graph(graph, stream=stream):  # type: ignore[attr-defined]
            stages[0].cpu_wait_event.set()
            for thread in threads:
                thread.join()
    recorded.twin.check(len(LAYERS))
    return graph, recorded.twin


def replayed(rank: Rank) -> dict[str, Any]:
    """Replays with lengths of their own for each stage; one whose update fails; what native ubatches say on an NPU."""
    import vllm
    from afd_backports.vllm_v026_mrv2_dbo.ascend_params import GraphParamsError, replay_updated
    from vllm.v1.worker import ubatching
    from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor

    seen: dict[str, Any] = {
        "vllm": vllm.__version__,
        "native": "num_ubatches" in BatchExecutionDescriptor.__dataclass_fields__,
    }
    try:
        ubatching.make_ubatch_contexts(2, streams.Stream(), streams.Stream(), [None, None], threading.Barrier(3))  # type: ignore[list-item]
    except streams.SimulationError as error:
        seen["native stages"] = str(error)
    outs = [[torch.zeros(1) for _ in LAYERS] for _ in range(2)]
    (graph, params), updates, lost = capture(outs), streams.Stream(), []

    def replay(given: list[Any]) -> list[list[float]]:
        replay_updated(
            graph.replay,
            params,
            given,
            backend=BACKEND,
            stream=updates,
            vllm_config=None,
            lost=lambda: lost.append(True),  # type: ignore[arg-type]
        )
        streams.synchronize()
        return [[float(out) for out in own] for own in outs]

    seen["first"] = replay(contexts((3, 4), (5, 6)))
    seen["second"] = replay(contexts((7, 8), (9, 10)))
    one_layer = contexts((1, 1), (2, 2))
    one_layer[1].attn_metadata.popitem()
    for name, given in (("other layers", one_layer), ("no length", contexts((1, 1), (2, -1)))):
        try:
            replay(given)
        except (GraphParamsError, ValueError) as error:
            seen[name] = type(error).__name__, len(lost)
    streams.synchronize()  # nothing waits
    seen["threads"] = threading.active_count()
    return seen


def rotary(rank: Rank) -> dict[str, Any]:
    """Where the factors of a stage are written; the stand-in's module, for vllm-ascend's cannot be imported."""
    from afd_backports.vllm_v026_mrv2_dbo.ascend_stages import rotary_factors_from
    from vllm_ascend.ops import rotary_embedding

    seen: dict[str, Any] = {}
    with rotary_factors_from(1):
        seen["without"] = rotary_embedding._cos_mla
    cos, sin = torch.arange(4.0), torch.arange(4.0)
    rotary_embedding._cos_mla, rotary_embedding._sin_mla = cos, sin
    try:
        with rotary_factors_from(1):
            rotary_embedding._cos_mla[:1] = rotary_embedding._sin_mla[:1] = 9
            raise ValueError
    except ValueError:
        seen["restored"] = rotary_embedding._cos_mla is cos and rotary_embedding._sin_mla is sin
    return {**seen, "cos": cos.tolist(), "sin": sin.tolist()}
