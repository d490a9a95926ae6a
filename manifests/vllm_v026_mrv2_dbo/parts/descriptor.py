"""How a step is run: vLLM 0.26's batch descriptor, and into how many ubatches the batch is split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor


@dataclass(frozen=True, eq=False)
class AFDBatchExecutionDescriptor(BatchExecutionDescriptor):
    """The native descriptor plus the number of ubatches.

    A single batch (`num_ubatches == 1`) equals the native descriptor of the same shape and hashes alike, so it finds
    the graphs that the native manager captured. A split batch equals no native descriptor: the graphs of two ubatches
    can live in the same dictionary and never collide with native ones.
    """

    num_ubatches: int = 1

    @classmethod
    def of(cls, desc: BatchExecutionDescriptor) -> AFDBatchExecutionDescriptor:
        """`desc` as this class; a native descriptor becomes a single batch."""
        return cls(**vars(desc))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BatchExecutionDescriptor):
            return NotImplemented
        return vars(self) == {"num_ubatches": 1, **vars(other)}

    def __hash__(self) -> int:
        return super().__hash__()


class UBatchGraphManager(ABC):
    """What a graph manager is, beside the native class, when it holds graphs of split batches."""

    @abstractmethod
    def dispatch(
        self, num_reqs: int, num_tokens: int, uniform_token_count: int | None, num_active_loras: int, num_ubatches: int = 1
    ) -> AFDBatchExecutionDescriptor:  # fmt: skip
        """The captured shape that fits and is split into `num_ubatches`; an eager descriptor when there is none."""
