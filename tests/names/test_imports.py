"""Imports of one generated module: merged over its entries, checked, written in a fixed order."""

from __future__ import annotations

import random

import pytest

from afd_patchkit.names.imports import merge_imports, merge_statements, render_imports
from afd_patchkit.names.model import ImportNeed, NamePlan

N = ImportNeed


def test_the_block_is_grouped_and_sorted() -> None:
    needs = [
        N("__future__", "annotations"),
        N("os"),
        N("os.path"),
        N("collections", "abc"),
        N("torch"),
        N("torch.nn", alias="nn"),
        N("vllm.config", "VllmConfig"),
        N("vllm.config", "get_config"),
        N("vllm.config", "LIMIT"),
        N("vllm.config", "Other", "Renamed"),
        N("vllm.types", "OnlyTypes", None, "type_checking"),
        N("typing", "Sequence", None, "type_checking"),
        N("vllm.config", "VllmConfig", None, "type_checking"),
        N("own.part", "mine"),
    ]
    expected = """\
from __future__ import annotations

import os
import os.path
from collections import abc
from typing import TYPE_CHECKING

import torch
import torch.nn as nn
from vllm.config import LIMIT, Other as Renamed, VllmConfig, get_config

from own.part import mine

try:
    import fast
except ImportError:
    fast = None

if TYPE_CHECKING:
    from typing import Sequence

    from vllm.types import OnlyTypes
"""
    statement = "try:\n    import fast\nexcept ImportError:\n    fast = None\n"
    for seed in range(5):
        random.Random(seed).shuffle(needs)
        block = render_imports(needs, [statement], first_party=["own"])
        assert block == expected.replace("LIMIT, Other as Renamed, VllmConfig", "LIMIT, Other as Renamed, VllmConfig")
        compile(block, "block", "exec")


def test_long_lines_are_wrapped_and_nothing_gives_nothing() -> None:
    needs = [N("package.with_a.rather_long_name", f"function_number_{i}") for i in range(4)]
    block = render_imports(needs)
    assert block.startswith("from package.with_a.rather_long_name import (\n    function_number_0,\n")
    assert block.endswith("    function_number_3,\n)\n")
    assert render_imports([]) == ""


def plan(
    label: str, *imports: ImportNeed, statements: tuple[str, ...] = (), future: bool = False, annotated: bool = True
):
    return NamePlan(imports=imports, statements=statements, future_annotations=future, annotated=annotated, label=label)


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (N("a.log", "logger"), N("b.log", "logger"), False),
        (N("a.log", "logger"), N("a.log", "logger"), True),
        (N("a.b"), N("a.c"), True),
        (N("a.b", alias="x"), N("a", "b", "x"), True),
        (N("a.b", alias="x"), N("a.c", alias="x"), False),
        (N("a", "x", None, "type_checking"), N("b", "x", None, "type_checking"), False),
        (N("a"), N("b", "a"), False),
    ],
)
def test_one_name_with_two_meanings_is_found(one: ImportNeed, other: ImportNeed, agree: bool) -> None:
    _, findings = merge_imports([plan("gen:f", one), plan("gen:g", other)])
    assert [f.code for f in findings] == ([] if agree else ["PK308"])
    for found in findings:
        assert found.details == (f"gen:f: {one.meaning}", f"gen:g: {other.meaning}")


def test_names_of_copied_statements_count_and_equal_ones_are_one() -> None:
    guarded = "try:\n    import fast\nexcept ImportError:\n    fast = None"
    plans = [
        plan("gen:f", statements=(guarded,)),
        plan("gen:g", statements=(guarded,)),
        plan("gen:h", N("other", "fast")),
    ]
    assert [f.code for f in merge_imports(plans)[1]] == ["PK308"]
    assert merge_statements(plans) == [guarded]


def test_an_import_needed_at_run_time_leaves_the_type_checking_block() -> None:
    needs, findings = merge_imports([plan("a", N("m", "X", None, "type_checking")), plan("b", N("m", "X"))])
    assert (needs, findings) == ([N("m", "X")], [])


@pytest.mark.parametrize(
    ("entries", "future", "agree"),
    [
        ([(True, True), (True, True)], True, True),
        ([(False, True), (False, True)], False, True),
        ([(True, True), (False, True)], True, False),
        ([(True, True), (False, False)], True, True),
        ([(True, False), (False, True)], False, True),
        ([(True, False), (False, False)], True, True),
        ([], False, True),
    ],
)
def test_entries_with_annotations_must_agree_about_the_future_import(
    entries: list[tuple[bool, bool]], future: bool, agree: bool
) -> None:
    needs, findings = merge_imports([plan(f"e{i}", future=f, annotated=a) for i, (f, a) in enumerate(entries)])
    assert (N("__future__", "annotations") in needs) is future
    assert [f.code for f in findings] == ([] if agree else ["PK309"])
