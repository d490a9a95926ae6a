"""What equals what: patterns against single statements and expressions."""

from __future__ import annotations

import ast
import sys

import pytest

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Position
from afd_patchkit.model import Code
from afd_patchkit.patterns.select import compile_pattern, equal, find_all
from afd_patchkit.source.text import load_source


def code(text: str) -> Code:
    return Code(text, Position("m.yaml", 10, 7), 6)


def expression_matches(pattern: str, text: str) -> bool:
    node = ast.parse(f"({text}\n)").body[0].value
    return equal(compile_pattern(code(pattern), "expression"), node)


def statement_matches(pattern: str, text: str) -> bool:
    return equal(compile_pattern(code(pattern), "statements"), ast.parse(text).body)


EQUAL = [
    ("a+b", "a  +  b"),
    ("a + b", "(a) + (b)"),
    ("f(a, b)", "f(\n  a,  # first\n  b,\n)"),
    ("'x'", '"x"'),
    ("'x'", "u'x'"),
    ("'xy'", '"x" "y"'),
    (r"'\n'", '"""\n"""'),
    (r"r'\d'", r"'\\d'"),
    ("1000", "1_000"),
    ("255", "0xFF"),
    ("f'a{x}b'", '"a" f"{x}" "b"'),
    ("f'{x!r:>{w}}'", 'f"{ x !r:>{ w }}"'),
    ("x[a, b]", "x[(a, b)]"),
    ("(a, b)", "a, b"),
    ("{**a, 'b': 1}", '{**a, "b": 1,}'),
    ("lambda x: x", "lambda x: (x)"),
    ("a if b else c", "(a) if (b) else (c)"),
    ("Ellipsis", "..."),
    ("x[Ellipsis, 0]", "x[..., 0]"),
]
DIFFERENT = [
    ("1", "True"),
    ("1", "1.0"),
    ("0", "False"),
    ("1", "1j"),
    ("0.0", "-0.0"),
    ("'x'", "b'x'"),
    ("'x'", "f'x'"),
    ("'a b'", "'a  b'"),
    ("a + b", "b + a"),
    ("a and b", "a and b and c"),
    ("a and b", "a or b"),
    ("a < b", "a <= b"),
    ("a is b", "a is not b"),
    ("f(a)", "f(*a)"),
    ("f(a=1)", "f(**a)"),
    ("f(a=1, b=2)", "f(b=2, a=1)"),
    ("f(a, b)", "f(a)"),
    ("f()", "f(a)"),
    ("[a]", "(a,)"),
    ("{a}", "{a: a}"),
    ("x.y", "x.z"),
    ("await x", "x"),
    ("f'{x}'", "f'{x!r}'"),
    ("f'{x}'", "f'{x:>3}'"),
    ("None", "False"),
]


@pytest.mark.parametrize(("pattern", "text"), EQUAL)
def test_layout_does_not_matter(pattern, text):
    assert expression_matches(pattern, text)


@pytest.mark.parametrize(("pattern", "text"), DIFFERENT)
def test_meaning_does(pattern, text):
    assert not expression_matches(pattern, text)
    assert not expression_matches(text, pattern)


