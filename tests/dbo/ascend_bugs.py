"""Bugs to inject into the generated Ascend runner: the tests of its tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from tests.dbo.ascend import dbo_runner, make
from tests.dbo.eager import clean
from tests.dbo.graphs import staged_by_a_step
from tests.sim import tape
from tests.sim.bugs import replaced
from tests.sim.race import checked
from tests.sim.ranks import Rank
from tests.sim.scenario import Outcome, Scenario, play

Bug = Callable[[], AbstractContextManager[None]]


def only_the_first_stage_is_updated() -> AbstractContextManager[None]:
    from afd_backports.vllm_v026_mrv2_dbo import ascend_params

    native = ascend_params.merged_context
    stack = contextlib.ExitStack()
    stack.enter_context(replaced(ascend_params.TwinParams, "merged", lambda self: self.stages[0]))
    stack.enter_context(replaced(ascend_params, "merged_context", lambda contexts: native(contexts[:1])))
    return stack


def _contexts(choose: Callable[[list[Any]], list[Any]]) -> AbstractContextManager[None]:
    from afd_backports.vllm_v026_mrv2_dbo import ascend_params

    native = ascend_params.merged_context
    return replaced(ascend_params, "merged_context", lambda contexts: native(choose(contexts)))


def both_stages_are_updated_with_the_second_ones_lengths() -> AbstractContextManager[None]:
    return _contexts(lambda contexts: [contexts[1], contexts[1]])


def the_stages_are_mixed_up() -> AbstractContextManager[None]:
    return _contexts(lambda contexts: contexts[::-1])


def lengths_of_an_earlier_step() -> AbstractContextManager[None]:
    first: dict[int, list[Any]] = {}
    return _contexts(lambda contexts: first.setdefault(0, contexts))


def parameters_by_number_of_tokens() -> AbstractContextManager[None]:
    from afd_backports.vllm_v026_mrv2_dbo import ascend_params
    from afd_backports.vllm_v026_mrv2_dbo.ascend_graphs import AFDModelAclGraphManagerV2

    stack = contextlib.ExitStack()
    stack.enter_context(replaced(AFDModelAclGraphManagerV2, "params_scope", lambda self, params: nullcontext()))
    stack.enter_context(replaced(ascend_params, "params_in_force", lambda params: nullcontext()))
    return stack


def one_set_of_parameters_for_both_stages() -> AbstractContextManager[None]:
    from afd_backports.vllm_v026_mrv2_dbo import ascend_params

    return replaced(ascend_params, "dbo_current_ubatch_id", lambda: 0)


def parameters_of_another_graph() -> AbstractContextManager[None]:
    from afd_backports.vllm_v026_mrv2_dbo.ascend_graphs import AFDModelAclGraphManagerV2

    native = AFDModelAclGraphManagerV2.run_fullgraph

    def run_fullgraph(self: Any, desc: Any) -> Any:
        own = self.twin_params
        self.twin_params = dict.fromkeys(own, next(iter(own.values())))
        try:
            return native(self, desc)
        finally:
            self.twin_params = own

    return replaced(AFDModelAclGraphManagerV2, "run_fullgraph", run_fullgraph)


def the_native_update() -> AbstractContextManager[None]:
    from afd_backports.vllm_v026_mrv2_dbo.ascend_graphs import AFDModelAclGraphManagerV2
    from afd_backports.vllm_v026_mrv2_dbo.graph_manager import UBatchGraphs

    return replaced(AFDModelAclGraphManagerV2, "run_fullgraph", UBatchGraphs.run_fullgraph)


def a_capture_that_the_model_does_not_know_of() -> AbstractContextManager[None]:
    from afd_backports.vllm_v026_mrv2_dbo import ascend_graphs

    return replaced(ascend_graphs, "ModelWithContext", lambda model: model)


def rotary_factors_in_one_place() -> AbstractContextManager[None]:
    from afd_backports.vllm_v026_mrv2_dbo.ascend_runner import AscendMetadata

    return replaced(AscendMetadata, "building", lambda self, ubatch_slice: nullcontext())


def lengths_of_the_whole_batch() -> AbstractContextManager[None]:
    from afd_backports.vllm_v026_mrv2_dbo.ascend_runner import AscendMetadata

    return replaced(AscendMetadata, "complete", lambda self, batch, ubatch, ubatch_slice, for_capture: ubatch)


BUGS: dict[Bug, str] = {
    only_the_first_stage_is_updated: "GraphParamsError: events, handles and operands of the stages with 2 tokens: [(2, 2, 2), (2, 2, 2)]",
    both_stages_are_updated_with_the_second_ones_lengths: "logits",
    the_stages_are_mixed_up: "logits",
    lengths_of_an_earlier_step: "logits",
    parameters_by_number_of_tokens: "GraphParamsError: events, handles and operands of the stages with 4 tokens: [(0, 0, 0), (0, 0, 0)]",
    one_set_of_parameters_for_both_stages: "GraphParamsError: events, handles and operands of the stages with 4 tokens: [(4, 4, 4), (0, 0, 0)]",
    parameters_of_another_graph: "SimulationError: the device would hang",
    the_native_update: "SimulationError: the device would hang",
    a_capture_that_the_model_does_not_know_of: "GraphParamsError: events, handles and operands of the stages with 4 tokens: [(0, 0, 0), (0, 0, 0)]",
    rotary_factors_in_one_place: "logits",
    lengths_of_the_whole_batch: "logits",
}
"""How each is noticed: by what is raised, or by logits."""


def play_with_bugs(rank: Rank, scenario: Scenario) -> dict[str, Outcome | str]:
    """A scenario without a bug and with each of them: what came of it, or what was raised."""

    @contextlib.contextmanager
    def none() -> Iterator[None]:
        yield

    outcomes: dict[str, Outcome | str] = {}
    for bug in (none, *BUGS):
        with bug():
            try:
                outcomes[bug.__name__] = play(rank, scenario, dbo_runner)
            except Exception as error:
                outcomes[bug.__name__] = f"{type(error).__name__}: {error}"
        tape.stalled.clear()
        clean()
    return outcomes


@torch.inference_mode()
def replay_twice(rank: Rank, fence: bool) -> list[tuple[str, str]]:
    """Two replays of one graph with nothing between them for which the host waits, as with asynchronous scheduling: the races."""
    session = make(rank)
    session.add()
    session.steps(2)
    manager, ubatch_runner = session.runner.cudagraph_manager, session.runner.ubatch_runner
    staged = staged_by_a_step(session)
    twin = next(twin for twin in manager.twin_params if manager.twin_slices[twin] == staged.slices)
    if not fence:
        manager.update_stream.wait_stream = lambda stream: None
    with checked() as races:
        for _ in range(2):
            ubatch_runner.staged = staged
            manager.run_fullgraph(twin)
        return [(race.first, race.second) for race in races]
