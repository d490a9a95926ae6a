"""Whole models, compiled by vLLM (`VLLM_COMPILE`) and by vllm-ascend: captured and replayed in two stages, as without compilation."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import compiled_runs
from tests.dbo.compiled_runs import SCENARIOS, Compiled
from tests.dbo.scenarios import replays
from tests.sim.environments import ASCEND_VARIABLE, VLLM, Environment, ascend
from tests.sim.ranks import run_ranks
from tests.sim.scenario import Outcome, assert_equal
from tests.sim.scheduler import difference

pytestmark = pytest.mark.vllm

LAYERS = 2
BOTH = ("single", "split")
COMPILERS = {
    "vllm, eager": ("vllm", "eager", BOTH, False),
    "vllm, inductor": ("vllm", "inductor", ("split",), False),
    "vllm, inductor ahead of time": ("vllm", "inductor", ("split",), True),
    "ascend": ("ascend", "vllm_ascend.compilation.compiler_interface.AscendCompiler", BOTH, False),
}
"""Runner, backend, whether the native runner runs compiled, too, and whether vLLM compiles ahead of time."""
REPLAYS = {
    ("decode", "single"): {(4, 1): 3},
    ("decode", "split"): {(4, 2): 3},
    ("requests come and go", "single"): {(4, 1): 3},
    ("requests come and go", "split"): {(4, 1): 1, (4, 2): 2},
}

All = dict[tuple[str, str], list[Compiled]]


def environment(runner: str) -> Environment:
    """Where a runner is; vllm-ascend's compiler needs the source tree."""
    where = VLLM if runner == "vllm" else ascend()
    if where is None:
        pytest.skip(f"{ASCEND_VARIABLE} names no source tree of vllm-ascend; the stand-in has no compiler")
    return where


@pytest.fixture(scope="module", params=COMPILERS)
def compiled(request: pytest.FixtureRequest) -> tuple[str, str, All]:
    runner, backend, *how = COMPILERS[request.param]
    where = environment(runner)
    ranks = run_ranks(compiled_runs.play_compiled, runner, backend, *how, environment=where, timeout=600)
    return runner, backend, {key: [seen[key] for seen in ranks] for key in ranks[0]}


_plain: dict[str, dict[str, dict[str, list[Outcome]]]] = {}


def plain(runner: str) -> dict[str, dict[str, list[Outcome]]]:
    if runner not in _plain:
        ranks = run_ranks(compiled_runs.play_plain, runner, environment=environment(runner))
        _plain[runner] = {what: {name: [seen[what][name] for seen in ranks] for name in SCENARIOS} for what in ranks[0]}
    return _plain[runner]


def test_the_model_is_one_graph_with_a_handoff_in_each_layer(compiled: tuple[str, str, All]) -> None:
    _, backend, seen = compiled
    assert set(seen) == {(name, mode) for name in SCENARIOS for mode in {mode for _, mode in seen} | {"split"}}
    for runs in seen.values():
        for run in runs:
            assert (run.mode, run.backend) == ("VLLM_COMPILE", backend)
            assert (run.graphs, run.handoffs) == (1, LAYERS)


def test_outputs_are_those_of_plain_runs(compiled: tuple[str, str, All]) -> None:
    runner, _, seen = compiled
    for outcomes in plain(runner).values():
        for (name, _), runs in seen.items():
            assert_equal([run.outcome for run in runs], outcomes[name])


def test_graphs_are_replayed_and_prefills_are_split(compiled: tuple[str, str, All]) -> None:
    _, _, seen = compiled
    for (name, mode), runs in seen.items():
        for run in runs:
            assert replays(run.outcome) == REPLAYS[name, mode]
            split = mode == "split" and name == "decode"  # its prefill; the others' have a second ubatch without work
            assert run.outcome.ubatches == ({0, 1} if split else {0})
            assert (run.outcome.races, run.outcome.capture_races) == ((), ())


@pytest.mark.parametrize("name", ["vllm, eager", "vllm, inductor", "ascend"])
def test_a_stage_that_fails_in_a_compiled_model_stops_the_other(name: str) -> None:
    runner, backend, *_ = COMPILERS[name]
    where = environment(runner)
    expected = run_ranks(compiled_runs.undisturbed, runner, environment=where)
    for seen, logits in zip(
        run_ranks(compiled_runs.disturb, runner, backend, environment=where, timeout=300), expected, strict=True
    ):
        assert seen["errors"] == seen["wanted"]
        assert difference(seen["logits"], logits) < 1e-4
