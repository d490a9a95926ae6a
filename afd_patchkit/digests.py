"""Digests, each in one spelling."""

from __future__ import annotations

import hashlib


def sha256(data: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(data).hexdigest()


def short(text: str) -> str:
    """Twelve hex digits of SHA-256, for lines."""
    return sha256(text.encode())[:12]
