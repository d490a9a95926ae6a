"""The parameters of one graph of a split batch, by themselves."""

from __future__ import annotations

from typing import Any
from unittest import mock

from tests.sim.ranks import Rank


def twin(counts: list[tuple[int, int, int]]) -> Any:
    """Parameters for four tokens, with so many events, handles and operands of each stage."""
    from afd_backports.vllm_v026_mrv2_dbo.ascend_params import TwinParams

    params = TwinParams(4)
    for index, (stage, numbers) in enumerate(zip(params.stages, counts, strict=True)):
        for name, kept, number in zip("eho", (stage.events, stage.handles, stage.attn_params), numbers, strict=True):
            kept[4].extend(f"{name}{layer} of stage {index}" for layer in range(number))
    return params


def checked(rank: Rank) -> dict[str, str]:
    """What is said to records of each kind."""
    from afd_backports.vllm_v026_mrv2_dbo.ascend_params import GraphParamsError

    cases: dict[str, tuple[list[tuple[int, int, int]], int | None]] = {
        "complete": ([(2, 2, 2)] * 2, 2),
        "complete, as far as is known": ([(2, 2, 2)] * 2, None),
        "a layer too few": ([(2, 2, 2)] * 2, 3),
        "a layer too many": ([(2, 2, 2)] * 2, 1),
        "nothing": ([(0, 0, 0)] * 2, None),
        "a stage with less": ([(2, 2, 2), (1, 1, 1)], None),
        "no handle of a layer": ([(2, 2, 2), (2, 1, 2)], 2),
        "no event of a layer": ([(2, 2, 2), (1, 2, 2)], 2),
        "no operands of a layer": ([(2, 2, 1), (2, 2, 2)], 2),
    }
    said = {}
    for name, (counts, layers) in cases.items():
        try:
            twin(counts).check(layers)
            said[name] = "complete"
        except GraphParamsError as error:
            said[name] = str(error)
    return said


def merged(rank: Rank) -> dict[str, Any]:
    """The order of two stages' records, whose workspace they have, and where events are recorded."""
    params = twin([(2, 2, 2)] * 2)
    whole = params.merged()
    stream, passed = object(), list[tuple[str, bool]]()
    for index, stage in enumerate(params.stages):
        stage.events[4][:] = [
            mock.Mock(record=lambda on, name=f"{layer} of stage {index}": passed.append((name, on is stream)))
            for layer in range(2)
        ]
    params.let_pass(stream)
    return {
        "events": whole.events, "handles": whole.handles, "operands": whole.attn_params,
        "workspace": whole.workspaces is params.workspaces, "passed": passed,
    }  # fmt: skip
