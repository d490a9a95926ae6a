"""Graphs of split batches: what each delta is for, where whole steps do not show it."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import deltas
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm


def test_a_shape_whose_requests_cannot_be_halved_has_no_twin() -> None:
    # Both stages replay one graph of half the requests each: 3 and 5 have no halves.
    assert run_ranks(deltas.twin_shapes, (1, 2, 3, 4, 5, 8)) == [[(8, 8), (4, 4), (2, 2)]] * 2


def test_a_platform_sees_each_twin_when_it_is_captured() -> None:
    assert run_ranks(deltas.after_captures) == [[(4, True), (2, True)]] * 2