HOLES = [
    # arguments
    ("f(...)", "f()", True),
    ("f(...)", "f(a, *b, c=1, **d)", True),
    ("f(...)", "g(a)", False),
    ("f(a, ...)", "f(a)", True),
    ("f(a, ...)", "f(a, b, c=1)", True),
    ("f(a, ...)", "f(b, a)", False),
    ("f(a, ...)", "f()", False),
    ("f(..., z)", "f(a, b, z)", True),
    ("f(..., z)", "f(a, z, b)", False),
    ("f(a, ..., z)", "f(a, z, k=1)", True),
    ("f(a, ..., m, ..., z)", "f(a, 1, m, 2, m, z)", True),
    ("f(a, ..., m, ..., z)", "f(a, m)", False),
    ("f(..., x=1)", "f(a, y=2, x=1, z=3)", True),
    ("f(..., x=1)", "f(x=1)", True),
    ("f(..., x=1)", "f(x=2)", False),
    ("f(..., x=1)", "f(a)", False),
    ("f(..., x=...)", "f(a, x=b + c)", True),
    ("f(..., x=...)", "f(a, y=b)", False),
    ("f(..., y=2, x=1)", "f(x=1, y=2)", True),
    ("f(x=1, ...)", "f(x=1, y=2, **k)", True),
    ("f(x=1, ...)", "f(a, x=1)", False),
    ("f(a, x=1, ...)", "f(a, y=2, x=1)", True),
    ("f(x=..., y=2)", "f(x=1, y=2)", True),
    ("f(x=..., y=2)", "f(y=2, x=1)", False),
    ("f(**...)", "f(**k)", True),
    ("f(**...)", "f(k=1)", False),
    ("f(*..., x)", "f(*a, x)", True),
    ("f(*...)", "f(a)", False),
    ("f(..., **k)", "f(a, b=1, **k)", True),
    ("f(..., **k)", "f(a, b=1, **q)", False),
    ("f(g(...), ...)", "f(g(1), 2)", True),
    ("(...)(x)", "a.b[c](x)", True),
    # receivers, attributes, subscripts
    ("....dispatch(x)", "self.a[0].dispatch(x)", True),
    ("....dispatch(x)", "dispatch(x)", False),
    ("self. ... (x)", "self.anything(x)", True),
    ("x[...]", "x[1:2, ..., a]", True),
    ("x[..., 0]", "x[1, 2, 0]", True),
    ("x[..., 0]", "x[0]", False),
    ("x[...:]", "x[1:]", True),
    ("x[...:]", "x[:1]", False),
    # displays
    ("[...]", "[]", True),
    ("[a, ...]", "[a, *b, c]", True),
    ("[..., a]", "[a, b]", False),
    ("(a, ...)", "(a,)", True),
    ("a, ...", "a, b, c", True),
    ("{...}", "{}", True),
    ("{...}", "{a, b}", True),
    ("{...}", "{a: b}", True),
    ("{a, ...}", "{a, b}", True),
    ("{a, ...}", "{a: b}", False),
    ("{'k': 1, ...}", "{'k': 1, 'l': 2, **m}", True),
    ("{..., 'k': 1, ...}", "{'j': 0, 'k': 1}", True),
    ("{..., 'k': 1, ...}", "{'j': 0}", False),
    ("{'k': ...}", "{'k': f(x)}", True),
    ("{...: 1}", "{a: 1}", True),
    ("{**..., 'k': 1}", "{**a, 'k': 1}", True),
    ("{**..., 'k': 1}", "{'a': 0, 'k': 1}", False),
    # operators
    ("... == x", "f(a) == x", True),
    ("a < ...", "a < b", True),
    ("a < ...", "a < b < c", False),
    ("... and x", "a and x", True),
    ("... and x", "a and b and x", True),
    ("... and x", "x and a", False),
    ("x and ...", "x and y or z", False),
    ("not ...", "not x", True),
    ("... + 1", "a * b + 1", True),
    ("a if ... else b", "a if c(d) else b", True),
    ("lambda ...: x", "lambda a, *b, c=1: x", True),
    ("lambda: ...", "lambda: f(x)", True),
    ("[... for x in y if ...]", "[f(x) for x in y if x > 1]", True),
    ("[... for x in y if ...]", "[f(x) for x in y]", False),
    ("await ...", "await f()", True),
    ("(... := f(x))", "(n := f(x))", True),
    ("f'{...}b'", "f'{x + 1}b'", True),
    ("f'{g(...)}'", "f'{g(1, 2)}'", True),
    ("f'{...}b'", "f'{x}c'", False),
    ("f'{Ellipsis}'", "f'{...}'", True),
    ("f'{Ellipsis}'", "f'{x}'", False),
    ("'...'", "'...'", True),
    ("'...'", "'abc'", False),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), HOLES)
def test_holes_in_expressions(pattern, text, expected):
    assert expression_matches(pattern, text) is expected


def suite(*lines: str) -> str:
    return "\n".join(lines)


