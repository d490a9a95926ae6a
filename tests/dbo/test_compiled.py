"""Compiled models: the handoff is part of one graph, in its place, and works and stops as in a model that is not compiled."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import compiled
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm

SINGLE = [(0, "send"), (0, "receive")] * compiled.LAYERS
SPLIT = [
    (0, "send"), (1, "send"), (0, "receive"), (0, "send"), (1, "receive"), (1, "send"), (0, "receive"), (1, "receive"),
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_both_stages_run_in_one_graph(backend: str) -> None:
    (seen,) = run_ranks(compiled.compile_with, backend, world=1)
    assert seen["graphs"] == 1
    assert seen["handoffs"] == compiled.LAYERS
    assert seen["single"] == SINGLE * 2
    assert seen["split"] == SPLIT
    assert seen["errors"] == seen["errors afterwards"] == {}
    assert all(seen[name] for name in ("single equal", "split equal", "equal afterwards"))
    assert seen["kinds"] == {0: "StageCancelled", 1: "OwnError"}
    assert seen["failed"] == SPLIT[:5]
