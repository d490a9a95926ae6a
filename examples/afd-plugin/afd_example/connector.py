"""Both ends of a connector between attention rank `i` and FFN rank `i`, which are processes: over gloo, on the host.

One connection carries all of it, in order: announcements and hidden states there, answers back. Each message has a header, so
that whoever waits learns at once that the other end does something else, or has given up the step.

Transfers are operators. The simulated NPU does the operators of a graph again at each replay, so a graph has them. They are done where
they are called, in a capture, too: `capture_moves_data=True` on the FFN side. Those of a real connector are work of the device.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

ATTENTION, FFN = 0, 1
"""The ends, as ranks of a group of two."""

FOR_EVER = timedelta(days=365)
"""An FFN rank waits for the next step as long as there is none. That a process has ended, its connections say."""

PATIENCE = 5.0
"""Seconds for the other end to take what was sent last."""


class NotAnnounced(RuntimeError):
    """The attention side does something else than it has announced."""


class StepGivenUp(RuntimeError):
    """The other end has given up the step."""


class ConnectorClosed(RuntimeError):
    """The connector is used before its rendezvous, or after its end."""


class Message(IntEnum):
    """What a message is; it stands first in the header."""

    STEP = 0  # number of bytes; the payload follows
    DATA = 1  # number of the step, layer, stage, tokens; hidden states follow
    ABORT = 2
    END = 3


@dataclass(frozen=True)
class Tokens:
    """The tokens of a stage on all ranks, as vLLM's `DPMetadata` has them."""

    num_tokens_across_dp_cpu: torch.Tensor