STATEMENTS = [
    ("x = ...", "x = f(a)", True),
    ("x = ...", "x = y = f(a)", False),
    ("x = ...", "x += 1", False),
    ("... = f(x)", "a.b[c] = f(x)", True),
    ("a, ... = f()", "a, b, *c = f()", True),
    ("... += 1", "n += 1", True),
    ("x: ... = ...", "x: int = 1", True),
    ("x: ...", "x: int = 1", False),
    ("...: int = 1", "self.x: int = 1", True),
    ("return ...", "return a, b", True),
    ("return ...", "return", False),
    ("return", "return None", False),
    ("raise ...", "raise E(x)", True),
    ("raise ...", "raise E(x) from e", False),
    ("raise ... from ...", "raise E(x) from e", True),
    ("del ...", "del a, b", True),
    ("del a, ...", "del b, a", False),
    ("assert ..., 'm'", "assert x, 'm'", True),
    ("f(x)", "f(x)", True),
    ("f(x)", "y = f(x)", False),
    ("from ... import x", "from ... import x", True),
    ("from ... import x", "from .. import x", False),
    ("from ...a import x", "from ...a import x", True),
    ("yield ...", "yield x", True),
    # suites
    ("if c: ...", "if c:\n  a\n  b", True),
    ("if c: ...", "if c: a\nelse: b", True),
    ("if c: ...", "if c: a\nelif d: b\nelse: e", True),
    ("if c: ...", "if d: a", False),
    ("if ...: ...", "if c: a", True),
    ("if c: a", "if c: a\nelse: b", False),
    ("if c: a\nelse: ...", "if c: a\nelse: b", True),
    ("if c: ...\nelse: ...", "if c: a", False),
    ("if c: ...\nelse: b", "if c: a\nelse: b", True),
    ("if c: ...\nelse: b", "if c: a\nelse: d", False),
    ("if c: ...\nelif d: ...", "if c: a\nelif d: b\nelse: e", True),
    ("if c: ...\nelif d: ...", "if c: a\nelif e: b", False),
    ("if c:\n  ...\n  z", "if c:\n  a\n  b\n  z", True),
    ("if c:\n  ...\n  z", "if c:\n  z\n  a", False),
    ("if c:\n  a\n  ...", "if c:\n  a", True),
    ("if c:\n  a\n  ...", "if c:\n  a\nelse:\n  b", False),
    ("for ... in x: ...", "for a, b in x:\n  c\nelse:\n  d", True),
    ("for a in ...: ...", "for a in f(x): b", True),
    ("for a in x: ...", "async def f():\n  async for a in x: b", False),
    ("while ...: ...", "while True: a", True),
    ("with ...: ...", "with a as b, c: d", True),
    ("with ..., c: ...", "with a as b, c: d", True),
    ("with ... as b: ...", "with a as b: d", True),
    ("with ... as b: ...", "with a: d", False),
    ("with (a as b, c): ...", "with a as b, c: d", True),
    # try
    ("try: ...", "try: a\nexcept E: b", True),
    ("try: ...", "try: a\nfinally: b", True),
    ("try: ...\nexcept E: ...", "try: a\nexcept E: b\nexcept F: c\nelse: d\nfinally: e", True),
    ("try: ...\nexcept F: ...", "try: a\nexcept E: b\nexcept F: c", False),
    ("try: a\nexcept E: ...", "try: a\nexcept E: b\nfinally: c", False),
    ("try: a\nexcept E: ...", "try: a\nexcept E: b", True),
    ("try: ...\nexcept ...: ...", "try: a\nexcept E as e: b", True),
    ("try: ...\nexcept ...: ...", "try: a\nexcept: b", False),
    ("try: ...\nexcept: ...", "try: a\nexcept: b", True),
    ("try: ...\nexcept: ...", "try: a\nexcept E: b", False),
    ("try: ...\nexcept E as ...: ...", "try: a\nexcept E as e: b", True),
    ("try: ...\nexcept E: ...", "try: a\nexcept E as e: b", False),
    ("try: ...\nfinally: ...", "try: a\nexcept E: b\nfinally: c", True),
    ("try: ...\nfinally: ...", "try: a\nexcept E: b", False),
    # definitions
    ("def f(...): ...", "def f(a, /, b=1, *c, d, **e): pass", True),
    ("def f(...): ...", "@deco\ndef f(a) -> int: pass", True),
    ("def f(...): ...", "async def f(a): pass", False),
    ("def f(): ...", "def f(a): pass", False),
    ("def ...(a): ...", "def g(a): pass", True),
    ("def f(a, ...): ...", "def f(a: int, b): pass", False),
    ("def f(a: ..., ...): ...", "def f(a: int, b): pass", True),
    ("def f(a, ...): ...", "def f(a, b, *, c=1): pass", True),
    ("def f(..., c=1): ...", "def f(a, *, b, c=1): pass", True),
    ("def f(..., c=1): ...", "def f(a, *, b, c=2): pass", False),
    ("def f(a=1, ...): ...", "def f(a=1, b=2, **k): pass", True),
    ("def f(a=..., ...): ...", "def f(a=1): pass", True),
    ("def f(a, *, ...): ...", "def f(a, *, b, c): pass", True),
    ("def f(*, a=1, ...): ...", "def f(*, a=1, b): pass", True),
    ("def f(a, ...): ...", "def f(a, /, b): pass", True),
    ("def f(a): ...", "def f(a, /): pass", False),
    ("def f(...) -> int: ...", "def f(a) -> int: pass", True),
    ("def f(...) -> int: ...", "def f(a): pass", False),
    ("@deco\ndef f(...): ...", "def f(a): pass", False),
    ("@...\n@last\ndef f(...): ...", "@a\n@b\n@last\ndef f(a): pass", True),
    ("def f(...): return 1", "@deco\ndef f(a): return 1", False),
    ("def f(...):\n  'doc'\n  ...", "def f(a):\n  'doc'\n  return 1", True),
    ("class C: ...", "@deco\nclass C:\n  x = 1", True),
    ("class C: ...", "class C(B): pass", False),
    ("class C(...): ...", "class C(A, B, metaclass=M): pass", True),
    ("class C(..., metaclass=M): ...", "class C(A, metaclass=M): pass", True),
    ("class C(metaclass=M, ...): ...", "class C(metaclass=M, x=1): pass", True),
    ("class C(A, ...): ...", "class C(B, A): pass", False),
    # match
    ("match x: ...", "match x:\n  case 1: a\n  case _: b", True),
    ("match ...: ...", "match x, y:\n  case 1: a", True),
    ("match y: ...", "match x:\n  case 1: a", False),
    ("match x:\n  case 1: ...\n  case ...: ...", "match x:\n  case 1: a\n  case 2 if g: b\n  case _: c", True),
    ("match x:\n  case 2: ...\n  case ...: ...", "match x:\n  case 1: a\n  case 2: b", False),
    ("match x:\n  case ...: a", "match x:\n  case [p, *q] if g: a", True),
    ("match x:\n  case [a, ...]: ...", "match x:\n  case [a, 2, *_]: b", True),
    ("match x:\n  case C(...): ...", "match x:\n  case C(1, y=2): b", True),
    ("match x:\n  case C(y=2, ...): ...", "match x:\n  case C(y=2, z=3): b", True),
    ("match x:\n  case C(y=2, ...): ...", "match x:\n  case C(1, y=2): b", False),
    ("match x:\n  case C(y=...): ...", "match x:\n  case C(y=[1, 2]): b", True),
    ("match x:\n  case 1 if ...: ...", "match x:\n  case 1: b", False),
    ("match x:\n  case ... | 2: ...", "match x:\n  case 1 | 2: b", True),
    # runs
    ("a = 1\n...\nb = 2", "a = 1\nb = 2", True),
    ("a = 1\n...\nb = 2", "a = 1\nx\ny\nb = 2", True),
    ("a = 1\n...\nb = 2", "b = 2\na = 1", False),
    ("a\n...\nb\n...\nc", "a\n1\nb\n2\n3\nc", True),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text", "expected"), STATEMENTS)
def test_holes_in_statements(pattern, text, expected):
    body = ast.parse(text).body
    if isinstance(body[0], ast.AsyncFunctionDef) and not pattern.startswith("def"):
        body = body[0].body
    assert equal(compile_pattern(code(pattern), "statements"), body) is expected


@pytest.mark.skipif(sys.version_info < (3, 11), reason="grammar of Python 3.11")
def test_exception_groups_are_another_statement():
    assert statement_matches("try: ...\nexcept* E: ...", "try: a\nexcept* E: b")
    assert not statement_matches("try: ...\nexcept E: ...", "try: a\nexcept* E: b")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="grammar of Python 3.12")
