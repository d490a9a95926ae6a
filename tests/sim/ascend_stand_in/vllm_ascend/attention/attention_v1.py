"""What kind of step it is."""

from __future__ import annotations

from enum import Enum


class AscendAttentionState(Enum):
    """By what the cache holds."""

    PrefillNoCache = 0
    PrefillCacheHit = 1
    DecodeOnly = 2
    ChunkedPrefill = 3
    SpecDecoding = 4
