"""What kind of step it is."""

from __future__ import annotations

from enum import Enum


class AscendAttentionState(Enum):
    """By what the cache holds."""

    DecodeOnly = 2
    ChunkedPrefill = 3
    PrefillNoCache = 0
    PrefillCacheHit, SpecDecoding = 1, 4
