"""Metadata builders of their own for the ubatches, and groups that hold one of them."""

from contextlib import AbstractContextManager
from dataclasses import replace

from afd_backports.vllm_v026_mrv2_dbo import scopes
from vllm.v1.worker.utils import AttentionGroup

NUM_UBATCHES = 2

_native_create = AttentionGroup.create_metadata_builders


def ubatch_metadata_builders() -> AbstractContextManager[None]:
    """Let the attention groups that are set up in the block have a metadata builder for each ubatch.

    For one initialisation of the KV cache; the native class is as it was afterwards, and so are groups set up elsewhere.
    """
    ours = create_metadata_builders  # type: ignore[name-defined]  # noqa: F821 - below
    return scopes.substitute(AttentionGroup, "create_metadata_builders", _native_create, ours)


def ubatch_attn_groups(attn_groups: list[list[AttentionGroup]], ubatch_idx: int) -> list[list[AttentionGroup]]:
    """The groups as one ubatch sees them: its builder is the only one.

    The builder of a ubatch is chosen by the groups that `prepare_attn` is given, as its signature has no place for a number.
    """
    return [
        [replace(group, metadata_builders=[group.get_metadata_builder(ubatch_idx)]) for group in groups]
        for groups in attn_groups
    ]
