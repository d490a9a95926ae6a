"""Decode steps with padding, in the processes of DP ranks: any number of requests on each, on one runner after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tests.dbo import graphs
from tests.dbo.eager import Session
from tests.dbo.scenarios import Counts
from tests.sim.ranks import Rank
from tests.sim.scheduler import Logits, difference

MOST = 16
"""Requests of a rank; as many of them as are wanted take part in a step."""


@dataclass
class Step:
    """What a rank saw of a decode step.

    Attributes:
        off: how far the logits are from those of the same requests in eager single batches.
        wanted: lengths of the requests, with the token of this step.
        sent: what the FFN side heard.
        replays: of graphs, by tokens and number of ubatches.
        real: of each stage, its tokens without padding, as the plugin is told.
        tokens: of each stage, the tokens of its attention metadata.
        lengths: of each stage, the lengths of the requests in its attention metadata.
        rows: of each stage, the rows of lengths on the device that its graph may read.
        starts: of each stage, likewise the rows of offsets.
    """

    off: float = 0.0
    wanted: list[int] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)
    replays: dict[tuple[int, int], int] = field(default_factory=dict)
    real: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    lengths: list[list[int]] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)
    starts: list[list[int]] = field(default_factory=list)


class Watched:
    """A session whose stages are noted down."""

    def __init__(self, session: Session) -> None:
        self.session, self.step = session, Step()
        self.ubatch_runner = session.runner.ubatch_runner
        self._stage, self.ubatch_runner.stage = self.ubatch_runner.stage, self._noted
        metadata = self.ubatch_runner.host.metadata
        self._kwargs, metadata.additional_kwargs = metadata.additional_kwargs, self._told

    def _told(self, stage: Any) -> Any:
        self.step.real.append(stage.num_tokens)
        return self._kwargs(stage)

    def _noted(self, state: Any, cg_mode: Any) -> None:
        self._stage(state, cg_mode)
        for at, (part, context) in enumerate(zip(state.slices, state.forward_contexts, strict=True)):
            metadata = next(iter(context.attn_metadata.values()))
            decode = vars(metadata).get("decode")  # of latent attention, in a decode step
            kept = metadata.seq_lens.tolist() if decode is None else decode.seq_lens_list
            self.step.tokens.append(metadata.num_actual_tokens)
            self.step.lengths.append(list(kept))
            self.step.rows.append(self.ubatch_runner.ubatch_seq_lens[at][: part.num_tokens].tolist())
            self.step.starts.append(self.ubatch_runner.ubatch_query_start_loc[at][: part.num_tokens + 1].tolist())

    def replays(self) -> Counter[tuple[int, int]]:
        """How often each graph was replayed so far."""
        manager = self.session.runner.cudagraph_manager
        found = {} if manager is None else manager.graphs
        return Counter({(d.num_tokens, vars(d).get("num_ubatches", 1)): graph.replays for d, graph in found.items()})

    def run(self, count: int) -> Logits:
        """A decode step of some requests, or the part of an idle rank in that of others; its logits.

        Those take part that have the fewest tokens, so that lengths differ, and rows have other requests in each step.
        """
        session, scheduler = self.session, self.session.scheduler
        everyone = scheduler.requests
        chosen = sorted(everyone, key=lambda name: len(everyone[name].tokens))[:count]
        scheduler.requests = {name: everyone[name] for name in chosen}
        self.step = Step(wanted=[len(everyone[name].tokens) for name in chosen])
        sent, before = session.host.control.sent, self.replays()  # type: ignore[attr-defined]
        sent.clear()
        session.spy.seen.clear()
        scheduler.step_or_idle()
        scheduler.requests = everyone
        self.step.sent, self.step.replays = list(sent), dict(self.replays() - before)
        return dict(session.spy.seen)


def decodes(rank: Rank, make: graphs.Maker, counts: Collection[Counts], **options: Any) -> dict[Counts, Step]:
    """A decode step for each pair of numbers of requests, one after the other on one runner.

    Args:
        rank: the rank.
        make: makes the runner.
        counts: numbers of requests of each rank.
        options: of the runner.
    """
    options["max_num_seqs"] = MOST
    longest = max(sum(pair[other] for pair in counts) for other in range(rank.size)) // MOST + 2
    plain, expected = make(rank, native=True, **{**options, "graphs": None}), {}
    plain.add(MOST)
    for _ in range(longest):
        expected.update(plain.steps(1))
    watched, found = Watched(make(rank, **options)), {}
    watched.session.add(MOST)
    watched.session.steps(1)
    for pair in counts:
        seen = watched.run(pair[rank.index])
        assert len(seen) == pair[rank.index]
        watched.step.off = difference(seen, {place: expected[place] for place in seen})
        found[pair] = watched.step
    return found
