"""vllm-ascend's model runner V2 at the pinned commit, on the simulated NPU; needs a source tree (`AFD_VLLM_ASCEND_SOURCE`)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="runs in the environment that tools/vllm_env makes")

from tests.sim import ascend_abi
from tests.sim.ascend import npu_runner
from tests.sim.bugs import replaced
from tests.sim.config import Graphs
from tests.sim.environments import ASCEND_VARIABLE, Environment, ascend
from tests.sim.prompts import PLAIN, UNEVEN
from tests.sim.ranks import Rank, run_ranks
from tests.sim.scenario import Outcome, Scenario, assert_equal, play, play_all
from tests.sim.scheduler import difference
from tests.sim.streams import SimulationError

pytestmark = pytest.mark.vllm

DECODE = Graphs((1, 2, 4, 8), "FULL_DECODE_ONLY")
SCENARIOS = {
    "eager": PLAIN,
    "graphs": replace(PLAIN, graphs=DECODE),
    "checked": replace(PLAIN, graphs=Graphs((2,), "FULL_DECODE_ONLY"), steps=3, races=True),
    "uneven": Scenario(UNEVEN, steps=9, graphs=DECODE),
}
TARGET = {"plain": PLAIN, "checked": replace(PLAIN, steps=3), "uneven": Scenario(UNEVEN, steps=9)}
"""The same, for vLLM's own runner."""


@pytest.fixture(scope="module")
def tree() -> Environment:
    environment = ascend()
    if environment is None:
        pytest.skip(f"{ASCEND_VARIABLE} is not set; it names a source tree of vllm-ascend at the pinned commit")
    return environment


@pytest.fixture(scope="module")
def outcomes(tree) -> dict[str, list[Outcome]]:
    ranks = run_ranks(play_all, SCENARIOS, npu_runner, environment=tree)
    return {name: [outcome[name] for outcome in ranks] for name in SCENARIOS}


@pytest.fixture(scope="module")
def target(tree) -> dict[str, list[Outcome]]:
    ranks = run_ranks(play_all, TARGET)
    return {name: [outcome[name] for outcome in ranks] for name in TARGET}


def test_the_tree_is_at_the_pinned_commit(tree):
    assert ascend_abi.tree_differences(Path(os.environ[ASCEND_VARIABLE])) == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_npu_runner_gives_the_logits_of_vllm(outcomes, target, name):
    assert_equal(outcomes[name], target[name if name in TARGET else "plain"])


def test_graphs_are_replayed(outcomes):
    for outcome in outcomes["graphs"]:
        assert {key: count for key, count in outcome.replays.items() if count} == {(2, 1): 5}
    for outcome in outcomes["uneven"]:
        assert {key: count for key, count in outcome.replays.items() if count} == {(1, 1): 2, (2, 1): 3}


def test_no_races(outcomes):
    for outcome in outcomes["checked"]:
        assert outcome.races == outcome.capture_races == ()


def runner_type(rank: Rank) -> list[str]:
    """Which classes it was."""
    from vllm_ascend.worker.v2.aclgraph_utils import ModelAclGraphManager
    from vllm_ascend.worker.v2.model_runner import NPUModelRunner

    found: list[Any] = []

    def noted(config: Any, device: Any) -> Any:
        found.append(npu_runner(config, device))
        return found[0]

    play(rank, replace(PLAIN, prompts=PLAIN.prompts[:1], graphs=DECODE, steps=1), noted)
    (runner,) = found
    assert isinstance(runner, NPUModelRunner)
    assert isinstance(runner.cudagraph_manager, ModelAclGraphManager)
    return [group.backend.__name__ for groups in runner.attn_groups for group in groups]


def test_it_really_is_vllm_ascend(tree):
    assert run_ranks(runner_type, world=1, environment=tree) == [["AscendAttentionBackend"]]


# ---- injected bugs --------------------------------------------------------------------------------------------


def missing_update() -> AbstractContextManager[None]:
    """The parameters of a replayed graph are not updated."""
    from vllm_ascend.worker.v2 import aclgraph_utils

    return replaced(aclgraph_utils, "update_full_graph_params", lambda *args, **kwargs: None)


def stale_update() -> AbstractContextManager[None]:
    """They are updated with the metadata of the first step with that graph."""
    return _updated_with(lambda kept, count, metadata: kept.setdefault(count, metadata))


def updates_of_one_size() -> AbstractContextManager[None]:
    """They are updated with the metadata of whichever graph came first."""
    return _updated_with(lambda kept, count, metadata: kept.setdefault(0, metadata))


@contextlib.contextmanager
def _updated_with(choose: Callable[[dict[int, Any], int, Any], Any]) -> Iterator[None]:
    from vllm_ascend.worker.v2 import aclgraph_utils

    update, kept = aclgraph_utils.update_full_graph_params, {}

    def updated(backend: Any, stream: Any, context: Any, count: int, *args: Any, **kwargs: Any) -> None:
        context.attn_metadata = choose(kept, count, context.attn_metadata)
        update(backend, stream, context, count, *args, **kwargs)

    with replaced(aclgraph_utils, "update_full_graph_params", updated):
        yield


def with_bug(rank: Rank, bug: Callable[[], AbstractContextManager[None]], scenario: Scenario) -> Outcome:
    """Play a scenario with a bug in vllm-ascend."""
    with bug():
        return play(rank, scenario, npu_runner)


def test_a_missing_update_of_graph_parameters_is_noticed(tree):
    with pytest.raises(SimulationError, match="would hang"):
        run_ranks(with_bug, missing_update, SCENARIOS["graphs"], environment=tree)


def test_a_stale_update_of_graph_parameters_is_noticed(tree, outcomes):
    buggy = run_ranks(with_bug, stale_update, SCENARIOS["graphs"], environment=tree)
    pairs = zip(buggy, outcomes["eager"], strict=True)
    assert max(difference(one.logits, other.logits) for one, other in pairs) > 1


def test_parameters_of_another_graph_are_noticed(tree, outcomes):
    buggy = run_ranks(with_bug, updates_of_one_size, SCENARIOS["uneven"], environment=tree)
    pairs = zip(buggy, outcomes["uneven"], strict=True)
    assert max(difference(one.logits, other.logits) for one, other in pairs) > 1
