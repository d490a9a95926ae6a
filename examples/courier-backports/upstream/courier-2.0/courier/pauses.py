"""Pauses between attempts."""

from __future__ import annotations

from collections.abc import Iterator


def pauses(attempts: int) -> Iterator[int]:
    """Minutes to wait before each attempt: none before the first, then twice as long each time."""
    yield from (0 if number == 0 else 2**number for number in range(attempts))
