"""What those methods of vllm-ascend do that its stand-in replaces: called on a few steps, input and result as plain numbers.

`ascend-record.json` was written on the pinned commit by `python -m tests.sim.ascend_record`. A source tree has to do the same, and so
has the stand-in: signatures alone have let padding through that is not vllm-ascend's.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from tests.sim.ascend import npu_runner
from tests.sim.ascend_config import ENGINE, MLA
from tests.sim.bugs import replaced
from tests.sim.config import Graphs, make_config
from tests.sim.environments import ascend
from tests.sim.ranks import Rank, run_ranks
from tests.sim.runner import join_groups, make_runner
from tests.sim.scheduler import MiniScheduler

FILE = Path(__file__).with_name("ascend-record.json")

SIZES = (2, 4, 8)

COUNTS = ((8, 8), (5, 7), (6, 3), (1, 2), (7, 7), (4, 4), (3, 1))
"""Requests of each rank in the decode steps; fewer after more, as rows of others are left then."""

Call = dict[str, Any]
"""What a method was called with, and what it returned: numbers, names and lists of them."""


def recorded() -> Mapping[str, list[Call]]:
    """What the file says, by method."""
    return json.loads(FILE.read_text(encoding="utf-8"))["calls"]


def plain(value: Any) -> Any:
    """Tensors, arrays and enumerations as JSON has them."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def same_memory(one: Any, other: Any) -> bool:
    """Whether both are views of one storage."""
    first, second = (torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in (one, other))
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


