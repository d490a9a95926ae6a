"""What single deltas are for, looked at on its own, in processes of `tests.sim.ranks`."""

from __future__ import annotations

from tests.dbo.eager import Session
from tests.dbo.graphs import DBO
from tests.sim.config import Graphs
from tests.sim.ranks import Rank


def twin_shapes(rank: Rank, sizes: tuple[int, ...]) -> list[tuple[int, int | None]]:
    """Tokens and requests of the twins that are chosen among captured sizes."""
    session = Session(rank, dbo=DBO, graphs=Graphs(sizes, "FULL_DECODE_ONLY"), capture=False)
    return [(d.num_tokens, d.num_reqs) for descs in session.runner.cudagraph_manager.twin_descs.values() for d in descs]


def after_captures(rank: Rank) -> list[tuple[int, bool]]:
    """Where a platform looks at the twins: tokens of each, and whether its graph was there by then."""
    session = Session(rank, dbo=DBO, graphs=Graphs((1, 2, 4), "FULL_DECODE_ONLY"), capture=False)
    manager = session.runner.cudagraph_manager
    seen: list[tuple[int, bool]] = []
    manager.after_capture = lambda desc: seen.append((desc.num_tokens, desc in manager.graphs))
    session.runner.capture_model()
    return seen
