"""What is kept of captured attention for updates: whether it is complete, and its order."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import params
from tests.sim.environments import ascend_or_stand_in
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm


def test_records_have_to_be_complete() -> None:
    (said,) = run_ranks(params.checked, world=1, environment=ascend_or_stand_in())
    assert said.pop("complete") == said.pop("complete, as far as is known") == "complete"
    assert all(
        message.startswith("events, handles and operands of the stages with 4 tokens: [(") for message in said.values()
    ), said
    wanted = {
        "a layer too few": "3 of each",
        "a layer too many": "1 of each",
        "no handle of a layer": "2 of each",
        "nothing": "equal numbers",
    }
    for name, words in wanted.items():
        assert words in said[name]


def test_records_of_the_stages_come_layer_by_layer() -> None:
    (seen,) = run_ranks(params.merged, world=1, environment=ascend_or_stand_in())
    order = [f"{layer} of stage {stage}" for layer in range(2) for stage in range(2)]
    for kind, name in (("events", "e"), ("handles", "h"), ("operands", "o")):
        assert seen[kind] == {4: [f"{name}{entry}" for entry in order]}
    assert seen["workspace"]
    assert sorted(seen["passed"]) == [(f"{layer} of stage {stage}", True) for layer in range(2) for stage in range(2)]
