"""A connector whose other side is in the same process: what is announced is checked, and what is sent is computed at once.

So it needs no second role, and no wait can go wrong; each exchange that was not announced, and each announcement that is not
followed, is an error. A real connector sends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch


class NotAnnounced(RuntimeError):
    """The attention side does something else than it has announced."""


class ConnectorClosed(RuntimeError):
    """The connector is used before its rendezvous, or after its end."""


@dataclass(frozen=True)
class Payload:
    """What the FFN side is told before a step: `ControlPayload` of the generated modules.

    Attributes:
        dp_metadata_list: tokens of the ranks, by stage.
        is_warmup: whether the step warms up.
        is_graph_capturing: whether it is captured.
        is_graph_replaying: whether it is a replay.
    """

    dp_metadata_list: Mapping[int, Any]
    is_warmup: bool = False
    is_graph_capturing: bool = False
    is_graph_replaying: bool = False

    @property
    def kind(self) -> str:
        """What kind of step it is."""
        flags = {"warm-up": self.is_warmup, "capture": self.is_graph_capturing, "replay": self.is_graph_replaying}
        return "+".join(name for name, raised in flags.items() if raised) or "eager"

    def tokens(self, stage: int, rank: int) -> int:
        """Tokens of a stage on a rank."""
        return int(self.dp_metadata_list[stage].num_tokens_across_dp_cpu[rank])


Experts = Callable[[int, torch.Tensor], torch.Tensor]
"""From the number of a layer and hidden states to what the experts make of them."""


@dataclass
class FFNSide:
    """What an FFN rank knows of its attention rank.

    Attributes:
        experts: computes.
        rank: the attention rank.
        layers: number of layers.
        steps: the kind of each step that was announced, and the number of its stages.
        missing: layers and stages of the step that have not come yet.
    """

    experts: Experts
    rank: int
    layers: int
    steps: list[tuple[str, int]] = field(default_factory=list)
    missing: set[tuple[int, int]] = field(default_factory=set)
    _payload: Payload | None = None

    def announced(self, payload: Payload) -> None:
        """A step is about to come.

        Raises:
            NotAnnounced: the one before is not complete.
        """
        if self.missing:
            raise NotAnnounced(
                f"a step is announced while layers and stages {sorted(self.missing)} of another one are missing"
            )
        self._payload = payload
        self.steps.append((payload.kind, len(payload.dp_metadata_list)))
        self.missing = set(product(range(self.layers), payload.dp_metadata_list))

    def compute(self, layer: int, stage: int, hidden_states: torch.Tensor) -> torch.Tensor:
        """Hidden states have come; what goes back.

        Raises:
            NotAnnounced: others were announced, or none.
        """
        if (layer, stage) not in self.missing or self._payload is None:
            raise NotAnnounced(f"layer {layer} of stage {stage} comes, and only {sorted(self.missing)} are announced")
        if len(hidden_states) != (tokens := self._payload.tokens(stage, self.rank)):
            raise NotAnnounced(f"{len(hidden_states)} tokens of stage {stage} come, and {tokens} are announced")
        self.missing.discard((layer, stage))
        return self.experts(layer, hidden_states)

    def given_up(self) -> None:
        """Nothing more comes of the step."""
        self.missing.clear()


class CAMP2pAFDConnector:
    """Under the name of the synchronous connector, which the configuration asks for: both planes of the attention side.

    It is `AFDControl` and `Connector` of the generated modules.

    Attributes:
        ffn: the other side, from the rendezvous to the end.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.is_warmup = self.is_graph_capturing = self.is_graph_replaying = False
        self.ffn: FFNSide | None = None
        self._sent: dict[int, tuple[torch.Tensor, int]] = {}

    # ---- life cycle ----

    def rendezvous(self, experts: Experts, layers: int) -> None:
        """Meet the other side: when the model is loaded."""
        self.ffn = FFNSide(experts, self.rank, layers)
        _connectors[self.rank] = self

    def abort(self) -> None:
        """Give up the step: tell the other side that nothing more comes of it. Nothing is done when there is none."""
        self._sent.clear()
        if self.ffn is not None:
            self.ffn.given_up()

    def close(self) -> None:
        """Let the other side go; more than once does no harm."""
        self.abort()
        self.ffn = None
        _connectors.pop(self.rank, None)

    @property
    def _there(self) -> FFNSide:
        if self.ffn is None:
            raise ConnectorClosed("the connector is used before the model is loaded, or after the shutdown")
        return self.ffn

    # ---- control plane ----

    def send(self, dp_metadata_list: Mapping[int, Any]) -> None:
        """Announce a step, with the flags as they are."""
        self._sent.clear()
        payload = Payload(dict(dp_metadata_list), self.is_warmup, self.is_graph_capturing, self.is_graph_replaying)
        self._there.announced(payload)

    # ---- data plane ----

    def send_attn_output(self, hidden_states: torch.Tensor, context: tuple[int, int]) -> None:
        """Hand over the hidden states of a layer and stage."""
        layer, stage = context
        self._sent[stage] = hidden_states, layer

    def recv_ffn_output(self, ref_tensor: torch.Tensor, ubatch_idx: int = 0) -> torch.Tensor:
        """What the experts made of what the stage has sent last."""
        hidden_states, layer = self._sent.pop(ubatch_idx)
        return torch.ops.afd_example.experts(hidden_states, layer, ubatch_idx, self.rank)


_connectors: dict[int, CAMP2pAFDConnector] = {}


@torch.library.custom_op("afd_example::experts", mutates_args=())
def _experts(hidden_states: torch.Tensor, layer: int, stage: int, rank: int) -> torch.Tensor:
    """An operator, so that a graph has it and does it again at each replay."""
    return _connectors[rank]._there.compute(layer, stage, hidden_states)


@_experts.register_fake
def _(hidden_states: torch.Tensor, layer: int, stage: int, rank: int) -> torch.Tensor:
    return torch.empty_like(hidden_states)
