"""Dummy runs of a runner with graphs of split batches, flags that a plugin has raised around its steps, ends in which layers raise."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import ascend, dummies, graphs
from tests.sim.environments import VLLM, Environment, ascend_or_stand_in
from tests.sim.ranks import run_ranks
from tests.sim.scheduler import difference

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module", params=["vLLM", "NPU"])
def runner(request: pytest.FixtureRequest) -> tuple[graphs.Maker, Environment]:
    return (graphs.make, VLLM) if request.param == "vLLM" else (ascend.make, ascend_or_stand_in())


@pytest.fixture(scope="module")
def runs(runner: tuple[graphs.Maker, Environment]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Of each rank, natively and split."""
    make, environment = runner
    native, split = (run_ranks(dummies.dummies, make, kind, environment=environment) for kind in (True, False))
    return list(zip(native, split, strict=True))


NAMES = [*(f"uniform {n}" for n in dummies.UNIFORM), *(f"mixed {n}" for n in dummies.MIXED), "uneven"]


@pytest.mark.parametrize("name", NAMES)
def test_a_dummy_run_returns_what_the_native_one_returns(runs, name) -> None:
    for native, split in runs:
        assert len(split[name][0]) == 2
        for ours, theirs in zip(split[name][0], native[name][0], strict=True):
            assert ours.shape == theirs.shape
            assert torch.allclose(ours, theirs, atol=1e-4)


TWINS = {
    "uniform 2": 2,
    "uniform 3": 4,
    "uniform 4": 4,
    "uniform 5": 8,
    "uniform 7": 8,
    "uniform 8": 8,
    "mixed 4": 4,
    "uneven": 8,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_dummy_run_replays_what_a_step_would(runs, name) -> None:
    for _, split in runs:
        _, replayed, sent = split[name]
        if size := TWINS.get(name):
            assert (replayed, sent) == ({(size, 2): 1}, [("replay", {0: [size // 2] * 2, 1: [size // 2] * 2})])
        else:
            single, told = {"uniform 1": ({(1, 1): 1}, []), "mixed 12": ({}, [("eager", {0: [6, 6], 1: [6, 6]})])}[name]
            assert (replayed, sent) == (single, told)


def test_a_step_beside_a_dummy_run_and_the_one_after_it_are_as_natively(runs) -> None:
    for rank, (native, split) in enumerate(runs):
        logits, sent = split["beside a step"]
        assert len(logits) == (0 if rank else 8)
        assert sent == [("replay", {0: [4, 4], 1: [4, 4]})]
        assert difference(logits, native["beside a step"][0]) < 1e-4
        assert len(split["step"]) == 8
        assert difference(split["step"], native["step"]) < 1e-4


def test_one_flag_is_raised_in_what_is_sent_and_the_plugins_come_back(runner) -> None:
    make, environment = runner
    for seen in run_ranks(dummies.under_flags, make, environment=environment):
        assert seen == {
            "captured": (["capture", "warm-up"], False, False, False),
            "is_warmup": (["replay"], True, False, False),
            "is_graph_capturing": (["replay"], False, True, False),
            "captured again": (["capture", "warm-up"], True, False, True),
        }


ENDS = [["release_twins"], ["abort"], ["release_twins", "abort"]]


@pytest.mark.parametrize("failing", ENDS, ids=" and ".join)
def test_a_shutdown_runs_every_layer_although_one_raises(runner, failing) -> None:
    make, environment = runner
    for seen in run_ranks(graphs.ended_badly, failing, make, environment=environment):
        assert seen == {
            "error": failing[-1],
            "called": failing,
            "graphs": 0,
            "kept": [],
            "ubatch runner": None,
            "alive": [],
        }
