"""The releases of vLLM that proof and drift are about, and the symbols that they ask for."""

from __future__ import annotations

from pathlib import Path

from tools.environments import pinned_version

BASE = pinned_version("vllm")
RELEASES = ("0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0")
"""Those after the pinned one, in order."""
SYMBOLS = Path(__file__).with_name("symbols.txt")


def read_symbols(path: Path = SYMBOLS) -> list[str]:
    """A list of symbols, one a line; lines that start with `#` are comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]
