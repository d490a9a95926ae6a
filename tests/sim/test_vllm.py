"""The real model runner of vLLM 0.26.0 on the simulated device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

pytest.importorskip("torch", reason="runs in the environment that tools/vllm_env makes")

from tests.sim.config import LLAMA, MOE, Graphs, engine_arguments, make_config
from tests.sim.prompts import FOUR, THREE, UNEVEN
from tests.sim.ranks import Rank, run_ranks
from tests.sim.runner import join_groups, make_runner, side_group
from tests.sim.scenario import Outcome, Scenario, assert_equal, play, play_all
from tests.sim.scheduler import MiniScheduler, Tokens, generate

pytestmark = pytest.mark.vllm

PROMPTS = {name: list(prompt.ids) for name, prompt in THREE[0].items()}
ONE_RANK = Scenario(THREE, steps=8, model=LLAMA)


# ---- one rank -------------------------------------------------------------------------------------------------


def one_rank(rank: Rank) -> dict[str, Outcome]:
    """The same requests in several ways."""
    return play_all(
        rank,
        {
            "eager": ONE_RANK,
            "again": ONE_RANK,
            "chunked": replace(ONE_RANK, steps=14, chunk=6),
            "full": replace(ONE_RANK, graphs=Graphs((1, 2, 4, 8, 16))),
            "decode": replace(ONE_RANK, graphs=Graphs((4,), "FULL_DECODE_ONLY")),
            "checked": replace(ONE_RANK, steps=3, races=True, graphs=Graphs((4,))),
        },
    )


@pytest.fixture(scope="module")
def alone() -> dict[str, Outcome]:
    return run_ranks(one_rank, world=1)[0]


def test_the_same_steps_give_the_same_tokens(alone):
    assert_equal([alone["eager"]], [alone["again"]], tolerance=1e-12)
    assert {len(tokens) for tokens in alone["eager"].tokens.values()} == {8}


def test_the_weights_make_tokens_depend_on_the_prompt(alone):
    outputs = list(alone["eager"].tokens.values())
    assert len({tuple(tokens) for tokens in outputs}) == 3
    assert all(len(set(tokens)) > 3 for tokens in outputs)


def test_chunked_prefill_gives_the_same_tokens(alone):
    for name, tokens in alone["eager"].tokens.items():
        chunked = alone["chunked"].tokens[name]
        assert len(chunked) >= 5
        assert chunked[:8] == tokens[: len(chunked)]


@pytest.mark.parametrize("kind", ["full", "decode"])
def test_graphs_give_the_same_logits(alone, kind):
    assert_equal([alone["eager"]], [alone[kind]])
    assert alone[kind].replays[4, 1] == 7, "each decode step replays the graph of four tokens"


def test_no_races(alone):
    assert alone["checked"].races == alone["checked"].capture_races == ()


@dataclass(frozen=True)
class Replays:
    """Tokens with graphs and without, on one runner, and how often Python ran the model meanwhile."""

    graphs: Tokens
    eager: Tokens
    calls: tuple[int, int]


def replays(rank: Rank) -> Replays:
    """Decode two requests with graphs, then again without."""
    config = make_config(LLAMA, graphs=Graphs((1, 2, 4, 8)))
    join_groups(config, rank=0, size=1, rendezvous=rank.folder / "groups")
    runner = make_runner(config)
    calls: list[int] = []
    forward = runner.model.forward

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return forward(*args, **kwargs)

    runner.model.forward = counted
    prompts = {"a": [40], "b": [5]}  # prompts of one token: already the first step is a decode
    graphs = generate(runner, prompts)
    during_replay = len(calls)
    runner.cudagraph_manager._graphs_captured = False
    return Replays(graphs, generate(runner, prompts), (during_replay, len(calls) - during_replay))


def test_a_replay_runs_no_python_of_the_model():
    (found,) = run_ranks(replays, world=1)
    assert found.graphs == found.eager
    assert found.calls == (0, 8)


def whole_engine(rank: Rank) -> tuple[list[list[int]], str, dict[int, int]]:
    """`LLM` in one process; the worker is found through the plugin."""
    from vllm import LLM, SamplingParams

    llm = LLM(**engine_arguments(LLAMA, Graphs((1, 2, 4, 8))))
    sampling = SamplingParams(temperature=0, max_tokens=8, detokenize=False, ignore_eos=True)
    outputs = llm.generate([{"prompt_token_ids": p} for p in PROMPTS.values()], sampling, use_tqdm=False)
    worker = llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker
    manager = worker.model_runner.cudagraph_manager
    replayed = {desc.num_tokens: graph.replays for desc, graph in manager.graphs.items()}
    llm.llm_engine.engine_core.shutdown()
    return [list(output.outputs[0].token_ids) for output in outputs], type(worker).__qualname__, replayed


def test_the_whole_engine_gives_the_same_tokens(alone):
    ((tokens, worker, replayed),) = run_ranks(whole_engine, world=1)
    assert tokens == list(alone["eager"].tokens.values())
    assert worker == "SimWorker"
    assert replayed[4] == 7


# ---- two DP ranks ---------------------------------------------------------------------------------------------


def references(rank: Rank) -> list[dict[str, Outcome]]:
    """What each rank of the runs with two ranks should see: its own requests, on one rank that has all experts."""
    return [
        {
            name: play(rank, replace(scenario, prompts=(prompts,), graphs=None))
            for name, scenario in TWO_RANKS.items()
            if scenario.graphs is None
        }
        for prompts in FOUR
    ]


UNEVEN_RUN = Scenario(UNEVEN, steps=9)
TWO_RANKS = {
    "plain": Scenario(FOUR),
    "chunked": Scenario(FOUR, steps=8, chunk=4),
    "graphs": Scenario(FOUR, graphs=Graphs((1, 2, 4, 8))),
    "one without graphs": Scenario(FOUR, graphs=Graphs((1, 2, 4, 8)), eager_ranks=frozenset({1})),
}


@dataclass(frozen=True)
class Dispatch:
    """What one rank brought to a step, and what it got."""

    tokens: int
    mode: str
    padded: int
    across: tuple[int, ...]


def two_ranks(rank: Rank) -> tuple[dict[str, Outcome], Outcome, list[Dispatch]]:
    """All runs with two ranks; of the last one, the dispatches too."""
    from vllm.v1.worker.gpu import model_runner

    outcomes = play_all(rank, TWO_RANKS)
    seen: list[Dispatch] = []
    original = model_runner.dispatch_cg_and_sync_dp

    def watched(manager: Any, requests: int, tokens: int, *args: Any, **kwargs: Any) -> Any:
        desc, across = original(manager, requests, tokens, *args, **kwargs)
        seen.append(Dispatch(tokens, desc.cg_mode.name, desc.num_tokens, tuple(across.tolist())))
        return desc, across

    model_runner.dispatch_cg_and_sync_dp = watched
    uneven = play(rank, replace(UNEVEN_RUN, graphs=Graphs((1, 2, 4), "FULL_DECODE_ONLY"), races=True))
    return outcomes, uneven, seen


@pytest.fixture(scope="module")
def both() -> list[tuple[dict[str, Outcome], Outcome, list[Dispatch]]]:
    return run_ranks(two_ranks)


def test_two_ranks_give_the_logits_of_one_that_has_all_experts(both):
    (expected,) = run_ranks(references, world=1)
    for name in ("plain", "chunked"):
        assert_equal([outcomes[name] for outcomes, _, _ in both], [outcomes[name] for outcomes in expected])
    for name in ("graphs", "one without graphs"):
        assert_equal([outcomes[name] for outcomes, _, _ in both], [outcomes["plain"] for outcomes in expected])
    assert all(outcomes["graphs"].replays[2, 1] == 5 for outcomes, _, _ in both)
    assert [set(outcomes["one without graphs"].replays.values()) for outcomes, _, _ in both] == [{0}, {0}]


def reference_uneven(rank: Rank) -> list[Outcome]:
    """As `references`, for the requests that come and go."""
    return [play(rank, replace(UNEVEN_RUN, prompts=(prompts,))) for prompts in UNEVEN]


def test_ranks_whose_requests_come_and_go(both):
    (expected,) = run_ranks(reference_uneven, world=1)
    assert_equal([uneven for _, uneven, _ in both], expected)
    assert [uneven.races for _, uneven, _ in both] == [(), ()]


def test_the_dispatches_of_all_ranks_agree(both):
    (_, _, first), (_, _, second) = both
    steps = list(zip(first, second, strict=True))[-UNEVEN_RUN.steps :]
    for one, other in steps:
        assert (one.mode, one.across) == (other.mode, other.across)
        if one.mode == "NONE":
            assert one.across == (one.tokens, other.tokens)
        else:
            assert one.padded == other.padded == max(one.across)
    assert [(one.tokens, other.tokens) for one, other in steps] == [
        (5, 21), (1, 3), (3, 2), (1, 2), (1, 2), (1, 5), (1, 2), (1, 1), (1, 1),
    ]  # fmt: skip
    assert [one.mode for one, _ in steps] == ["NONE", "NONE", "NONE", "FULL", "FULL", "NONE", "FULL", "FULL", "FULL"]


# ---- more ranks than vLLM knows of, many steps ----------------------------------------------------------------


def with_a_third(rank: Rank) -> Outcome | float:
    """Two DP ranks, and one that only hears from them."""
    import torch

    group = side_group(rank.folder / "side", rank=rank.index, size=rank.size)
    total = torch.zeros(1)
    if rank.index == 2:
        group.allreduce([total]).wait()
        return total.item()
    outcome = play(rank, Scenario(FOUR, steps=2))
    total += len(outcome.logits)
    group.allreduce([total]).wait()
    return outcome


def test_ranks_beside_those_of_vllm(both):
    *outcomes, total = run_ranks(with_a_third, world=3)
    assert total == 8
    assert [outcome.marks for outcome in outcomes] == [plain["plain"].marks[:16] for plain, _, _ in both]


def many_steps(rank: Rank) -> tuple[dict[str, list[int]], int]:
    """Requests that come and go on a small KV cache."""
    config = make_config(LLAMA)
    join_groups(config, rank=0, size=1, rendezvous=rank.folder / "groups")
    scheduler = MiniScheduler(make_runner(config, blocks=9))
    for step in range(60):
        if step % 3 == 0:
            scheduler.add(f"{step}", PROMPTS[list(PROMPTS)[step // 3 % 3]], tokens=4)
        scheduler.step()
    return scheduler.outputs, len(scheduler.requests)


def test_blocks_of_finished_requests_are_used_again(alone):
    ((outputs, running),) = run_ranks(many_steps, world=1)
    assert (len(outputs), running) == (20, 1)
    expected = [tokens[:4] for tokens in alone["eager"].tokens.values()]
    done = list(outputs.values())[:19]
    assert done == [expected[i % 3] for i in range(19)]


def idle_and_empty(rank: Rank) -> tuple[bool, Tokens]:
    """A step without requests on a rank without requests is a dummy run; one without tokens asks for no forward."""
    config = make_config(MOE)
    join_groups(config, rank=0, size=1, rendezvous=rank.folder / "groups")
    runner = make_runner(config)
    scheduler = MiniScheduler(runner)
    nothing = scheduler.step()
    idle = scheduler.step_or_idle()
    return nothing == idle == {}, scheduler.outputs


def test_steps_without_requests():
    assert run_ranks(idle_and_empty, world=1) == [(True, {})]
