"""vLLM's validation, relaxed: beside patches of others in any order, for a block, for a process, in the processes of vLLM."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import relaxations
from tests.sim.environments import PLUGIN_VARIABLE, VLLM, ascend
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm

ACCEPTED = "dbo True, 0, allgather_reducescatter, cascade off True"
REFUSED = "Model Runner V2 does not yet support: dual batch overlap"
REFUSED_V1 = "Microbatching currently only supports"
ORDERS = {
    "o": True, "t": True, "ot": True, "to": True, "oto": True, "tot": True,
    "otOT": False, "ototOOTT": False,  # they put back ours, which does nothing any more
    "oo": True,  # and goes with the next one
}  # fmt: skip
"""In which order patches are put on, and taken off; whether the native function is back in the end."""


def alone(function, *args, environment=VLLM, timeout=30):
    return run_ranks(function, *args, world=1, environment=environment, timeout=timeout)[0]


def test_it_composes_with_patches_of_others() -> None:
    seen = alone(relaxations.compose, list(ORDERS))
    for order, native in ORDERS.items():
        v2, v1, after, is_native = seen[order]
        assert v2 == ACCEPTED if "o" in order else REFUSED in v2, order
        assert v1 == ACCEPTED if "t" in order else REFUSED_V1 in v1, order
        assert REFUSED in after, order
        assert is_native == native, order


@pytest.mark.parametrize("first", [True, False], ids=["ours first", "theirs first"])
@pytest.mark.parametrize("on_ascend", [False, True], ids=["vLLM", "vllm-ascend"])
def test_it_composes_with_the_real_plugin(first: bool, on_ascend: bool) -> None:
    tree, environment = os.environ.get(PLUGIN_VARIABLE), ascend() if on_ascend else VLLM
    if tree is None or environment is None:
        pytest.skip(f"{PLUGIN_VARIABLE} is not set, or there is no vllm-ascend")
    seen = alone(relaxations.real_plugin, tree, on_ascend, first, environment=environment)
    assert seen["V2"].startswith("dbo True, 0")
    assert seen["V1"].startswith("dbo True, 0")
    assert not seen["no AFD"].startswith("dbo True")
    assert not seen["ended"].startswith("dbo True")
    assert seen.get("theirs alone", seen["ended"]) == seen["ended"]


def test_relaxations_add_up() -> None:
    seen = alone(relaxations.nested)
    assert REFUSED in seen.pop("ended")
    assert set(seen.values()) == {ACCEPTED}


def test_a_relaxation_for_the_process() -> None:
    seen = alone(relaxations.for_process)
    assert all(seen.pop(name) for name in ("the same", "another", "the same below", "native"))
    assert REFUSED in seen.pop("dropped")
    assert REFUSED in seen.pop("ended")
    assert seen == {"kept": ACCEPTED, "after blocks": ACCEPTED, "again": ACCEPTED}


def test_it_is_in_force_from_its_beginning_to_its_end_and_kept_as_long() -> None:
    assert alone(relaxations.begun_and_ended) == {
        "in force": [False, True, False], "applies": [False, True, False], "kept": [True, False],
    }  # fmt: skip


def test_those_of_a_process_end_in_any_order() -> None:
    assert alone(relaxations.in_order)


def test_one_for_another_device_says_so_once() -> None:
    warnings, seen = alone(relaxations.for_another_device)
    assert seen["right"] == ACCEPTED
    assert REFUSED in seen["wrong in a block"]
    assert REFUSED in seen["wrong"]
    assert REFUSED in seen["once more"]
    [(message, *arguments)] = warnings
    assert arguments == ["npu", "cpu"]
    assert "device_type" in message


def test_in_every_process_of_vllm() -> None:
    """Until a process has loaded plugins, its validation is native; then the relaxation is there before it is asked."""
    assert alone(relaxations.spawned, timeout=120) == {
        "here": True,
        "engine_process": (True, True, True),
        "worker_process": (True, True, True),
    }
