"""How deeply code may be nested: long `elif` chains and sums are deep trees, which the engine walks by recursion."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.findings.finding import Position, finding

FRAMES = 5_000
"""Python's limit while the engine works. More could end a thread whose stack is small, before Python notices."""


@contextmanager
def deep(what: str, *, entry: str | None = None, manifest: Position | None = None) -> Iterator[None]:
    """Allow as many frames as the engine needs, for as long as it works on something.

    Args:
        what: what it works on, for the message.
        entry: the entry that it is, if it is one.
        manifest: where the manifest has it.

    Raises:
        DeltaError: it is nested too deeply all the same (PK229).
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, FRAMES))
    try:
        yield
    except RecursionError:
        raise DeltaError(
            finding(
                "PK229",
                f"code of {what} is nested too deeply",
                entry=entry,
                manifest=manifest,
                help="Look for a very long `elif` chain, sum, or chain of calls; split it, or take the entry in smaller parts.",
            )
        ) from None
    finally:
        sys.setrecursionlimit(before)
