"""Metadata builders: two for one initialisation of the KV cache, one for each ubatch's groups."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from afd_backports.vllm_v026_mrv2_dbo import attention
from afd_backports.vllm_v026_mrv2_dbo.scopes import ForeignPatchError
from vllm.v1.worker.utils import AttentionGroup

pytestmark = pytest.mark.vllm

NATIVE = vars(AttentionGroup)["create_metadata_builders"]


class Builder:
    def __init__(self, *args: Any) -> None:
        self.args = args


class Backend:
    @staticmethod
    def get_builder_cls() -> type[Builder]:
        return Builder


class Spec:
    def copy_with_new_block_size(self, size: int) -> tuple[str, int]:
        return ("copy", size)


SPEC = Spec()


def make_group(number: int = 0, **how: Any) -> AttentionGroup:
    group = AttentionGroup(Backend, [f"layer {number}"], SPEC, number)  # type: ignore[arg-type]
    group.create_metadata_builders("config", "device", **how)
    return group


def test_the_signature_is_the_native_one() -> None:
    assert inspect.signature(attention.create_metadata_builders) == inspect.signature(NATIVE)


def test_two_builders_in_the_scope_and_one_outside() -> None:
    assert len(make_group(num_metadata_builders=1).metadata_builders) == 1
    with attention.ubatch_metadata_builders():
        group = make_group(kernel_block_size=8, num_metadata_builders=1)
    assert vars(AttentionGroup)["create_metadata_builders"] is NATIVE
    assert len(make_group(num_metadata_builders=1).metadata_builders) == 1
    one, two = group.metadata_builders
    assert one is not two
    for builder in (one, two):
        assert builder.args == (("copy", 8), ["layer 0"], "config", "device")  # type: ignore[attr-defined]


def test_more_builders_than_ubatches_stay() -> None:
    with attention.ubatch_metadata_builders():
        assert len(make_group(num_metadata_builders=3).metadata_builders) == 3


def test_scopes_nest_and_are_left_on_failure() -> None:
    def fail_in_the_outer_scope() -> None:
        with attention.ubatch_metadata_builders():
            with attention.ubatch_metadata_builders():
                assert len(make_group().metadata_builders) == 2
            assert len(make_group().metadata_builders) == 2
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail_in_the_outer_scope()
    assert vars(AttentionGroup)["create_metadata_builders"] is NATIVE


def test_a_foreign_patch_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AttentionGroup, "create_metadata_builders", lambda self, *args: None)
    with pytest.raises(ForeignPatchError, match="create_metadata_builders"), attention.ubatch_metadata_builders():
        pass


def test_each_ubatch_sees_its_own_builder() -> None:
    with attention.ubatch_metadata_builders():
        groups = [[make_group(0), make_group(1)], [make_group(2)]]
    for ubatch in range(2):
        seen = attention.ubatch_attn_groups(groups, ubatch)
        assert [[g.layer_names for g in row] for row in seen] == [[g.layer_names for g in row] for row in groups]
        for mine, whole in zip([*seen[0], *seen[1]], [*groups[0], *groups[1]], strict=True):
            assert mine.get_metadata_builder(0) is whole.get_metadata_builder(ubatch)
            assert type(mine) is AttentionGroup
            assert mine.kv_cache_group_id == whole.kv_cache_group_id
    # The native groups are as they were.
    assert all(len(group.metadata_builders) == 2 for row in groups for group in row)


def test_a_group_with_one_builder_is_refused() -> None:
    with pytest.raises(AssertionError):
        attention.ubatch_attn_groups([[make_group()]], 1)
