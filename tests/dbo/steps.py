"""Whole steps on DP ranks, natively and with the generated execute path, in processes of `tests.sim.ranks`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.sim.config import MOE, Dbo, make_config
from tests.sim.ranks import Rank
from tests.sim.runner import join_groups, make_runner
from tests.sim.scheduler import Logits, LogitSpy, MiniScheduler, Tokens

PROMPTS = (
    {"a": [3, 5, 7, 9, 11], "d": [8, 9], "e": list(range(21, 32))},
    {"b": list(range(10, 31)), "c": [40, 41], "f": [22, 23, 24]},
)
STEPS = 6
RUNS = ("native", "whole", "split")


@dataclass
class Outcome:
    """What one rank saw in one run.

    Attributes:
        tokens: sampled, by request.
        logits: by request and position.
        widths: tokens of the model's forward passes, by step.
        prepared: how often attention metadata was built, by step.
        ubatches: of the descriptor, by step; absent natively.
        idle: widths of the step in which the other rank, or this one, had nothing to do.
        dummy: widths of a dummy step on both ranks.
    """

    tokens: Tokens
    logits: Logits
    widths: list[list[int]] = field(default_factory=list)
    prepared: list[int] = field(default_factory=list)
    ubatches: list[int] = field(default_factory=list)
    idle: list[int] = field(default_factory=list)
    dummy: list[int] = field(default_factory=list)


def make_kind(name: str) -> type:
    """The class of the runner: vLLM's own, or with the generated execute path before it."""
    from afd_backports.vllm_v026_mrv2_dbo.runner import UBatchExecution
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    return GPUModelRunner if name == "native" else type("Split", (UBatchExecution, GPUModelRunner), {})


def make_ubatch_runner(runner: Any) -> Any:
    """The simplest that serves the execute path: one ubatch after the other, in the calling thread."""
    from afd_backports.vllm_v026_mrv2_dbo import slicer
    from vllm.config.compilation import CUDAGraphMode
    from vllm.forward_context import DPMetadata, create_forward_context, get_forward_context, override_forward_context
    from vllm.v1.worker.gpu.attn_utils import build_slot_mappings_by_layer

    @dataclass
    class State:
        slices: Any
        contexts: list[Any]

    class Sequential:
        def prepare(self, input_batch, block_tables, slot_mappings, cg_mode=CUDAGraphMode.NONE, for_capture=False):
            assert (cg_mode, for_capture) == (CUDAGraphMode.NONE, False)
            slices, contexts = slicer.create_ubatch_slices(input_batch, 2), []
            for part in slices:
                ubatch = slicer._slice_input_batch(
                    input_batch, part, *(torch.zeros(n, dtype=torch.int32) for n in self._sizes(part))
                )
                slots = slot_mappings[:, part.token_slice]
                metadata = runner.model_state.prepare_attn(
                    ubatch, cg_mode, tuple(table[part.request_slice] for table in block_tables), slots,
                    runner.attn_groups, runner.kv_cache_config,
                )  # fmt: skip
                across = torch.full((runner.dp_size,), part.num_tokens, dtype=torch.int32)
                contexts.append(
                    create_forward_context(
                        metadata, runner.vllm_config,
                        dp_metadata=DPMetadata.make(runner.parallel_config, part.num_tokens, across),
                        slot_mapping=build_slot_mappings_by_layer(slots, runner.kv_cache_config),
                    )
                )  # fmt: skip
            return State(slices, contexts)

        def _sizes(self, part: Any) -> tuple[int, int]:
            requests = part.request_slice.stop - part.request_slice.start
            return requests + 1, requests

        def stage(self, state, cg_mode):
            assert cg_mode == CUDAGraphMode.NONE

        def run(self, model, model_inputs, ubatch_state):
            outputs = []
            assert get_forward_context().ubatch_slices is ubatch_state.slices  # what the platform is told, too
            for part, context in zip(ubatch_state.slices, ubatch_state.contexts, strict=True):
                with override_forward_context(context):
                    outputs.append(model(**slicer.slice_model_inputs(model_inputs, part.token_slice)))
            return slicer.merge_ubatch_outputs(outputs)

    return Sequential()


def run_all(rank: Rank) -> dict[str, Outcome]:
    """All runs."""
    return {name: run(rank, name) for name in RUNS}


def run(rank: Rank, name: str) -> Outcome:
    """All steps of one run on this rank."""
    config = make_config(MOE, dbo=Dbo() if name == "split" else None, dp=(rank.index, rank.size))
    join_groups(config, rank=rank.index, size=rank.size, rendezvous=rank.folder / "groups")
    runner = make_runner(config, make_kind(name))
    if name == "split":
        runner.ubatch_runner = make_ubatch_runner(runner)
    scheduler, spy = MiniScheduler(runner), LogitSpy(runner)
    outcome = Outcome(scheduler.outputs, spy.seen)
    prepare_inputs, forward, prepare_attn = runner.prepare_inputs, runner.model.forward, runner.model_state.prepare_attn
    seen: list[int] = []
    built: list[int] = []

    def described(scheduler_output: Any, batch_desc: Any) -> Any:
        if name != "native":
            outcome.ubatches.append(batch_desc.num_ubatches)
        return prepare_inputs(scheduler_output, batch_desc)

    def measured(input_ids: torch.Tensor, positions: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        seen.append(len(positions))
        return forward(input_ids, positions, *args, **kwargs)

    def counted(*args: Any, **kwargs: Any) -> Any:
        built.append(1)
        return prepare_attn(*args, **kwargs)

    runner.prepare_inputs, runner.model.forward, runner.model_state.prepare_attn = described, measured, counted

    def widths(step: Callable[[], object]) -> list[int]:
        seen.clear()
        step()
        return list(seen)

    for request, prompt in PROMPTS[rank.index].items():
        scheduler.add(request, prompt)
    for _ in range(STEPS):
        built.clear()
        outcome.widths.append(widths(scheduler.step))
        outcome.prepared.append(len(built))
    # The other rank has nothing to do: it takes part with one token, as the engine makes it do.
    outcome.idle = widths(scheduler.step if rank.index == 0 else lambda: runner._dummy_run(1, uniform_decode=True))
    outcome.dummy = widths(lambda: runner._dummy_run(7, uniform_decode=True))
    return outcome
