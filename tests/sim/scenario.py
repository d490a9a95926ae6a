"""One run of a tiny model on all DP ranks, described so that any process can play it, and what came of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.sim.config import MOE, Dbo, Graphs, make_config
from tests.sim.race import Race, checked
from tests.sim.ranks import Rank
from tests.sim.runner import join_groups, make_runner
from tests.sim.scheduler import Logits, LogitSpy, MiniScheduler, Tokens, difference
from tests.sim.trace import TRACE, Mark

RunnerClass = Callable[[Any, torch.device], Any]


@dataclass(frozen=True)
class Prompt:
    """A request.

    Attributes:
        ids: the prompt's tokens.
        tokens: how many to generate.
        step: when it comes.
    """

    ids: tuple[int, ...]
    tokens: int = 1000
    step: int = 0


@dataclass(frozen=True)
class Scenario:
    """What all ranks do.

    Attributes:
        prompts: the requests of each rank, by name; a rank without any takes part with dummy runs.
        steps: number of steps.
        chunk: most tokens of a request in one step.
        model: description of the model.
        graphs: graph capture; None runs eagerly.
        eager_ranks: ranks that have captured graphs, as capture is a matter of all, and cannot use them.
        dbo: dual batch overlap; None runs single batches.
        races: whether to look for races, while capturing and in the steps.
        engine: further engine arguments.
    """

    prompts: tuple[Mapping[str, Prompt], ...]
    steps: int = 6
    chunk: int | None = None
    model: Mapping[str, object] = field(default_factory=lambda: MOE)
    graphs: Graphs | None = None
    eager_ranks: frozenset[int] = frozenset()
    dbo: Dbo | None = None
    races: bool = False
    engine: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What one rank saw.

    Attributes:
        tokens: generated tokens by request.
        logits: logits behind each of them.
        marks: steps of the exchanges that Python did, warm-up and capture aside.
        capture_marks: those of warm-up and capture.
        replays: per captured graph, by token count and number of ubatches: how often it was replayed.
        races: what nothing orders.
        capture_races: the same, in warm-up and capture.
    """

    tokens: Tokens
    logits: Logits
    marks: tuple[Mark, ...]
    capture_marks: tuple[Mark, ...]
    replays: Mapping[tuple[int, int], int]
    races: tuple[Race, ...]
    capture_races: tuple[Race, ...]

    @property
    def ubatches(self) -> set[int]:
        """The ubatches that Python ran."""
        return {mark.ubatch for mark in self.marks}


def play(rank: Rank, scenario: Scenario, runner_class: RunnerClass | None = None) -> Outcome:
    """Play a scenario on this rank; in its process, others may have been played before.

    Args:
        rank: one of those that the scenario has prompts for; there may be further ranks that do something else.
        scenario: what to play.
        runner_class: makes the runner from configuration and device; vLLM's model runner V2 by default.
    """
    size = len(scenario.prompts)
    config = make_config(
        scenario.model, graphs=scenario.graphs, dbo=scenario.dbo, dp=(rank.index, size), **scenario.engine
    )
    join_groups(config, rank=rank.index, size=size, rendezvous=rank.folder / "groups")
    TRACE.clear()
    watch: AbstractContextManager[list[Race]] = checked() if scenario.races else contextlib.nullcontext([])
    with watch as races:
        runner = make_runner(config, runner_class)
        if rank.index in scenario.eager_ranks:
            runner.cudagraph_manager._graphs_captured = False
        captured, capture_races = tuple(TRACE.marks), tuple(races)
        TRACE.clear()
        races.clear()
        spy, scheduler = LogitSpy(runner), MiniScheduler(runner)
        for step in range(scenario.steps):
            for name, prompt in scenario.prompts[rank.index].items():
                if prompt.step == step:
                    scheduler.add(name, prompt.ids, prompt.tokens)
            scheduler.step_or_idle(chunk=scenario.chunk)
    manager = runner.cudagraph_manager
    captures = {} if manager is None else manager.graphs
    # Descriptors know of ubatches from vLLM 0.30 on, and in the backport.
    replays = {(d.num_tokens, vars(d).get("num_ubatches", 1)): graph.replays for d, graph in captures.items()}
    return Outcome(scheduler.outputs, spy.seen, tuple(TRACE.marks), captured, replays, tuple(races), capture_races)


def play_all(
    rank: Rank, scenarios: Mapping[str, Scenario], runner_class: RunnerClass | None = None
) -> dict[str, Outcome]:
    """Play several scenarios, one after the other."""
    return {name: play(rank, scenario, runner_class) for name, scenario in scenarios.items()}


def assert_equal(ones: list[Outcome], others: list[Outcome], tolerance: float = 1e-4) -> None:
    """Each rank has equal tokens, and logits within the tolerance.

    Raises:
        AssertionError: it has not.
    """
    for rank, (one, other) in enumerate(zip(ones, others, strict=True)):
        assert one.tokens == other.tokens, f"rank {rank}: {one.tokens} is not {other.tokens}"
        worst = difference(one.logits, other.logits)
        assert worst < tolerance, f"rank {rank}: logits differ by {worst:.1e}"
