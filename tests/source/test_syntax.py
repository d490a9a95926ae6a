"""Blocks of statements, names that they bind, equality of trees: one answer for the whole engine."""

from __future__ import annotations

import ast
import sys

import pytest

from afd_patchkit.source.syntax import binding, blocks, bound_names, same, same_code, typing_block

TRY = "try: a\nexcept A: b\nexcept B: c\nelse: d\nfinally: e\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\n", []),
        ("if a: b\n", ["body"]),
        ("if a: b\nelif c: d\n", ["body", "orelse"]),
        ("for a in b: c\nelse: d\n", ["body", "orelse"]),
        ("with a: b\n", ["body"]),
        (TRY, ["body", "handlers 0", "handlers 1", "orelse", "finalbody"]),
        ("match a:\n  case 1: b\n  case 2: c\n", ["cases 0", "cases 1"]),
        ("class A:\n  def f(self): ...\n", ["body"]),
        ("f(lambda: x if y else z)\n", []),
        pytest.param(
            TRY.replace("except", "except*"),
            ["body", "handlers 0", "handlers 1", "orelse", "finalbody"],
            marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="grammar of Python 3.11"),
        ),
    ],
)
def test_blocks_in_the_order_of_the_text(text: str, expected: list[str]) -> None:
    (node,) = ast.parse(text).body
    found = list(blocks(node))
    assert [block.name for block in found] == expected
    lines = [(block.body[0].lineno, block.body[0].col_offset) for block in found]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b, c as d", ["a", "d"]),
        ("from a import b, c as d", ["b", "d"]),
        ("from a import *", []),
        ("a, (b, *c) = d.e = f[0] = g", ["a", "b", "c"]),
        ("a: int", []),
        ("a: int = 1", ["a"]),
        ("a += 1", ["a"]),
        ("for a, b in c: d = 1", ["a", "b"]),
        ("with a as b, c as (d, e): f = 1", ["b", "d", "e"]),
        ("try: a = 1\nexcept B as c: d = 1", ["c"]),
        ("match a:\n  case {'b': c, **d}: e = 1\n  case [f, *g] as h: i = 1", ["d", "c", "h", "f", "g"]),
        ("def a(b): c = 1", ["a"]),
        ("class A(B): c = 1", ["A"]),
        ("print(a)", []),
    ],
)
def test_names_that_a_statement_binds(text: str, expected: list[str]) -> None:
    (node,) = ast.parse(text).body
    assert sorted(bound_names(node)) == sorted(expected)


def test_an_annotation_declares_a_name() -> None:
    (node,) = ast.parse("a: int").body
    assert list(bound_names(node, declared=True)) == ["a"]


def test_only_what_is_stored_is_bound() -> None:
    found = [binding(node) for node in ast.walk(ast.parse("a = b"))]
    assert [name for name in found if name] == [("a", "name")]


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (1, True), (1, 1.0), (0j, -0j), ("a", b"a"), ([], None)])
def test_constants_that_are_equal_in_python_and_not_the_same_code(one: object, other: object) -> None:
    assert not same(ast.Constant(one), ast.Constant(other))
    assert same(ast.Constant(one), ast.Constant(one))


def test_places_and_prefixes_do_not_count() -> None:
    assert same(ast.parse("f(u'a',\n  1)"), ast.parse("f('a', 1)"))
    assert not same(ast.parse("f('a')"), ast.parse("f('b')"))


@pytest.mark.parametrize(
    ("test", "hidden"),
    [
        ("TYPE_CHECKING", "body"),
        ("typing.TYPE_CHECKING", "body"),
        ("not t.TYPE_CHECKING", "orelse"),
        ("not not TYPE_CHECKING", "body"),
        ("TYPE_CHECKING or x", None),
    ],
)
def test_what_only_type_checkers_see(test: str, hidden: str | None) -> None:
    assert typing_block(ast.parse(test, mode="eval").body) == hidden


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (
            "if a:\n            f(1)\n        else:\n            g('x')",
            'if a:\n        f( 1 )\n    else:\n        g("x")',
            True,
        ),
        (
            "if a:\n            f(1)\n        else:\n            g()",
            "if a:\n        f(2)\n    else:\n        g()",
            False,
        ),
        ("raise E(\n            'a '\n            'b'\n        )", "raise E('a b')", True),
        ("try:\n            f()\n        finally:\n            g()", "try:\n    f()\nfinally:\n    g()", True),
    ],
)
def test_code_cut_out_where_it_stands_is_compared_without_its_layout(one: str, other: str, expected: bool) -> None:
    assert same_code(one, other) is expected