def test_type_parameters_are_open_with_an_open_suite_only():
    assert statement_matches("def f(...): ...", "def f[T](a: T): pass")
    assert not statement_matches("def f(...): pass", "def f[T](a: T): pass")
    assert statement_matches("def f[T](a=1, ...): ...", "def f[T](a=1, b=2): pass")


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("f(x)", "auto", "expression"),
        ("x", "auto", "expression"),
        ("x = 1", "auto", "statements"),
        ("f(x)\ng(y)", "auto", "statements"),
        ("f(x)", "statements", "statements"),
        ("a\n  and b", "auto", "expression"),
        ("(n := 1)", "expression", "expression"),
        ("n := 1", "auto", "expression"),
        ("  f(x)  # why\n", "expression", "expression"),
        ("# why\nf(x)", "auto", "expression"),
    ],
)
def test_kind(text, kind, found):
    assert compile_pattern(code(text), kind).kind == found


ERRORS = [
    # text, kind, code, line and column in the manifest, part of the message
    ("f(x", "auto", "PK030", (10, 8), "never closed"),
    ("a = 1\nb = = 2", "statements", "PK030", (11, 11), "invalid syntax"),
    ("f(..., x y)", "auto", "PK030", (10, 14), "Perhaps you forgot a comma"),
    ("f(x=1, ..., y)", "auto", "PK030", (10, 20), "positional argument follows keyword"),
    ("x =", "statements", "PK030", (10, 10), "invalid syntax"),
    ("x = 1", "expression", "PK030", (10, 7), "invalid syntax"),
    ("a) + (b", "expression", "PK030", (10, 7), "unmatched"),
    ("elif c: ...", "statements", "PK030", (10, 7), "invalid syntax"),
    ("", "statements", "PK030", (10, 7), "no code"),
    ("# only a comment", "auto", "PK030", (10, 7), "no code"),
    ("", "expression", "PK030", (10, 7), "not an expression"),
    ("from x import ...", "statements", "PK030", None, "invalid syntax"),
    ("\0", "statements", "PK030", None, "null"),
    ("f(\ua66e)", "auto", "PK030", (10, 7), "unexpected character"),
    ("...", "expression", "PK031", (10, 7), "anything"),
    ("...", "auto", "PK031", (10, 7), "anything"),
    ("...\n...", "statements", "PK031", (10, 7), "anything"),
    ("...\nx = 1", "statements", "PK031", (10, 7), "begin or end"),
    ("x = 1\n...", "statements", "PK031", (10, 7), "begin or end"),
]


