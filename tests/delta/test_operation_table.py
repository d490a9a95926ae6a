"""The table of operations, the models, and the functions that apply them name the same operations."""

from __future__ import annotations

import pytest

from afd_patchkit.delta.operations import APPLIED
from afd_patchkit.model import Delta
from afd_patchkit.operations import OPERATIONS


def test_every_operation_is_a_field_and_every_field_goes_with_one():
    keys = set(Delta.key_names())
    assert set(OPERATIONS) < keys
    companions = {key for does in OPERATIONS.values() for key in does.keys.companions}
    assert companions < keys
    assert keys - companions - set(OPERATIONS) == {"name", "reason", "frozen"}


@pytest.mark.parametrize("name", OPERATIONS)
def test_anchors_are_patterns_of_the_model(name):
    for anchor in OPERATIONS[name].anchors:
        key, _, inner = anchor.partition(".")
        assert key == name or key in OPERATIONS[name].keys.companions
        annotation = Delta.model_fields[key].annotation
        models = [cls for cls in getattr(annotation, "__args__", ()) if hasattr(cls, "model_fields")]
        assert not inner or any(inner in set(cls.key_names()) for cls in models)


def test_every_operation_is_applied():
    assert list(APPLIED) == list(OPERATIONS)
