"""A Triton kernel for the tests."""

from __future__ import annotations

from typing import Any

from vllm.triton_utils import tl, triton


@triton.jit  # type: ignore[untyped-decorator]
def add_one(source: Any, target: Any, count: tl.constexpr) -> None:
    """`target = source + 1`."""
    at = tl.arange(0, count)
    tl.store(target + at, tl.load(source + at) + 1)
