"""Digests, each in one spelling."""

from __future__ import annotations

import hashlib
from typing import BinaryIO


def sha256(data: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(data).hexdigest()


def short(data: bytes | str, digits: int = 12) -> str:
    """The first hex digits of SHA-256; of a text, lone surrogates included, as UTF-8."""
    return sha256(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))[:digits]


def sha256_of_file(stream: BinaryIO) -> str:
    """Hex SHA-256 of what is left to read of a file."""
    digest = hashlib.sha256()
    while piece := stream.read(2**20):
        digest.update(piece)
    return digest.hexdigest()
