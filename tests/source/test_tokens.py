"""Tokens: the same on every Python, tolerant of fragments, with spans that are true."""

from __future__ import annotations

import io
import sysconfig
import token as standard
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afd_patchkit.source.text import Span, Text
from afd_patchkit.source.tokens import (
    fields,
    multiline_string_lines,
    significant,
    token_digest,
    tokens,
    tokens_in,
    unsafe_boundaries,
)


def text(source: str) -> Text:
    return Text(source.encode("utf-8", "surrogatepass"))


def kinds(source: str) -> list[tuple[str, str]]:
    t = text(source)
    return [(token.kind, token.text) for token in tokens(t, 1, t.line_count)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\n", [("name", "x"), ("op", "="), ("number", "1"), ("newline", "\n")]),
        ("f(  # a\n  b)\n", [
            ("name", "f"), ("op", "("), ("comment", "# a"), ("nl", "\n"), ("name", "b"), ("op", ")"), ("newline", "\n"),
        ]),
        ("\n# c\n\f\nx", [("nl", "\n"), ("comment", "# c"), ("nl", "\n"), ("nl", "\n"), ("name", "x")]),
        ("a \\\n  b", [("name", "a"), ("continuation", "\\\n"), ("name", "b")]),
        ("if a:\n  b\nc", [
            ("name", "if"), ("name", "a"), ("op", ":"), ("newline", "\n"), ("indent", ""), ("name", "b"), ("newline", "\n"),
            ("dedent", ""), ("name", "c"),
        ]),
        ("    a\n  b\n", [("name", "a"), ("newline", "\n"), ("name", "b"), ("newline", "\n")]),
        ("...a.b", [("op", "..."), ("name", "a"), ("op", "."), ("name", "b")]),
        ("1.e5j+.5_0-0xF_f", [("number", "1.e5j"), ("op", "+"), ("number", ".5_0"), ("op", "-"), ("number", "0xF_f")]),
        ("a:=b->c!=d@=e**=f//g", [
            ("name", "a"), ("op", ":="), ("name", "b"), ("op", "->"), ("name", "c"), ("op", "!="), ("name", "d"), ("op", "@="),
            ("name", "e"), ("op", "**="), ("name", "f"), ("op", "//"), ("name", "g"),
        ]),
        ("rb'\\'' u\"é\" ''", [("string", "rb'\\''"), ("string", 'u"é"'), ("string", "''")]),
        ("f'{a[\"b\"]!r:>{w}}' x", [("string", "f'{a[\"b\"]!r:>{w}}'"), ("name", "x")]),
        ("f'{{}}' rF\"\\{x}\"", [("string", "f'{{}}'"), ("string", 'rF"\\{x}"')]),
        ("f'\\N{DIGIT ONE}{x}'", [("string", "f'\\N{DIGIT ONE}{x}'")]),
        ("f'''{\nx  # y\n}'''", [("string", "f'''{\nx  # y\n}'''")]),
        ("f'{x!r}' f'{x=}' f'{x:=5}' f'{x!=y}'", [
            ("string", "f'{x!r}'"), ("string", "f'{x=}'"), ("string", "f'{x:=5}'"), ("string", "f'{x!=y}'"),
        ]),
        ("f'{'nested'}'", [("string", "f'{'nested'}'")]),
        ("match = case", [("name", "match"), ("op", "="), ("name", "case")]),
        ("naïve = 'é'", [("name", "naïve"), ("op", "="), ("string", "'é'")]),
        ("a $ b", [("name", "a"), ("error", "$"), ("name", "b")]),
        ("'open\nb", [("error", "'open"), ("newline", "\n"), ("name", "b")]),
        ("f'{open\nb", [("error", "f'{open"), ("newline", "\n"), ("name", "b")]),
        ("", []),
    ],
)  # fmt: skip
def test_tokens(source, expected):
    assert kinds(source) == expected


def test_spans_are_bytes_of_the_whole_text():
    t = text("é = 1\n    naïve = 'ü'\n")
    found = tokens(t, 2, 2)
    assert [t.slice(token.span) for token in found] == ["naïve", "=", "'ü'", "\n"]
    assert found[0].span == Span(11, 17)


def test_a_piece_of_a_line():
    t = text("x = f(a, b)  # c\n")
    assert [token.text for token in tokens_in(t, Span(4, 11))] == ["f", "(", "a", ",", "b", ")"]


STANDARD = {
    standard.NAME: "name", standard.NUMBER: "number", standard.STRING: "string", standard.OP: "op",
    standard.NEWLINE: "newline", standard.INDENT: "indent", standard.DEDENT: "dedent",
}  # fmt: skip


def by_tokenize(source: str) -> list[tuple[str, str]]:
    """What the standard library says, f-strings joined."""
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    opening, closing = getattr(standard, "FSTRING_START", -1), getattr(standard, "FSTRING_END", -1)
    found: list[tuple[str, str]] = []
    depth, begin = 0, 0
    for item in tokenize.generate_tokens(io.StringIO(source).readline):
        at = starts[item.start[0] - 1] + item.start[1]
        if item.type == opening:
            begin = begin if depth else at
            depth += 1
        elif item.type == closing:
            depth -= 1
            if not depth:
                found.append(("string", source[begin : starts[item.end[0] - 1] + item.end[1]]))
        elif not depth and item.type in STANDARD:
            kind = STANDARD[item.type]
            found.append((kind, "" if kind in ("newline", "indent", "dedent") else item.string))
    return _without_end(found)


