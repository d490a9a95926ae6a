"""Whole steps with the generated ubatch runner, in the processes of DP ranks: played, aborted, looked at."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import torch

from tests.dbo.points import OwnError
from tests.sim.bugs import replaced
from tests.sim.config import MOE, Dbo, make_config
from tests.sim.ranks import Rank
from tests.sim.runner import join_groups, make_runner
from tests.sim.scenario import Outcome, Scenario, play_all
from tests.sim.scheduler import Logits, LogitSpy, MiniScheduler
from tests.sim.trace import TRACE, Mark, hooked

SOON = 4.0
"""Seconds within which the caller has the exception, on a busy machine: less than `ubatch_runner.PATIENCE`."""


DBO = Dbo()


def play_all_on(rank: Rank, scenarios: Mapping[str, Scenario]) -> dict[str, Outcome]:
    """With the generated runner, one after the other."""
    from tests.dbo.runners import DboRunner

    return play_all(rank, scenarios, DboRunner)


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

        config = make_config(model, dbo=dbo, dp=(rank.index, rank.size), **{"block_size": 64, **more})
        join_groups(config, rank=rank.index, size=rank.size, rendezvous=rank.folder / "groups")
        self.rank, self.named = rank, 0
        self.runner = make_runner(config, kind or DboRunner, blocks=256, capture=capture)
        self.scheduler, self.spy = MiniScheduler(self.runner), LogitSpy(self.runner)
        TRACE.clear()

    def add(self, count: int = 3) -> list[str]:
        """Some requests; decode steps of three are split in one and two."""
        names = []
        for at in range(count):
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


def undisturbed(rank: Rank) -> Logits:
    """The logits of a third step in single batches."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    session = Session(rank, GPUModelRunner, None)
    session.add()
    return {(key[0].partition(":")[2], key[1]): logits for key, logits in session.steps(3).items()}


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


# ---- state of the stages --------------------------------------------------------------------------------------


def look(rank: Rank) -> list[dict[str, Any]]:
    """What the forward context of each stage holds in a prefill step, and what the host was told."""
    from afd_backports.vllm_v026_mrv2_dbo.host import PlainMetadata
    from vllm.forward_context import ForwardContext, get_forward_context
    from vllm.platforms.interface import Platform

    from tests.dbo.runners import DboRunner

    shared = torch.zeros(64, dtype=torch.bool)
    seen: list[dict[str, Any]] = []
    names: list[list[str]] = []
    sent: list[dict[int, list[int]]] = []
    built: list[tuple[int, int]] = []

    class Host(PlainMetadata):
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
                    "own mask": context.additional_kwargs["mask"].untyped_storage().data_ptr()
                    != shared.untyped_storage().data_ptr(),
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
