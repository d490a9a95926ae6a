"""What the AFD plugin provides; nothing here asks an object what it can do."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import torch
from vllm.config import VllmConfig
from vllm.forward_context import DPMetadata
from vllm.v1.worker.gpu.input_batch import InputBatch
from vllm.v1.worker.ubatch_utils import UBatchSlice


@dataclass(frozen=True)
class Stage:
    """One ubatch of a step.

    Attributes:
        index: its number.
        num_stages: number of ubatches of the step.
        slice: its requests and tokens in the whole batch.
        num_tokens: its tokens without padding.
        dp_metadata: tokens of this stage on all DP ranks.
    """

    index: int
    num_stages: int
    slice: UBatchSlice
    num_tokens: int
    dp_metadata: DPMetadata


class AFDSettings(Protocol):
    """The AFD part of a configuration, parsed."""

    @property
    def role(self) -> str:
        """`attention` or `ffn`."""

    @property
    def connector(self) -> str:
        """Name of the connector class."""

    @property
    def async_dp(self) -> bool:
        """Whether the connector works asynchronously."""

    @property
    def compute_gate_on_attention(self) -> bool:
        """Whether the attention side computes the gate of the experts."""

    @property
    def num_attention_ranks(self) -> int:
        """Number of attention ranks."""


class SettingsParser(Protocol):
    """Reads the AFD part of a configuration."""

    def __call__(self, vllm_config: VllmConfig) -> AFDSettings | None:
        """The settings; None when the configuration has no AFD part."""


class MetadataProvider(Protocol):
    """Fills in what only the plugin, or the platform, knows of a stage."""

    def complete(
        self, input_batch: InputBatch, ubatch: InputBatch, ubatch_slice: UBatchSlice, for_capture: bool
    ) -> InputBatch:
        """The ubatch with the fields that the native slicer does not know, as `slice_ascend_fields` makes them."""

    def building(self, ubatch_slice: UBatchSlice) -> AbstractContextManager[None]:
        """The block in which the attention metadata of the ubatch is built."""

    def additional_kwargs(self, stage: Stage) -> Mapping[str, Any]:
        """What goes into the stage's forward context beyond the platform's part."""


class RankTokens(Protocol):
    """As much of vLLM's `DPMetadata` as goes from one side to the other."""

    @property
    def num_tokens_across_dp_cpu(self) -> torch.Tensor:
        """Tokens of each DP rank."""


class ControlPayload(Protocol):
    """What the FFN side is told before a step; at most one of the flags is raised."""

    @property
    def dp_metadata_list(self) -> Mapping[int, RankTokens]:
        """Tokens of the ranks, by stage."""

    @property
    def is_warmup(self) -> bool:
        """Whether the step warms up."""

    @property
    def is_graph_capturing(self) -> bool:
        """Whether the step is captured."""

    @property
    def is_graph_replaying(self) -> bool:
        """Whether the step replays a graph."""


class AFDControl(Protocol):
    """The attention side's end of the control plane; its flags go into every payload that it sends.

    What is generated here announces split steps: before they run eagerly, are warmed up, captured and replayed. Single
    batches take vLLM's own path, so the plugin announces them as it does without ubatches: where the model is called, and
    before a native graph is replayed.
    """

    is_warmup: bool
    is_graph_capturing: bool
    is_graph_replaying: bool

    def send(self, dp_metadata_list: Mapping[int, DPMetadata]) -> None:
        """Tell the FFN side of the step that is about to run."""


class Connector(Protocol):
    """The data plane, as a model proxy uses it on the attention side: it hands over to the other stage between the two."""

    def send_attn_output(self, hidden_states: torch.Tensor, context: Any) -> None:
        """Hand a layer's hidden states to the FFN side."""

    def recv_ffn_output(self, ref_tensor: torch.Tensor, ubatch_idx: int = 0) -> torch.Tensor:
        """What the FFN side made of them."""


class FFNConnector(Protocol):
    """The data plane on the FFN side; layers are the outer loop, stages the inner one."""

    def recv_attn_output(self, ubatch_idx: int = 0, **kwargs: Any) -> Any:
        """A layer's hidden states of one stage, and the context to send the output with."""

    def send_ffn_output(self, ffn_output: torch.Tensor, context: Any, **kwargs: Any) -> None:
        """Hand the output back to where the hidden states came from."""


class FFNAction(Enum):
    """What the FFN side does with a step.

    `KEEP`: nothing. The shape has been captured, and it is announced for another capture, in which no data moves.
    """

    EAGER = "eager"
    CAPTURE = "capture"
    REPLAY = "replay"
    KEEP = "keep"


class FFNPolicy(Protocol):
    """Decides on the FFN side."""

    def action(self, payload: ControlPayload) -> FFNAction:
        """What to do. A shape is captured once, however often it is announced for capture."""

    def captured(self, payload: ControlPayload) -> None:
        """The capture that `action` has asked for is complete."""

    def forget(self) -> None:
        """All graphs are dropped."""


class AFDHost(Protocol):
    """All that a ubatch runner needs of the plugin."""

    @property
    def metadata(self) -> MetadataProvider:
        """What only the plugin knows of a stage."""

    @property
    def control(self) -> AFDControl:
        """The control plane."""


class PlainMetadata:
    """A metadata provider that has nothing to add."""

    def complete(
        self, input_batch: InputBatch, ubatch: InputBatch, ubatch_slice: UBatchSlice, for_capture: bool
    ) -> InputBatch:
        """The ubatch as the native slicer made it."""
        return ubatch

    def building(self, ubatch_slice: UBatchSlice) -> AbstractContextManager[None]:
        """As it is built natively."""
        return nullcontext()

    def additional_kwargs(self, stage: Stage) -> Mapping[str, Any]:
        """Nothing."""
        return {}


class SilentControl:
    """A control plane that nobody listens to."""

    def __init__(self) -> None:
        self.is_warmup = self.is_graph_capturing = self.is_graph_replaying = False

    def send(self, dp_metadata_list: Mapping[int, DPMetadata]) -> None:
        """Tell nobody."""


class PlainHost:
    """The host of a runner without FFN ranks: the experts are in the model itself."""

    def __init__(self) -> None:
        self.metadata = PlainMetadata()
        self.control = SilentControl()
