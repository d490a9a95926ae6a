"""Dummy runs of a warmed-up runner, in the processes of DP ranks: natively and split."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from tests.dbo import graphs
from tests.dbo.eager import Session
from tests.sim.ranks import Rank
from tests.sim.scheduler import Logits

UNIFORM = (1, 2, 3, 4, 5, 7, 8)
"""Tokens of dummy decode steps."""

MIXED = (4, 12)
"""Tokens of dummy steps of any other kind."""


def replays(session: Session) -> Counter[tuple[int, int]]:
    """How often each graph was replayed, by tokens and number of ubatches."""
    manager = session.runner.cudagraph_manager
    return Counter(
        {(d.num_tokens, vars(d).get("num_ubatches", 1)): graph.replays for d, graph in manager.graphs.items()}
    )


def dummies(rank: Rank, make: graphs.Maker, native: bool) -> dict[str, Any]:
    """Dummy runs of every size after a capture and some steps; then a step of one rank beside a dummy run of the other."""
    session = make(rank, native=native)
    session.add(8)
    session.steps(2)
    sent = [] if native else session.host.control.sent  # type: ignore[attr-defined]
    seen: dict[str, Any] = {}

    def run(name: str, tokens: int, **options: Any) -> None:
        before = replays(session)
        sent.clear()
        outputs: tuple[torch.Tensor, ...] = session.runner._dummy_run(tokens, **options)
        seen[name] = ([output.clone() for output in outputs], dict(replays(session) - before), list(sent))

    for tokens in UNIFORM:
        run(f"uniform {tokens}", tokens, uniform_decode=True)
    for tokens in MIXED:
        run(f"mixed {tokens}", tokens)
    run("uneven", (8, 5)[rank.index], uniform_decode=True)
    sent.clear()
    seen["beside a step"] = beside(session), list(sent)
    seen["step"] = session.steps(1)
    return seen


def beside(session: Session) -> Logits:
    """A step of the first rank, in which the second one has nothing to do but is told to do as much."""
    session.spy.seen.clear()
    if session.rank.index:
        session.runner._dummy_run(len(session.scheduler.requests), uniform_decode=True)
    else:
        session.scheduler.step()
    return dict(session.spy.seen)


def under_flags(rank: Rank, make: graphs.Maker) -> dict[str, Any]:
    """Split steps while the plugin has a flag raised for all that it does: what is sent, and which flags are raised then."""
    session = make(rank)
    control = session.host.control  # type: ignore[attr-defined]
    seen: dict[str, Any] = {}

    def said(name: str) -> None:
        seen[name] = (
            sorted({said for said, _ in control.sent}),
            control.is_warmup,
            control.is_graph_capturing,
            control.is_graph_replaying,
        )
        control.sent.clear()

    said("captured")
    session.add(4)
    session.steps(2)
    for flag in ("is_warmup", "is_graph_capturing"):
        control.sent.clear()
        setattr(control, flag, True)
        session.runner._dummy_run(4, uniform_decode=True)
        said(flag)
        setattr(control, flag, False)
    session.runner.cudagraph_manager.release_twins()
    control.is_graph_replaying = control.is_warmup = True
    session.runner.cudagraph_manager.graphs.clear()
    session.runner.capture_model()
    said("captured again")
    return seen