def _without_end(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    while found and found[-1][0] in ("newline", "dedent"):
        found.pop()
    return found


LIBRARY = Path(sysconfig.get_paths()["stdlib"])


@pytest.mark.parametrize(
    "name", ["ast", "argparse", "typing", "tokenize", "dataclasses", "inspect", "decimal", "_pydecimal", "enum"]
)
def test_agrees_with_the_standard_tokenizer(name):
    source = (LIBRARY / f"{name}.py").read_text("utf-8")
    ours = [(k, "" if k in ("newline", "indent", "dedent") else s) for k, s in kinds(source) if k in STANDARD.values()]
    assert _without_end(ours) == by_tokenize(source)


@given(st.text(alphabet="ab1 .:=\n\t\f\\\"'{}()[]#fr!é$", max_size=40))
def test_never_raises_and_covers_everything_but_white_space(source):
    t = text(source)
    found = tokens(t, 1, max(t.line_count, 1))
    at = 0
    for token in found:
        assert not t.data[at : token.span.start].strip(b" \t\f")
        assert t.data[token.span.start : token.span.end].decode("utf-8", "replace") == token.text
        at = max(at, token.span.end)
    assert not t.data[at:].strip(b" \t\f")


# ---- digests --------------------------------------------------------------------------------------------------


def digest(source: str) -> str:
    t = text(source)
    return token_digest(tokens(t, 1, max(t.line_count, 1)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x=f(a)", "x = f( a )  # why\n"),
        ("x = f(a, b)\n", "x = f(\n    a,  # first\n    b)\n"),
        ("if a:\n  b\n", "    if a:\n            b\n\n\n# end\n"),
        ("if a:\n    b\nc\n", "if a:\n\n  # why\n  b\n\nc"),
        ("a + b", "a \\\n + b"),
        ("a\nb", "\f\na\n\n\nb\n"),
    ],
)
def test_layout_leaves_the_digest(one, other):
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("if a:\n  b\n  c\n", "if a:\n  b\nc\n"),
        ("a; b", "a\nb"),
        ("'a'", '"a"'),
        ("a b", "ab"),
        ("'a' 'b'", "'ab'"),
        ("1", "'1'"),
        ("if a:\n  if b:\n    c\n  d", "if a:\n  if b:\n    c\nd"),
    ],
)
def test_meaning_changes_the_digest(one, other):
    assert digest(one) != digest(other)


def test_the_digest_is_the_same_everywhere():
    # Locks hold such digests: a change here invalidates them.
    assert digest('def f(a, *, b=1):\n    """Doc."""\n    return f"{a!r:>{b}}"  # x\n') == "d261713bbbc91f01"


def test_a_method_has_the_digest_of_the_function_it_would_be():
    inner = "def f(self):\n    if self:\n        return 1\n    return 2\n"
    t = text("class A:\n" + "".join(f"    {line}\n" for line in inner.splitlines()))
    assert token_digest(tokens(t, 2, 5)) == digest(inner)


# ---- lines ----------------------------------------------------------------------------------------------------

LINES = '''\
def f():
    a = """one
  two
    three"""
    b = f"""{
        a
    }""" + \\
        c + '\\
  d'
    g(
        # fine
        1)
'''


def test_lines_inside_strings():
    assert multiline_string_lines(text(LINES), 1, 12) == {3, 4, 6, 7, 9}


def test_lines_that_no_comment_may_stand_before():
    assert unsafe_boundaries(text(LINES), 1, 12) == {3, 4, 6, 7, 8, 9}


def test_lines_of_a_range_keep_their_numbers():
    assert multiline_string_lines(text(LINES), 5, 9) == {6, 7, 9}


# ---- fields ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("f'{a}b{ c }'", ["a", " c "]),
        ("f'{a!r}{b:>3}{c=}{d != e}{f == g}'", ["a", "b", "c", "d != e", "f == g"]),
        ("f'{a:{b}.{c}}'", ["a", "b", "c"]),
        ("f'{x[1:2]}{ {1: 2}[1] }{(lambda: 1)()}'", ["x[1:2]", " {1: 2}[1] ", "(lambda: 1)()"]),
        ("f'{{a}}{b}'", ["b"]),
        ("'{a}'", []),
        ("rb'{a}'", []),
        ("F\"{'}'}\"", ["'}'"]),
        ("f'\\N{DIGIT ONE}{b}'", ["b"]),
        ("rf'\\N{b}'", ["b"]),
        ("f'{f(\"{x}\", y)}'", ['f("{x}", y)']),
    ],
)
def test_fields(source, expected):
    t = text(source)
    (token,) = significant(tokens(t, 1, 1))

    def walk(items):
        for item in items:
            assert t.slice(item.span)[0] + t.slice(item.span)[-1] == "{}"
            yield t.slice(item.expression)
            yield from walk(item.nested)

    assert list(walk(fields(t, token))) == expected
