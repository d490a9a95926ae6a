"""`elements:`, arguments appended and renamed, headers of nested definitions: what they refuse."""

from __future__ import annotations

import pytest

from tests.delta.deltas import refused


@pytest.mark.parametrize(
    ("statement", "change", "code", "message"),
    [
        ("return x", "of: 'return ...', add: 'y'", "PK218", "no tuple, list or set"),
        ("a, b = c, d", "of: 'a, b = c, d', add: 'y'", "PK218", "several tuples"),
        ("return {x: 1}", "of: 'return ...', add: 'y'", "PK218", "no tuple, list or set"),
        ("return a, b", "of: 'return ...', remove: 'c'", "PK201", "no element matches `c`"),
        ("return a, a", "of: 'return ...', remove: 'a'", "PK202", "2 elements match `a`"),
        ("return a, b", "of: 'return ...', add: 'c', before: 'd'", "PK201", "no element matches `d`"),
        ("return {a}", "of: 'return ...', remove: 'a'", "PK218", "no element left"),
        ("return a, b", "of: 'return c, d', add: 'c'", "PK201", "matches nothing"),
    ],
)
def test_elements(statement: str, change: str, code: str, message: str) -> None:
    found = refused(f"def f(x):\n    {statement}\n", f"- name: d\n  elements: {{{change}}}\n")
    assert found.code == code
    assert message in found.message
    assert found.delta == "d"


@pytest.mark.parametrize(
    ("call", "change", "message"),
    [
        ("g(x)", "rename: {k: kk}", "no argument 'k'"),
        ("g(k=1, kk=2)", "rename: {k: kk}", "has an argument 'kk' already"),
    ],
)
def test_renamed_arguments(call: str, change: str, message: str) -> None:
    found = refused(f"def f(x):\n    {call}\n", f"- name: d\n  call: {{match: 'g(...)', {change}}}\n")
    assert found.code == "PK219"
    assert message in found.message


@pytest.mark.parametrize(
    ("operation", "code", "message"),
    [
        ("parameter: {add: 'y'}\n  within: 'def g(...): ...'", "PK201", "matches nothing"),
        ("parameter: {add: 'y'}\n  within: 'if x: ...'", "PK215", "what `within` matches is not a function"),
        ("parameter: {add: 'a'}\n  within: 'def h(...): ...'", "PK221", "the nested function of acme.m:f has a parameter 'a'"),
        ("returns: 'int'\n  within: {of: 'if x: ...', clause: else}", "PK215", "a clause has no header"),
        ("decorator: {add: 'g'}\n  within: 'if x: ...'", "PK215", "takes no decorators"),
    ],
)  # fmt: skip
def test_headers_within(operation: str, code: str, message: str) -> None:
    text = (
        "def f(x):\n    def h(a):\n        return a\n    if x:\n        pass\n    else:\n        x = 1\n    return h\n"
    )
    found = refused(text, f"- name: d\n  {operation}\n".replace("clause: else", "clause: 'else'"))
    assert found.code == code
    assert message in found.message
