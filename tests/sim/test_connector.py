"""The connector: what is sent arrives where it belongs, in graphs too; an end that gives up is heard of."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="runs in the environment that tools/vllm_env makes")

import torch

from tests.sim.connector import AttentionEnd, FFNEnd, Payload, PeerAborted, PeerDiverged, Tokens, Transfer
from tests.sim.ranks import Rank, run_ranks

pytestmark = pytest.mark.vllm

HIDDEN, LAYERS = 3, 2
ORDER = [Transfer(layer, stage) for layer in range(LAYERS) for stage in range(2)]


def payload(*stages: int, **flags: bool) -> Payload:
    """Tokens of the only rank, by stage."""
    return Payload({i: Tokens(torch.tensor([tokens], dtype=torch.int32)) for i, tokens in enumerate(stages)}, **flags)


def end(rank: Rank) -> Any:
    """The end of this rank: one of each role."""
    role, place = rank.within(attention=1, ffn=1)
    common: dict[str, Any] = {"index": place.index, "size": place.size, "layers": LAYERS}
    return AttentionEnd(rank.folder, **common) if role == "attention" else FFNEnd(rank.folder, hidden=HIDDEN, **common)


def answer(ffn: FFNEnd) -> None:
    """All layers and stages of a step: what comes back tells which transfer it was."""
    for layer in range(LAYERS):
        for stage in ffn.payload.tokens:
            received = ffn.recv_attn_output(stage, layer_idx=layer)
            ffn.send_ffn_output(
                received.hidden_states * 2 + received.context.layer * 100 + received.context.stage * 10,
                received.context,
            )


def exchange(attention: AttentionEnd, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """All layers and stages of a step, both stages on their way at once."""
    outputs = list(inputs)
    for layer in range(LAYERS):
        for stage, x in enumerate(outputs):
            attention.send_attn_output(x, Transfer(layer, stage))
        outputs = [attention.recv_ffn_output(x, stage) for stage, x in enumerate(outputs)]
    return outputs


def expected(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """What `exchange` gives with `answer` at the other end."""
    return [(x * 2 + stage * 10) * 2 + 100 + stage * 10 for stage, x in enumerate(inputs)]


def same(ones: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    """Whether all are equal."""
    return len(ones) == len(others) and all(torch.equal(one, other) for one, other in zip(ones, others, strict=True))


# ---- one step, many steps -------------------------------------------------------------------------------------

SIZES = [(4,), (3, 5), (1, 1), (40_000, 1), (2, 50_000)]


def steps(rank: Rank) -> Any:
    own = end(rank)
    if isinstance(own, FFNEnd):
        while not own.recv().is_end:
            answer(own)
        return [seen.tokens for seen in own.seen]
    found = []
    for number, sizes in enumerate(SIZES):
        inputs = [torch.randn(size, HIDDEN) for size in sizes]
        own.is_warmup = number == 1
        own.send(payload(*sizes).dp_metadata_list)
        found.append(same(exchange(own, inputs), expected(inputs)))
    own.end()
    return found, [seen.kind for seen in own.sent]


def test_all_layers_and_stages_arrive_where_they_belong() -> None:
    (found, kinds), seen = run_ranks(steps)
    assert found == [True] * len(SIZES)
    assert kinds == ["eager", "warm-up", "eager", "eager", "eager", "eager"]
    assert seen == [*({stage: [size] for stage, size in enumerate(sizes)} for sizes in SIZES), {}]


# ---- graphs ---------------------------------------------------------------------------------------------------


def graphs(rank: Rank) -> Any:
    own, graph, sizes = end(rank), torch.cuda.CUDAGraph(), (3, 5)
    if isinstance(own, FFNEnd):
        own.recv()
        with torch.cuda.graph(graph):
            answer(own)
        while not own.recv().is_end:
            graph.replay()
        return graph.replays  # type: ignore[attr-defined]
    inputs = [torch.randn(size, HIDDEN) for size in sizes]
    own.announce(payload(*sizes, is_graph_capturing=True))
    with torch.cuda.graph(graph):
        outputs = exchange(own, inputs)
    found = [same(outputs, expected(inputs))]
    for _ in range(3):
        for x in inputs:
            x.normal_()
        own.announce(payload(*sizes, is_graph_replaying=True))
        graph.replay()
        found.append(same(outputs, expected(inputs)))
    own.end()
    return found


def test_graphs_of_both_ends_exchange_what_is_there_when_they_are_replayed() -> None:
    assert run_ranks(graphs) == [[True] * 4, 3]


# ---- given up, diverged ---------------------------------------------------------------------------------------


def given_up(rank: Rank) -> Any:
    """In each step but the last, one end gives up after some transfers."""
    own = end(rank)
    if isinstance(own, FFNEnd):
        found: list[Any] = []
        while not own.recv().is_end:
            if len(found) == 2:
                own.abort()
                found.append("own")
                continue
            try:
                answer(own)
            except PeerAborted as error:
                found.append(str(error))
        return found
    for sent in (0, 1):
        own.announce(payload(2, 2))
        for transfer in ORDER[:sent]:
            own.send_attn_output(torch.zeros(2, HIDDEN), transfer)
        own.abort()
    own.announce(payload(2, 2))
    with pytest.raises(PeerAborted, match=r"step 3 at Transfer\(layer=0, stage=0\)"):
        exchange(own, [torch.zeros(2, HIDDEN)] * 2)
    inputs = [torch.randn(2, HIDDEN), torch.randn(2, HIDDEN)]
    own.announce(payload(2, 2))
    right = same(exchange(own, inputs), expected(inputs))
    own.abort()  # nothing of this step is left to give up
    own.end()
    return right


def test_after_a_step_that_was_given_up_comes_one_that_is_right() -> None:
    right, found = run_ranks(given_up)
    assert right
    assert found == [
        "the other end has given up step 1 at Transfer(layer=0, stage=0)",
        "the other end has given up step 2 at Transfer(layer=0, stage=1)",
        "own",
    ]


def diverged(rank: Rank) -> str:
    own = end(rank)
    if isinstance(own, FFNEnd):
        own.recv()
        with pytest.raises(PeerDiverged) as raised:
            answer(own)
        own.abort()
        own.recv()
        return str(raised.value)
    own.announce(payload(2))
    own.send_attn_output(torch.zeros(3, HIDDEN), Transfer(0, 0))
    own.end()
    return ""


def test_other_tokens_than_announced_are_noticed() -> None:
    assert run_ranks(diverged)[1] == (
        "step 1: 2 tokens are announced for Transfer(layer=0, stage=0); layer, stage, tokens sent: [0, 0, 3]"
    )


@pytest.mark.parametrize(
    "flags", [{}, {"is_warmup": True}, {"is_graph_capturing": True}, {"is_graph_replaying": True}, {"is_end": True}]
)
def test_a_payload_is_read_as_it_was_sent(flags: dict[str, bool]) -> None:
    said = payload(3, 5, **flags)
    read = Payload.decode(said.encode())
    assert read.tokens == said.tokens == {0: [3], 1: [5]}
    assert {**vars(read), "dp_metadata_list": 0} == {**vars(said), "dp_metadata_list": 0}
    assert read.dp_metadata_list[0].num_tokens_across_dp_cpu.dtype == torch.int32
