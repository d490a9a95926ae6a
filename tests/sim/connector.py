"""A synchronous connector between attention ranks and FFN ranks, over gloo.

FFN rank `i` works for attention rank `i`. Before each step the attention rank announces it; then the hidden states of each layer
and stage go to the FFN rank, and what it made of them comes back. Sends and receives are kernels: a captured graph has them, and
does them again at each replay. Nobody waits for ever: an end that gives up a step tells the other one, the end of a process closes
its connections, and there is a time-out.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from tests.sim.patience import PEER
from tests.sim.runner import side_group
from tests.sim.tape import Work, kernel, record, unwatched

STAGES = 2
"""Most stages of a step."""

TAGS = 1 << 10
"""Tags of one step: for each layer and stage a header and the data, and two for the announcement."""

_FINE, _ABORTED = 0, 1


class PeerAborted(RuntimeError):
    """The other end has given up the step."""


class PeerLost(RuntimeError):
    """The other end is gone, or says nothing."""


class PeerDiverged(RuntimeError):
    """The other end sends what was not announced, or ranks announce different steps."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of one stage; has what vLLM's `DPMetadata` has, as far as it is sent."""

    num_tokens_across_dp_cpu: torch.Tensor


@dataclass(frozen=True)
class Payload:
    """What an attention rank announces.

    Attributes:
        dp_metadata_list: tokens of all ranks, by stage.
        is_warmup: whether the step warms up.
        is_graph_capturing: whether it is captured.
        is_graph_replaying: whether it is a replay.
        is_end: whether there is no step any more.
    """

    dp_metadata_list: Mapping[int, Tokens]
    is_warmup: bool = False
    is_graph_capturing: bool = False
    is_graph_replaying: bool = False
    is_end: bool = False

    @property
    def tokens(self) -> dict[int, list[int]]:
        """Tokens of all ranks, by stage."""
        return {stage: item.num_tokens_across_dp_cpu.tolist() for stage, item in self.dp_metadata_list.items()}

    @property
    def kind(self) -> str:
        """What kind of step it is, in one word as long as the flags do not contradict each other."""
        flags = {"warm-up": self.is_warmup, "capture": self.is_graph_capturing, "replay": self.is_graph_replaying}
        return "+".join(name for name, raised in flags.items() if raised) or "eager"

    def encode(self) -> bytes:
        """As it is sent."""
        return json.dumps({**vars(self), "dp_metadata_list": self.tokens}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Payload:
        """What was sent."""
        said = json.loads(data)
        stages = said.pop("dp_metadata_list").items()
        return cls({int(i): Tokens(torch.tensor(tokens, dtype=torch.int32)) for i, tokens in stages}, **said)


@dataclass(frozen=True)
class Transfer:
    """What is sent: the hidden states of which layer and stage."""

    layer: int
    stage: int


@dataclass(frozen=True)
class Received:
    """Hidden states that were received, and the transfer to answer."""

    hidden_states: torch.Tensor
    context: Transfer


@dataclass
class _Reply:
    """An answer on its way, and the message that it answers."""

    sent: list[Any]
    header: torch.Tensor
    data: torch.Tensor
    works: list[Any] = field(default_factory=list)


class _End:
    """What both ends have in common: numbered steps, messages with a header.

    Attributes:
        capture_moves_data: whether hidden states are sent and received while a graph is captured, too. Work of a device is only
            recorded then.
    """

    def __init__(
        self,
        folder: Path,
        *,
        role: str,
        index: int,
        size: int,
        layers: int,
        timeout: float = PEER,
        capture_moves_data: bool = True,
    ) -> None:
        """Join the group of all ranks: FFN ranks come first.

        Args:
            folder: one that both roles have in common.
            role: `attention` or `ffn`.
            index: number of this rank in its role.
            size: number of ranks of each role.
            layers: number of the model's layers.
            timeout: seconds to wait for the other end within a step.
            capture_moves_data: the same for both ends.
        """
        self.capture_moves_data = capture_moves_data
        own, self._peer = (size + index, index) if role == "attention" else (index, size + index)
        self._group: Any = side_group(folder / "afd", rank=own, size=2 * size)
        self.index, self.layers, self.timeout, self.number = index, layers, timeout, 0
        self.payload = Payload({})
        self._flying: list[Any] = []
        self._done: set[Transfer] = set()

    def _announcement(self, part: int) -> int:
        return (self.number + 2) * TAGS - 2 + part  # of the next step

    def _tag(self, transfer: Transfer, part: int) -> int:
        return self.number * TAGS + (transfer.layer * STAGES + transfer.stage) * 2 + part

    def _send(self, tensor: torch.Tensor, tag: int) -> Any:
        try:
            return self._group.send([tensor], self._peer, tag), tensor
        except RuntimeError as error:
            raise PeerLost(str(error)) from error

    def _receive(self, tensor: torch.Tensor, tag: int) -> Any:
        try:
            return self._group.recv([tensor], self._peer, tag)
        except RuntimeError as error:
            raise PeerLost(str(error)) from error

    def _wait(self, work: Any, timeout: float) -> None:
        try:
            work.wait(timedelta(seconds=timeout))
        except RuntimeError as error:
            raise PeerLost(f"step {self.number}: {error}") from error

    def _send_message(self, transfer: Transfer, data: torch.Tensor) -> list[Any]:
        self._done.add(transfer)
        header = torch.tensor([_FINE, transfer.layer, transfer.stage, len(data)])
        return [self._send(header, self._tag(transfer, 0)), self._send(data.clone(), self._tag(transfer, 1))]

    def _check(self, header: torch.Tensor, transfer: Transfer, tokens: int) -> None:
        status, *said = header.tolist()
        if status == _ABORTED:
            raise PeerAborted(f"the other end has given up step {self.number} at {transfer}")
        if said != [transfer.layer, transfer.stage, tokens]:
            raise PeerDiverged(
                f"step {self.number}: {tokens} tokens are announced for {transfer}; layer, stage, tokens sent: {said}"
            )

    def _transfer(self, name: str, work: Work, operands: list[torch.Tensor]) -> None:
        if self.capture_moves_data or not record(name, work, operands):
            kernel(name, work, operands)

    def _begin(self, payload: Payload) -> None:
        self.payload = payload
        self.number += 1
        self._flying.clear()
        self._done.clear()

    def abort(self) -> None:
        """Tell the other end that nothing more will come in this step; does not wait."""
        with unwatched(), contextlib.suppress(PeerLost):
            for layer in range(self.layers):
                for stage in range(STAGES):
                    transfer = Transfer(layer, stage)
                    if transfer not in self._done:
                        header = torch.tensor([_ABORTED, layer, stage, 0])
                        self._flying.append(self._send(header, self._tag(transfer, 0)))


class AttentionEnd(_End):
    """The connector of an attention rank, and its end of the control plane.

    Attributes:
        sent: all that was announced.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, role="attention", **kwargs)
        self.is_warmup = self.is_graph_capturing = self.is_graph_replaying = False
        self.sent: list[Payload] = []
        self._layers: dict[int, int] = {}
        self._replies: dict[Transfer, _Reply] = {}

    @property
    def raised(self) -> bool:
        """Whether any flag is raised."""
        return self.is_warmup or self.is_graph_capturing or self.is_graph_replaying

    def send(self, dp_metadata_list: Mapping[int, Any]) -> None:
        """Announce a step, with the flags as they are."""
        stages = {i: Tokens(metadata.num_tokens_across_dp_cpu.clone()) for i, metadata in dp_metadata_list.items()}
        self.announce(Payload(stages, self.is_warmup, self.is_graph_capturing, self.is_graph_replaying))

    def announce(self, payload: Payload) -> None:
        """Tell the FFN rank of a step, or that there is none any more."""
        with unwatched():
            data = torch.frombuffer(bytearray(payload.encode()), dtype=torch.uint8)
            for part, message in enumerate((torch.tensor([len(data)]), data)):
                self._wait(self._send(message, self._announcement(part))[0], self.timeout)
            # The other end has done with the last step; until now it could still send answers that nobody waits for.
            self._begin(payload)
            self._replies.clear()
            self.sent.append(payload)

    def end(self) -> None:
        """Let the FFN rank go."""
        self.announce(Payload({}, is_end=True))

    def send_attn_output(self, hidden_states: torch.Tensor, context: Transfer) -> None:
        """Send the hidden states of a layer and stage, and be ready for the answer."""
        self._layers[context.stage] = context.layer
        self._transfer("afd::send", lambda: self._post(hidden_states, context), [hidden_states])

    def _post(self, hidden_states: torch.Tensor, transfer: Transfer) -> None:
        # The other end sends when it is done, whether somebody waits here or not.
        reply = _Reply(
            self._send_message(transfer, hidden_states),
            torch.zeros(4, dtype=torch.int64),
            torch.empty_like(hidden_states),
        )
        reply.works = [self._receive(part, self._tag(transfer, i)) for i, part in enumerate((reply.header, reply.data))]
        self._replies[transfer] = reply

    def recv_ffn_output(self, ref_tensor: torch.Tensor, ubatch_idx: int = 0) -> torch.Tensor:
        """What came back for the layer that was sent last."""
        out, transfer = torch.zeros_like(ref_tensor), Transfer(self._layers[ubatch_idx], ubatch_idx)
        self._transfer("afd::receive", lambda: self._take(out, transfer), [out])
        return out

    def recv_nothing(self) -> None:
        """Wait for what the FFN rank never sends."""
        self._wait(self._receive(torch.zeros(1), 0), PEER)

    def _take(self, out: torch.Tensor, transfer: Transfer) -> None:
        reply = self._replies.pop(transfer)
        self._wait(reply.works[0], self.timeout)
        self._check(reply.header, transfer, len(out))
        for work in (reply.works[1], *(work for work, _ in reply.sent)):
            self._wait(work, self.timeout)
        out.copy_(reply.data)


class FFNEnd(_End):
    """The connector of an FFN rank, and its end of the control plane.

    Attributes:
        seen: all that was announced.
    """

    def __init__(self, *args: Any, hidden: int, **kwargs: Any) -> None:
        """As the other end, with the size of the hidden states."""
        super().__init__(*args, role="ffn", **kwargs)
        self._hidden = hidden
        self.seen: list[Payload] = []

    def recv(self) -> Payload:
        """The next step."""
        size = torch.zeros(1, dtype=torch.int64)
        self._wait(self._receive(size, self._announcement(0)), PEER)
        data = torch.zeros(int(size), dtype=torch.uint8)
        self._wait(self._receive(data, self._announcement(1)), self.timeout)
        payload = Payload.decode(bytes(data.tolist()))
        self._begin(payload)
        self.seen.append(payload)
        return payload

    def tokens(self, stage: int) -> int:
        """How many tokens of a stage are announced for this rank."""
        return self.payload.tokens[stage][self.index]

    def recv_attn_output(self, ubatch_idx: int = 0, *, layer_idx: int = 0) -> Received:
        """The hidden states of a layer and stage, as many as are announced."""
        transfer, hidden_states = Transfer(layer_idx, ubatch_idx), torch.zeros(self.tokens(ubatch_idx), self._hidden)
        self._transfer("afd::receive", lambda: self._take(hidden_states, transfer), [hidden_states])
        return Received(hidden_states, transfer)

    def _take(self, hidden_states: torch.Tensor, transfer: Transfer) -> None:
        header = torch.zeros(4, dtype=torch.int64)
        self._wait(self._receive(header, self._tag(transfer, 0)), self.timeout)
        self._check(header, transfer, len(hidden_states))
        data = torch.empty_like(hidden_states)
        self._wait(self._receive(data, self._tag(transfer, 1)), self.timeout)
        hidden_states.copy_(data)

    def send_ffn_output(self, ffn_output: torch.Tensor, context: Transfer) -> None:
        """Send back what became of the hidden states."""
        self._transfer("afd::send", lambda: self._answer(ffn_output, context), [ffn_output])

    def _answer(self, ffn_output: torch.Tensor, transfer: Transfer) -> None:
        for work, _ in self._send_message(transfer, ffn_output):
            self._wait(work, self.timeout)
