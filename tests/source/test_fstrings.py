"""Positions inside f-strings are those of the file, on every Python."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afd_patchkit.source.fstrings import correct_positions
from afd_patchkit.source.text import Text, parse_quietly


def inner(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions inside f-strings, replacement fields included."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        if inside and isinstance(node, ast.expr):
            yield node
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant):
                continue
            if isinstance(node, ast.FormattedValue) and child is node.format_spec:
                stack += [(c, True) for c in ast.iter_child_nodes(child) if isinstance(c, ast.FormattedValue)]
            else:
                stack.append((child, inside or isinstance(node, ast.JoinedStr)))


def meaning(node: ast.AST) -> str:
    return ast.dump(node).replace("Store()", "Load()")


def check(text: Text) -> int:
    """Every expression inside an f-string parses to itself from the bytes it claims."""
    tree = parse_quietly(text.text)
    correct_positions(tree, text)
    count = 0
    for node in inner(tree):
        written = text.slice(text.node_span(node))
        if isinstance(node, ast.FormattedValue):
            assert written[0] + written[-1] == "{}"
        elif isinstance(node, ast.Slice) or (
            isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts)
        ):
            assert meaning(parse_quietly(f"_[{written}]").body[0].value.slice) == meaning(node)
        elif isinstance(node, ast.Starred):
            assert written.startswith("*")
        else:
            assert meaning(parse_quietly(f"({written}\n)").body[0].value) == meaning(node), written
        count += 1
    return count


SOURCES = [
    "x = f'{a}'",
    "x = f'é{a}{ b.c }' + f'{d}'",
    "x = 'p' f'{a}' \"q\" f\"{b}\"",
    "x = (f'{a}'  # f'{no}'\n     f'{b!r:>{c}}')",
    "if x:\n    y = f'''one {a\n  + b} {c:{d}.{e}}\n {f}'''",
    "x = f'{a,}'",
    "x = f'{(a, b)}{[c for c in d]}{lam(lambda q: q)}'",
    "x = f'{a[\"k\"]}{ {1: b}[1] }{a != b}{a=}{a:=5}{(n := 3)}'",
    "x = f'{f\"{a}{b:{c}}\"}'",
    "x = f'{{{a}}}' rf'\\{b}'",
    "x = f'\\N{DIGIT ONE}{a}'",
    "x = F'{a:{b}}'",
    "x = f'{a[1:2, ...]}{f(*b, **c)}'",
    "x = f'{a:%Y-{b}}' % c",
    'x = f"""{\na}""" f\'{b}\'',
    "def f(p=f'{q}') -> f'{r}': return f'{s}'",
]


@pytest.mark.parametrize("source", SOURCES)
def test_each_expression_is_where_it_says(source):
    assert check(Text(source.encode())) > 0


def test_a_node_of_a_tree_can_be_corrected_alone():
    text = Text(b"a = 1\nb = f'{a}'\n")
    statement = ast.parse(text.text).body[1]
    correct_positions(statement, text)
    assert text.slice(text.node_span(statement.value.values[0].value)) == "a"


def test_a_second_time_changes_nothing():
    text = Text(SOURCES[4].encode())
    tree = ast.parse(text.text)
    correct_positions(tree, text)
    once = ast.dump(tree, include_attributes=True)
    correct_positions(tree, text)
    assert ast.dump(tree, include_attributes=True) == once


@pytest.mark.parametrize("name", ["argparse", "dataclasses", "typing", "turtle", "pdb", "ast", "zipfile", "statistics"])
def test_the_standard_library(name):
    path = Path(sysconfig.get_paths()["stdlib"]) / f"{name}.py"
    if not path.is_file():
        path = path.with_suffix("") / "__init__.py"
    check(Text(path.read_bytes()))


NAMES = st.sampled_from(["a", "b.c", "f(x)", "é", "a[0]", "(a, b)", "a if b else c", "[a for a in b]", "-a", "a\n + b"])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "é", "{{", "}} ", "\n", "#", "%"]), NAMES, st.sampled_from(["", "!r", ":>3", ":{w}"])
        ),
        max_size=4,
    )
)
def test_generated(parts):
    body = "".join(f"{literal}{{{name}{suffix}}}" for literal, name, suffix in parts)
    check(Text(f"x = 'é' f'''{body}'''\n".encode()))
