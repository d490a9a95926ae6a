"""Invariants of patterns, on the standard library and on generated functions."""

from __future__ import annotations

import ast
import sysconfig
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afd_patchkit.findings.finding import Position
from afd_patchkit.model import Code
from afd_patchkit.patterns.search import expression_span, statement_span
from afd_patchkit.patterns.select import clauses, compile_pattern, equal, find_all, find_clause
from afd_patchkit.source.text import SourceFile, Text, load_source, parse_quietly
from afd_patchkit.source.tokens import multiline_string_lines, tokens

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
MODULES = (
    "argparse",
    "dataclasses",
    "shutil",
    "textwrap",
    "heapq",
    "contextlib",
    "string",
    "configparser",
    "asyncio/locks",
)


def code(text: str) -> Code:
    return Code(text, Position("m.yaml", 1, 1))


@cache
def module(name: str) -> SourceFile:
    return load_source((LIBRARY / f"{name}.py").read_bytes(), pin="library", path=f"library/{name}.py")


def functions(file: SourceFile) -> list[ast.AST]:
    return [n for n in ast.walk(file.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]


def statements_of(function: ast.AST, file: SourceFile) -> list[ast.stmt]:
    return [
        s for s in ast.walk(function)
        if isinstance(s, ast.stmt) and s is not function and not file.data.startswith(b"elif", file.node_span(s).start)
    ]  # fmt: skip


def literal(text: str) -> str:
    """Write the literal Ellipsis as patterns want it."""
    source = Text(text.encode())
    output, at = b"", 0
    for token in tokens(source, 1, source.line_count):
        if token.kind == "op" and token.text == "...":
            output += source.data[at : token.span.start] + b"Ellipsis"
            at = token.span.end
    return (output + source.data[at:]).decode()


def own_text(statement: ast.stmt, file: SourceFile) -> str:
    """A statement's text as it would stand in a manifest: its indentation taken from all lines but those in strings."""
    span = statement_span([statement], file)
    first, last = file.line_of(span.start), file.line_of(span.end)
    lead = file.data[file.starts[first - 1] : span.start].decode()
    frozen = multiline_string_lines(file, first, last)
    lines = file.slice(span).split("\n")
    rest = [x if n in frozen else x.removeprefix(lead) for n, x in enumerate(lines[1:], first + 1)]
    return "\n".join([lines[0], *rest])


@pytest.mark.parametrize("name", MODULES)
def test_every_statement_finds_itself(name):
    file = module(name)
    for function in functions(file):
        for statement in statements_of(function, file):
            text = own_text(statement, file)
            pattern = compile_pattern(code(literal(text)), "statements") if text != "..." else None
            if pattern is None:
                continue
            found = find_all(pattern, function, file)
            assert any(m.nodes == (statement,) for m in found), text
            for match in found:
                assert equal(pattern, list(match.nodes))
                assert match.body[match.index] is match.nodes[0]
                assert match.span.start == statement_span(match.nodes, file).start


@pytest.mark.parametrize("name", MODULES)
def test_every_statement_finds_itself_in_another_layout(name):
    """`ast.unparse` drops comments and parentheses and chooses its own quotes, line breaks and indentation."""
    file = module(name)
    for function in functions(file):
        for statement in statements_of(function, file):
            text = literal(ast.unparse(statement))
            if text == "Ellipsis":
                continue
            found = find_all(compile_pattern(code(text), "statements"), function, file)
            assert any(m.nodes == (statement,) for m in found), text


@pytest.mark.parametrize("name", MODULES)
def test_every_clause_is_found_by_its_head(name):
    file = module(name)
    count = 0
    for statement in ast.walk(file.tree):
        if not isinstance(statement, ast.stmt) or file.data.startswith(b"elif", file.node_span(statement).start):
            continue
        found = clauses(statement, file)
        for clause in found:
            head = file.slice(clause.head_span)
            assert head.endswith(":")
            twins = [c for c in found if c.kind == clause.kind and file.slice(c.head_span) == head]
            if len(twins) == 1:
                assert find_clause(statement, code(literal(head)), file).head_span == clause.head_span
                count += 1
        assert [c.head_span.start for c in found] == sorted(c.head_span.start for c in found)
    assert count > 0


def holes(statement: ast.stmt, file: SourceFile) -> list[tuple[int, int]]:
    """Spans, relative to the statement, of its expressions outside of f-strings and of `case` patterns."""
    start = statement_span([statement], file).start
    found: list[tuple[int, int]] = []
    stack: list[tuple[ast.AST, ast.AST]] = [(statement, statement)]
    while stack:
        node, parent = stack.pop()
        if (
            isinstance(node, ast.expr)
            and not isinstance(node, (ast.Starred, ast.Slice))
            and not isinstance(parent, ast.Expr)
        ):
            span = expression_span(node, parent, file)
            found.append((span.start - start, span.end - start))
        if not isinstance(node, (ast.JoinedStr, ast.match_case)):
            stack += [(child, node) for child in ast.iter_child_nodes(node)]
    return sorted(found)


@given(st.data())
def test_any_expression_may_be_a_hole(data):
    file = module(data.draw(st.sampled_from(MODULES), "module"))
    function = data.draw(st.sampled_from(functions(file)), "function")
    statement = data.draw(st.sampled_from(statements_of(function, file)), "statement")
    spans = holes(statement, file)
    # Indentation stays as it is: the statement is put below an `if` when it has any.
    span = statement_span([statement], file)
    text = file.slice(span)
    if "\n" in text:
        lead = file.data[file.starts[file.line_of(span.start) - 1] : span.start].decode()
        prefix = f"if 1:\n{lead}" if lead and not lead.strip() else ""
    else:
        prefix = ""
    if not spans or "..." in text or (prefix == "" and "\n" in text):
        return
    begin, end = data.draw(st.sampled_from(spans), "expression")
    raw = text.encode()
    pattern = compile_pattern(code(prefix + raw[:begin].decode() + "..." + raw[end:].decode()), "statements")
    wanted = ast.Module([statement], [])
    if prefix:
        inner = pattern.nodes[0].body
        pattern = type(pattern)(pattern.code, "statements", tuple(inner))
    assert equal(pattern, wanted.body)


# ---- generated: plain text and the same in another layout ------------------------------------------------------

Pair = tuple[str, str]
NAMES = st.sampled_from(["a", "b", "naïve", "self.x", "c[0]"]).map(lambda n: (n, n))
NUMBERS = st.sampled_from([("1000", "1_000"), ("255", "0xFF"), ("1.0", "1."), ("2j", "2J")])
STRINGS = st.sampled_from(
    [("'x'", '"x"'), ("'x y'", "\"x\" ' y'"), ("'é'", "u'\\u00e9'"), ("b'q'", 'B"q"'), ("f'{a}z'", 'f"{a}" "z"')]
)


def _parenthesised(pair: Pair) -> Pair:
    return pair[0], f"(  # why\n{pair[1]}\n)"


def _compound(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    two = st.tuples(inner, inner)
    return st.one_of(
        inner.map(_parenthesised),
        two.map(lambda p: (f"({p[0][0]} + {p[1][0]})", f"(({p[0][1]})  +\t({p[1][1]}))")),
        two.map(lambda p: (f"f({p[0][0]}, k={p[1][0]})", f"f( # a\n {p[0][1]} ,\n  k = {p[1][1]},\n)")),
        two.map(lambda p: (f"[{p[0][0]}, {p[1][0]}]", f"[{p[0][1]},\n\n{p[1][1]},]")),
        two.map(lambda p: (f"({p[0][0]} if {p[1][0]} else None)", f"(({p[0][1]}) if({p[1][1]}) else None)")),
        two.map(lambda p: (f"{{{p[0][0]}: {p[1][0]}}}", f"{{{p[0][1]}:{p[1][1]},}}")),
    )


EXPRESSIONS = st.recursive(st.one_of(NAMES, NUMBERS, STRINGS), _compound, max_leaves=5)
SIMPLE = st.one_of(
    EXPRESSIONS.map(lambda e: (f"x = {e[0]}", f"x  =  {e[1]}  # c")),
    EXPRESSIONS.map(lambda e: (f"g({e[0]})", f"g({e[1]});")),
    EXPRESSIONS.map(lambda e: (f"return {e[0]}", f"return ({e[1]})")),
)


def _block(head: Pair, body: list[Pair]) -> Pair:
    plain = "\n".join("    " + line for text, _ in body for line in text.split("\n"))
    # Inside brackets lines may start anywhere, so the noisy text can be indented line by line as well.
    noisy = "\n\n  # comment\n".join("\n".join("  " + line for line in text.split("\n")) for _, text in body)
    return f"{head[0]}\n{plain}", f"{head[1]}  # head\n{noisy}"


STATEMENTS = st.recursive(
    SIMPLE,
    lambda inner: st.builds(
        lambda e, body: _block((f"if {e[0]}:", f"if ({e[1]}) :"), body),
        EXPRESSIONS,
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=4,
)


@given(st.lists(STATEMENTS, min_size=1, max_size=4), st.data())
def test_layout_changes_no_match(body, data):
    plain, noisy = _block(("def f():", "def f( ) :"), body)
    there = [load_source((text + "\n").encode(), pin="acme", path="acme/f.py") for text in (plain, noisy)]
    pattern_text = data.draw(st.sampled_from(body))
    results = [
        [
            [m.index for m in find_all(compile_pattern(code(text), "statements"), file.tree, file)]
            for text in pattern_text
        ]
        for file in there
    ]
    assert results[0] == results[1]
    assert results[0][0] == results[0][1]
    assert results[0][0]
    for file in there:
        for match in find_all(compile_pattern(code(pattern_text[0]), "statements"), file.tree, file):
            again = parse_quietly("if 1:\n" + " " * match.nodes[0].col_offset + file.slice(match.span)).body[0].body
            assert [ast.dump(n) for n in again] == [ast.dump(n) for n in match.nodes]


@given(EXPRESSIONS, EXPRESSIONS)
def test_expressions_are_equal_just_when_their_trees_are(one, other):
    trees = [
        ast.dump(parse_quietly(f"({text})").body[0].value).replace(", kind='u'", "") for text in (one[0], other[1])
    ]
    node = parse_quietly(f"({other[1]})").body[0].value
    assert equal(compile_pattern(code(one[1]), "expression"), node) is (trees[0] == trees[1])