class Recorder:
    """A runner of vllm-ascend on this rank, whose calls are kept.

    Attributes:
        calls: by name of the method, in order.
        runner: it.
    """

    def __init__(self, rank: Rank) -> None:
        self.calls: dict[str, list[Call]] = {}
        self.rank = rank
        config = make_config(MLA, graphs=Graphs(SIZES, "FULL_DECODE_ONLY"), dp=(rank.index, rank.size), **ENGINE)
        join_groups(config, rank=rank.index, size=rank.size, rendezvous=rank.folder / "groups")
        self.config = config
        self.runner = make_runner(config, npu_runner, capture=False)

    def keep(self, name: str, input: Any, result: Any) -> None:
        """One call."""
        self.calls.setdefault(name, []).append({"input": plain(input), "result": plain(result)})

    @contextlib.contextmanager
    def watching(self, owner: Any, name: str, key: str, numbers: Callable[..., tuple[Any, Any]]) -> Iterator[None]:
        """Keep the calls of a method in the block.

        Args:
            owner: its class.
            name: the method.
            key: under which the calls are kept.
            numbers: input and result, from the result and the arguments.
        """
        native = vars(owner)[name]
        function = native.__func__ if isinstance(native, (classmethod, staticmethod)) else native

        def watched(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self.keep(key, *numbers(result, *args, **kwargs))
            return result

        with replaced(owner, name, classmethod(watched) if isinstance(native, classmethod) else watched):
            yield

    # ---- numbers ----------------------------------------------------------------------------------------------

    def batch(self, batch: Any) -> dict[str, Any]:
        """A batch, and which of its fields are views of the persistent buffers."""
        names = (
            "num_reqs", "num_reqs_after_padding", "num_tokens", "num_tokens_after_padding", "query_start_loc", "query_start_loc_np",
            "seq_lens", "seq_lens_np", "seq_lens_cpu_upper_bound", "num_scheduled_tokens", "num_computed_tokens_np",
            "is_prefilling_np", "logits_indices",
        )  # fmt: skip
        buffers = self.runner.input_buffers
        shared = ("query_start_loc", "seq_lens", "seq_lens_np", "input_ids", "positions", "is_padding")
        fields = vars(batch)
        return {
            **{name: fields[name] for name in names},
            "positions": batch.positions[: batch.num_tokens],
            "attn_state": batch.attn_state.name,
            "views": [name for name in shared if same_memory(fields[name], vars(buffers)[name])],
        }

    def prepared(self, result: Any, runner: Any, scheduled: Any, desc: Any) -> tuple[Any, Any]:
        """Of `prepare_inputs`."""
        asked = [desc.cg_mode.name, desc.num_tokens, desc.num_reqs]
        rows = self.runner.input_buffers.query_start_loc
        left = rows[result.num_reqs_after_padding + 1 :]
        return [list(scheduled.num_scheduled_tokens.values()), asked], {**self.batch(result), "offsets behind": left}

    def dummy(self, result: Any, cls: Any, num_reqs: int, num_tokens: int, buffers: Any) -> tuple[Any, Any]:
        """Of `make_dummy`; whether the attention of a capture reads the buffers matters."""
        return [num_reqs, num_tokens], {**self.batch(result), "host lengths": buffers.seq_lens_np}

    def metadata(self, result: Any, state: Any, batch: Any, mode: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Of `prepare_attn`; of prefills only their size, as the stand-in takes their tokens for requests."""
        from vllm_ascend.ops import rotary_embedding

        first = next(iter(result.values()))
        seen = {
            "layers": len(result),
            "objects": len({id(metadata) for metadata in result.values()}),
            "kept": result is state.attn_metadata,
            "tokens": first.num_actual_tokens,
            "slots": first.slot_mapping,
        }
        if batch.num_scheduled_tokens.max() == 1:
            decode = first.decode
            seen |= {
                "decodes": [first.num_decodes, first.num_decode_tokens, first.num_prefills, first.prefill],
                "state": first.attn_state.name,
                "lengths": [
                    first.seq_lens,
                    decode.seq_lens,
                    decode.seq_lens_list,
                    decode.seq_lens_device,
                    decode.max_seq_lens,
                ],
                "offsets": first.query_start_loc,
                "tables": [decode.block_table.shape[0], decode.block_table[:, 0]],
                "positions": decode.input_positions.shape,
                # A graph reads the factors where they were when it was captured.
                "rotary": [
                    same_memory(decode.cos, rotary_embedding._cos_mla),
                    decode.cos.storage_offset(),
                    decode.cos.shape,
                ],
            }
        fields = [batch.num_reqs, batch.num_reqs_after_padding, batch.num_tokens, batch.num_tokens_after_padding]
        return [mode.name, *fields, kwargs.get("for_capture", False)], seen

    # ---- what is played ---------------------------------------------------------------------------------------

    def capture(self) -> None:
        """Capture the native graphs: parameters by number of tokens, and what is kept of workspaces."""
        import torch_npu
        from vllm_ascend.compilation import acl_graph

        params, weak = acl_graph.get_graph_params(), []
        before = [sorted(kept) for kept in (params.events, params.handles, params.attn_params, params.workspaces)]
        again = raised(acl_graph.set_graph_params, [2])
        self.keep("set_graph_params", SIZES, [before, list(params.workspaces.values()), again])

        def weak_reference(tensor: torch.Tensor) -> torch.Tensor:
            weak.append(tensor.view_as(tensor))
            return weak[-1]

        with replaced(torch_npu._C, "_weak_ref_tensor", weak_reference):
            self.runner.capture_model()
        counts = [
            [size, len(params.events[size]), len(params.handles[size]), len(params.attn_params[size])] for size in SIZES
        ]
        distinct = len({id(space) for space in params.workspaces.values()})
        self.keep(
            "capture", SIZES, [counts, distinct, all(any(s is w for w in weak) for s in params.workspaces.values())]
        )

    def steps(self) -> None:
        """A prefill step, and decode steps of all counts; then a dummy run."""
        runner = self.runner
        scheduler = MiniScheduler(runner)
        for at in range(8):
            scheduler.add(str(at), [3 + at, 5, 7, 9][: 2 + at % 3])
        scheduler.step()
        everyone = scheduler.requests
        for counts in COUNTS:
            scheduler.requests = {name: everyone[name] for name in list(everyone)[: counts[self.rank.index]]}
            with self.replay_watched():
                scheduler.step()
        with self.replay_watched():
            runner._dummy_run(3, uniform_decode=True)

    @contextlib.contextmanager
    def replay_watched(self) -> Iterator[None]:
        """Keep what a replay and its update do, in order."""
        import torch_npu
        from vllm_ascend.compilation import acl_graph

        from tests.sim.npu import ExternalEvent

        manager, params, done = self.runner.cudagraph_manager, acl_graph.get_graph_params(), []
        operator = torch_npu.npu_fused_infer_attention_score_v2
        begin, end, record = torch.npu.graph_task_update_begin, torch.npu.graph_task_update_end, ExternalEvent.record
        desc_run, wait = manager.run_fullgraph, manager.update_stream.wait_stream

        def place(kept: Mapping[int, list[Any]], item: Any) -> list[int]:
            return [at for size in SIZES for at, own in enumerate(kept[size]) if own is item]

        class Operator:
            @staticmethod
            def out(*args: Any, **kwargs: Any) -> Any:
                (size,) = {size for size in SIZES if kwargs["workspace"] is params.workspaces[size]}
                done.append(["operator", size, kwargs["actual_seq_kvlen"]])
                return operator.out(*args, **kwargs)

        def began(stream: Any, handle: Any) -> Any:
            done.append(["begin", stream is manager.update_stream, *place(params.handles, handle)])
            return begin(stream, handle)

        def ended(stream: Any) -> Any:
            done.append(["end", stream is manager.update_stream])
            return end(stream)

        def let_go(event: Any, stream: Any) -> Any:
            done.append(["record", stream is manager.update_stream, *place(params.events, event)])
            return record(event, stream)

        def waited(stream: Any) -> Any:
            done.append(["wait", stream is torch.cuda.current_stream()])
            return wait(stream)

        def run(desc: Any) -> Any:
            graph = manager.graphs[desc]
            replay = graph.replay

            def replayed() -> None:
                done.append(["replay"])
                replay()

            with mock.patch.object(graph, "replay", replayed):
                output = desc_run(desc)
            self.keep("run_fullgraph", [desc.num_tokens], [list(output.shape), done])
            return output

        with (
            replaced(torch_npu, "npu_fused_infer_attention_score_v2", Operator),
            replaced(torch.npu, "graph_task_update_begin", began),
            replaced(torch.npu, "graph_task_update_end", ended),
            replaced(ExternalEvent, "record", let_go),
            mock.patch.object(manager.update_stream, "wait_stream", waited),
            mock.patch.object(manager, "run_fullgraph", run),
        ):
            yield

    # ---- functions that are called directly -------------------------------------------------------------------

    def functions(self) -> None:
        """Those that hang on their arguments alone."""
        from vllm_ascend.worker.v2.attn_utils import build_attn_state

        for lengths, scheduled in (
            ([3, 4], [3, 4]), ([4, 4], [1, 1]), ([1, 1], [1, 1]), ([9, 3], [1, 3]), ([9, 3], [2, 3]), ([4, 9, 7], [4, 2]), ([1, 5], [1, 1]),
        ):  # fmt: skip
            arguments = np.array(lengths, dtype=np.int32), len(scheduled), *([np.array(scheduled, dtype=np.int32)] * 2)
            self.keep("build_attn_state", [lengths, scheduled], build_attn_state(self.config, *arguments).name)
        buffers = self.runner.input_buffers
        self.keep(
            "AscendInputBuffers",
            [],
            [list(buffers.query_start_loc.shape), buffers.seq_lens_np.shape, str(buffers.seq_lens_np.dtype)],
        )
        self.rotary()
        self.context()
        self.switches()

    def rotary(self) -> None:
        """Where rotary factors are, and that they are the buffers' only if they are asked for."""
        from vllm_ascend.ops import rotary_embedding as rotary

        before = rotary._cos_mla, rotary._sin_mla
        rotary.set_cos_and_sin(self.config, 8, 1, torch.float32, torch.device("cpu"))
        kept = (rotary._cos_mla, rotary._sin_mla) == before if before[0] is None else rotary._cos_mla is before[0]
        self.keep("set_cos_and_sin", [], [list(rotary._cos_mla.shape), list(rotary._sin_mla.shape), kept])
        for positions in ([5, 2, 9], [0]):
            for cached in (False, True):
                cos, sin = rotary.get_cos_and_sin_mla(torch.tensor(positions), use_cache=cached)
                views = [same_memory(cos, rotary._cos_mla), same_memory(sin, rotary._sin_mla), cos.storage_offset()]
                self.keep(
                    "get_cos_and_sin_mla", [positions, cached], [list(cos.shape), cos.flatten(), sin.flatten(), views]
                )

    def context(self) -> None:
        """What the platform puts into a forward context, and how it is read."""
        from vllm.forward_context import DPMetadata, set_forward_context
        from vllm.platforms import current_platform
        from vllm_ascend.ascend_forward_context import _EXTRA_CTX

        names, masks = ("capturing", "num_tokens", "max_tokens_across_dp", "is_draft_model"), []
        for across in ([4, 4], [3, 5], [5, 2]):
            tokens = across[self.rank.index]
            metadata = DPMetadata.make(self.config.parallel_config, tokens, torch.tensor(across, dtype=torch.int32))
            found = current_platform.set_additional_forward_context(
                attn_metadata={}, vllm_config=self.config, dp_metadata=metadata, num_tokens=tokens
            )
            masks.append(found["mc2_mask"])
            shown = [None if mask is None else [mask, same_memory(mask, masks[0])] for mask in masks[-1:]]
            self.keep(
                "set_additional_forward_context", [tokens, across], [{name: found[name] for name in names}, shown]
            )
        with set_forward_context(
            {}, self.config, num_tokens=4, num_tokens_across_dp=torch.tensor([4] * self.rank.size)
        ):
            before = _EXTRA_CTX.capturing
            _EXTRA_CTX.capturing = True
            self.keep(
                "_ExtraForwardContextProxy", [], [before, _EXTRA_CTX.capturing, raised(lambda: _EXTRA_CTX.no_such_name)]
            )

    def switches(self) -> None:
        """Blocks in which names mean something else."""
        from vllm.distributed.device_communicators import cuda_communicator
        from vllm.v1.worker.gpu import model_runner
        from vllm_ascend.worker.v2.model_runner import graph_manager_wrapper
        from vllm_ascend.worker.v2.utils import communicator_switch

        for name, block, owner, member in (
            ("communicator_switch", communicator_switch, cuda_communicator, "CudaCommunicator"),
            (
                "graph_manager_wrapper",
                lambda: graph_manager_wrapper(self.runner),
                model_runner,
                "ModelCudaGraphManager",
            ),
        ):
            before = vars(owner)[member]
            with block():
                inside = vars(owner)[member]
            self.keep(name, [member], [inside is before, vars(owner)[member] is before])


def raised(function: Callable[..., Any], *args: Any) -> str:
    """Name of the class of what a call raises."""
    try:
        function(*args)
    except Exception as error:
        return type(error).__name__
    return ""


def record(rank: Rank) -> dict[str, list[Call]]:
    """All calls of this rank, by method."""
    from vllm_ascend.worker.v2.input_batch import AscendInputBatch
    from vllm_ascend.worker.v2.model_runner import NPUModelRunner
    from vllm_ascend.worker.v2.model_states.default import AscendModelState

    recorder = Recorder(rank)
    with (
        recorder.watching(NPUModelRunner, "prepare_inputs", "prepare_inputs", recorder.prepared),
        recorder.watching(AscendInputBatch, "make_dummy", "make_dummy", recorder.dummy),
        recorder.watching(AscendModelState, "prepare_attn", "prepare_attn", recorder.metadata),
    ):
        recorder.capture()
        recorder.steps()
    recorder.functions()
    return recorder.calls


def main() -> None:
    """Write the file, on a source tree.

    Raises:
        SystemExit: there is none.
    """
    environment = ascend()
    if environment is None:
        raise SystemExit("no source tree of vllm-ascend is named")
    first, second = run_ranks(record, environment=environment)
    calls = {name: [[a, b] for a, b in zip(first[name], second[name], strict=True)] for name in first}
    head = {"distribution": "vllm-ascend", "commit": "80d8c194f7584b17fe08065ea99a130916f6b0e7"}
    rows = ",\n".join(
        f"  {json.dumps(name)}: [\n   " + ",\n   ".join(map(json.dumps, kept)) + "\n  ]" for name, kept in calls.items()
    )
    body = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    FILE.write_text(f'{{\n{body},\n "calls": {{\n{rows}\n }}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    from tests.sim import ascend_record  # whose functions the ranks find by name

    ascend_record.main()