@dataclass(frozen=True)
class Payload:
    """What the FFN side is told before a step: `ControlPayload` of the generated modules.

    Attributes:
        dp_metadata_list: tokens of the ranks, by stage.
        is_warmup: whether the step warms up.
        is_graph_capturing: whether it is captured.
        is_graph_replaying: whether it is a replay.
    """

    dp_metadata_list: Mapping[int, Tokens]
    is_warmup: bool = False
    is_graph_capturing: bool = False
    is_graph_replaying: bool = False

    @property
    def kind(self) -> str:
        """What kind of step it is."""
        flags = {"warm-up": self.is_warmup, "capture": self.is_graph_capturing, "replay": self.is_graph_replaying}
        return "+".join(name for name, raised in flags.items() if raised) or "eager"

    def encode(self) -> bytes:
        """As it is sent."""
        stages = {stage: tokens.num_tokens_across_dp_cpu.tolist() for stage, tokens in self.dp_metadata_list.items()}
        return json.dumps({**vars(self), "dp_metadata_list": stages}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Payload:
        """What was sent."""
        said = json.loads(data)
        stages = {int(stage): Tokens(torch.tensor(tokens)) for stage, tokens in said.pop("dp_metadata_list").items()}
        return cls(stages, **said)


class End:
    """What both ends have in common.

    Attributes:
        rank: of attention rank and FFN rank.
        step: how many steps have been announced.
    """

    def __init__(self, own: int, rank: int) -> None:
        self.rank, self.step = rank, 0
        self._own, self._peer = own, 1 - own
        self._group: Any = None
        self._flying: list[tuple[Any, torch.Tensor]] = []

    def rendezvous(self, folder: str) -> None:
        """Meet the other end: it waits for this one, or this one for it.

        Args:
            folder: one that both see.
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        store = dist.FileStore(f"{folder}/{self.rank}", 2)
        self._group = dist.ProcessGroupGloo(store, self._own, 2, FOR_EVER)
        _ends[self._own, self.rank] = self

    def abort(self) -> None:
        """Give up the step: the other end is told that nothing more comes of it. Nothing is done when there is none."""
        if self._group is not None:
            with contextlib.suppress(RuntimeError):  # it is gone
                self._send(Message.ABORT)

    def close(self) -> None:
        """Leave the other end; more than once does no harm.

        What has been sent is to arrive, but an end that does not listen is not waited for longer than `PATIENCE`.
        """
        if self._group is not None:
            with contextlib.suppress(RuntimeError):
                for work, _ in self._flying:
                    work.wait(timedelta(seconds=PATIENCE))
            self._group = None
            self._flying.clear()
            _ends.pop((self._own, self.rank), None)

    def _send(self, kind: Message, *numbers: int, data: torch.Tensor | None = None) -> None:
        """Send, and do not wait for it."""
        if self._group is None:
            raise ConnectorClosed("the connector is used before the model is loaded, or after the shutdown")
        self._flying = [(work, tensor) for work, tensor in self._flying if not work.is_completed()]
        header = torch.zeros(5, dtype=torch.int64)
        header[: len(numbers) + 1] = torch.tensor([kind, *numbers])
        for tensor in (header,) if data is None else (header, data.clone()):
            self._flying.append((self._group.send([tensor], self._peer, 0), tensor))

    def _receive(self, size: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Wait for a message, or for what follows a header."""
        received = torch.empty(size, dtype=dtype)
        self._group.recv([received], self._peer, 0).wait()
        return received

    def _header(self) -> tuple[Message, list[int]]:
        kind, *numbers = self._receive((5,), torch.int64).tolist()
        return Message(kind), numbers


_ends: dict[tuple[int, int], Any] = {}
"""By end and rank: operators have no other arguments than tensors and numbers."""


class CAMP2pAFDConnector(End):
    """The attention side, under the name of the synchronous connector, which the configuration asks for.

    It is `AFDControl` and `Connector` of the generated modules.
    """

    def __init__(self, rank: int) -> None:
        super().__init__(ATTENTION, rank)
        self.is_warmup = self.is_graph_capturing = self.is_graph_replaying = False
        self._layers: dict[int, int] = {}

    def send(self, dp_metadata_list: Mapping[int, Any]) -> None:
        """Announce a step, with the flags as they are."""
        payload = Payload(dp_metadata_list, self.is_warmup, self.is_graph_capturing, self.is_graph_replaying)
        data = torch.frombuffer(bytearray(payload.encode()), dtype=torch.uint8)
        self._send(Message.STEP, len(data), data=data)
        self.step += 1

    def send_attn_output(self, hidden_states: torch.Tensor, context: tuple[int, int]) -> None:
        """Send the hidden states of a layer and stage."""
        layer, stage = context
        self._layers[stage] = layer
        torch.ops.afd_example.send(hidden_states, layer, stage, ATTENTION, self.rank)

    def recv_ffn_output(self, ref_tensor: torch.Tensor, ubatch_idx: int = 0) -> torch.Tensor:
        """What the experts made of what the stage has sent last."""
        tokens, hidden = ref_tensor.shape
        return torch.ops.afd_example.receive(tokens, hidden, self._layers[ubatch_idx], ubatch_idx, ATTENTION, self.rank)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Let the FFN rank go."""
        if self._group is not None:
            with contextlib.suppress(RuntimeError):
                self._send(Message.END)
        super().close()

    def take(self, tokens: int, hidden: int, layer: int, stage: int) -> torch.Tensor:
        """Wait for an answer. Those to a step that was given up here may still come.

        Raises:
            StepGivenUp: the FFN rank has failed.
        """
        while True:
            kind, numbers = self._header()
            if kind is not Message.DATA:
                raise StepGivenUp(f"FFN rank {self.rank} has given up step {self.step}")
            received = self._receive((numbers[3], hidden))
            if numbers == [self.step, layer, stage, tokens]:
                return received
            assert numbers[0] < self.step, (numbers, self.step)


class FFNEnd(End):
    """The FFN side: `FFNConnector` of the generated modules, and the steps that are announced.

    Args:
        rank: of attention rank and FFN rank.
        hidden: size of the hidden states.
    """

    def __init__(self, rank: int, hidden: int) -> None:
        super().__init__(FFN, rank)
        self._hidden = hidden
        self._payload = Payload({})

    def next_step(self) -> Payload | None:
        """Wait for the next step; None when there is none any more.

        Raises:
            NotAnnounced: hidden states come without a step.
        """
        while (message := self._header())[0] is Message.ABORT:
            pass  # of a step that is complete here
        kind, numbers = message
        if kind is Message.END:
            return None
        if kind is not Message.STEP:
            raise NotAnnounced(f"layer {numbers[1]} of stage {numbers[2]} comes, and nothing is announced")
        self._payload = Payload.decode(bytes(self._receive((numbers[0],), torch.uint8).tolist()))
        self.step += 1
        return self._payload

    def recv_attn_output(self, ubatch_idx: int = 0, *, layer_idx: int = 0) -> tuple[torch.Tensor, tuple[int, int]]:
        """The hidden states of a layer and stage, as many as are announced; and what to send the output with."""
        tokens = int(self._payload.dp_metadata_list[ubatch_idx].num_tokens_across_dp_cpu[self.rank])
        received = torch.ops.afd_example.receive(tokens, self._hidden, layer_idx, ubatch_idx, FFN, self.rank)
        return received, (layer_idx, ubatch_idx)

    def send_ffn_output(self, ffn_output: torch.Tensor, context: tuple[int, int]) -> None:
        """Send back what the experts made of them."""
        torch.ops.afd_example.send(ffn_output, *context, FFN, self.rank)

    def take(self, tokens: int, hidden: int, layer: int, stage: int) -> torch.Tensor:
        """Wait for hidden states.

        Raises:
            StepGivenUp: the attention rank has given up the step.
            NotAnnounced: it does something else.
        """
        kind, numbers = self._header()
        if kind is Message.ABORT:
            raise StepGivenUp(f"attention rank {self.rank} has given up step {self.step}")
        if kind is not Message.DATA or numbers != [self.step, layer, stage, tokens]:
            raise NotAnnounced(
                f"{kind.name} {numbers} comes, where step {self.step}, layer {layer}, stage {stage}, {tokens} tokens are announced"
            )
        return self._receive((tokens, hidden))


@torch.library.custom_op("afd_example::send", mutates_args=("hidden_states",))
def _send(hidden_states: torch.Tensor, layer: int, stage: int, own: int, rank: int) -> None:
    """It says that it changes what it sends: so it is done, and where it stands."""
    end = _ends[own, rank]
    end._send(Message.DATA, end.step, layer, stage, len(hidden_states), data=hidden_states)


@torch.library.custom_op("afd_example::receive", mutates_args=())
def _receive(tokens: int, hidden: int, layer: int, stage: int, own: int, rank: int) -> torch.Tensor:
    return _ends[own, rank].take(tokens, hidden, layer, stage)  # type: ignore[no-any-return]


@_receive.register_fake
def _(tokens: int, hidden: int, layer: int, stage: int, own: int, rank: int) -> torch.Tensor:
    return torch.empty(tokens, hidden)