@pytest.mark.parametrize(("text", "kind", "number", "place", "message"), ERRORS)
def test_errors_point_into_the_manifest(text, kind, number, place, message):
    with pytest.raises(ManifestError) as caught:
        compile_pattern(code(text), kind)
    (finding,) = caught.value.findings
    assert finding.code == number
    assert message.lower() in finding.message.lower()
    assert "\ua66e" not in finding.message + "".join(finding.details) or "\ua66e" in text
    if place:
        assert (finding.manifest.line, finding.manifest.column) == place
    assert finding.help


def test_help_names_clauses():
    with pytest.raises(ManifestError) as caught:
        compile_pattern(code("except E: ..."))
    assert "clause" in caught.value.findings[0].help


def test_invalid_escapes_do_not_warn():
    assert expression_matches(r"'\d'", r"r'\d'")


def test_a_pattern_nested_too_deeply_is_a_finding():
    depth = 400
    text = "x = " + "f(" * 80 + "1" + ")" * 80
    chain = "if a0: pass\n" + "".join(f"elif a{n}: pass\n" for n in range(1, depth))
    file = load_source((text + "\n" + chain).encode(), pin="acme", path="acme/deep.py")
    assert len(find_all(compile_pattern(code(text)), file.tree, file)) == 1
    with pytest.raises(ManifestError) as caught:
        find_all(compile_pattern(code(chain)), file.tree, file)
    assert caught.value.findings[0].code == "PK030"
    assert "deep" in caught.value.findings[0].message
