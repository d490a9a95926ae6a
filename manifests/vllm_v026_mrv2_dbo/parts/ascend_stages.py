"""Rotary factors of vllm-ascend, for each stage of a split batch."""

from collections.abc import Iterator
from contextlib import contextmanager

from vllm_ascend.ops import rotary_embedding


@contextmanager
def rotary_factors_from(start: int) -> Iterator[None]:
    """Let the metadata of a stage that is built in the block have rotary factors of its own.

    vllm-ascend writes those of MLA's decodes to the start of two buffers, from where a graph reads them, and metadata of both stages is
    built before either runs. A stage's start is where its tokens start in the whole batch.
    """
    cos, sin = rotary_embedding._cos_mla, rotary_embedding._sin_mla
    if cos is None:  # no MLA
        yield
        return
    rotary_embedding._cos_mla, rotary_embedding._sin_mla = cos[start:], sin[start:]
    try:
        yield
    finally:
        rotary_embedding._cos_mla, rotary_embedding._sin_mla = cos, sin
