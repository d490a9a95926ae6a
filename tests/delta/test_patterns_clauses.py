"""Clauses of compound statements: where each one is, and finding one by its head."""

from __future__ import annotations

import ast
import sys

import pytest

from afd_patchkit.findings.errors import DeltaError, ManifestError
from afd_patchkit.findings.finding import Position
from afd_patchkit.model import Code
from afd_patchkit.patterns.select import clauses, find_clause
from afd_patchkit.source.text import SourceFile, load_source


def code(text: str) -> Code:
    return Code(text, Position("m.yaml", 10, 7), 6)


def load(text: str) -> tuple[ast.stmt, SourceFile]:
    file = load_source(text.encode(), pin="acme", path="acme/c.py")
    return file.tree.body[-1], file


CHAIN = """\
if (  # if it: is
    é  # so:
):
    a  # else: comment
elif b: c;  # ;
elif x[1:2]:
    d
# elif in a comment: no
else :  # last
    if e:
        f
    else:
        g
"""
TRY = """\
try :
    a = "else:"
except (A, B) as e:
    b
except C : c
except:
    d
else:
    e
finally:
    f
"""
MATCH = """\
match (x) , y:
    # case 0: no
    case (1):
        a
    case [p, *q] if (g): b
    case {"k": v}:
        c
    case _ :
        d
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CHAIN, [
            ("if", "if (  # if it: is\n    é  # so:\n):", 1), ("elif", "elif b:", 1), ("elif", "elif x[1:2]:", 1), ("else", "else :", 1),
        ]),
        ("if a: b", [("if", "if a:", 1)]),
        ("if a:\n  b\nelse:\n  if c: d", [("if", "if a:", 1), ("else", "else:", 1)]),
        (TRY, [
            ("try", "try :", 1), ("except", "except (A, B) as e:", 1), ("except", "except C :", 1), ("except", "except:", 1),
            ("else", "else:", 1), ("finally", "finally:", 1),
        ]),
        ("try: a\nfinally: b; c", [("try", "try:", 1), ("finally", "finally:", 2)]),
        (MATCH, [
            ("case", "case (1):", 1), ("case", "case [p, *q] if (g):", 1), ("case", 'case {"k": v}:', 1), ("case", "case _ :", 1),
        ]),
        ("for a in (b):\n  c\nelse:\n  d", [("for", "for a in (b):", 1), ("else", "else:", 1)]),
        ("while a \\\n  : b", [("while", "while a \\\n  :", 1)]),
        ("with (a as b, c,):\n  d\n  e", [("with", "with (a as b, c,):", 2)]),
        ("x = 1", []),
        ("def f(): pass", []),
    ],
)  # fmt: skip
def test_all_clauses(text, expected):
    stmt, file = load(text)
    found = clauses(stmt, file)
    assert [(c.kind, file.slice(c.head_span), len(c.suite)) for c in found] == expected
    for clause in found:
        assert clause.span.start == clause.head_span.start
        assert clause.span.end == file.node_span(clause.suite[-1]).end


def test_async_heads_start_at_async():
    _, file = load("async def f():\n    async for a in b: c\n    async with d: e\n")
    found = [clauses(s, file)[0] for s in file.tree.body[0].body]
    assert [(c.kind, file.slice(c.head_span)) for c in found] == [
        ("for", "async for a in b:"),
        ("with", "async with d:"),
    ]


def test_the_chain_is_flattened():
    stmt, file = load(CHAIN)
    nodes = [c.node for c in clauses(stmt, file)]
    assert nodes[0] is stmt
    assert nodes[1] is stmt.orelse[0]
    assert nodes[3] is nodes[2] is nodes[1].orelse[0]


@pytest.mark.parametrize(
    ("text", "head", "index"),
    [
        (CHAIN, "if é", 0),
        (CHAIN, "if ...:", 0),
        (CHAIN, "elif b", 1),
        (CHAIN, "elif (b):", 1),
        (CHAIN, "elif x[...]", 2),
        (CHAIN, "elif x[1:2]: ...", 2),
        (CHAIN, " else:", 3),
        (TRY, "try", 0),
        (TRY, "except (A, B) as e", 1),
        (TRY, "except (A, ...) as ...:", 1),
        (TRY, "except C", 2),
        (TRY, "except", 3),
        (TRY, "except:", 3),
        (TRY, "else", 4),
        (TRY, "finally:", 5),
        (MATCH, "case 1", 0),
        (MATCH, "case [p, ...] if g", 1),
        (MATCH, "case ... if ...:", 1),
        (MATCH, 'case {"k": v}:', 2),
        (MATCH, "case _", 3),
        ("for a in b: c\nelse: d", "for ... in b", 0),
        ("with a as b: c", "with ...", 0),
        ("with a as b: c", "with a as ...", 0),
        ("while a: c", "while a", 0),
    ],
)
def test_found_by_head(text, head, index):
    stmt, file = load(text)
    assert find_clause(stmt, code(head), file).head_span == clauses(stmt, file)[index].head_span


@pytest.mark.skipif(sys.version_info < (3, 11), reason="grammar of Python 3.11")
def test_exception_groups():
    stmt, file = load("try: a\nexcept* E: b\n")
    assert [c.kind for c in clauses(stmt, file)] == ["try", "except"]
    assert find_clause(stmt, code("except* E"), file).kind == "except"


@pytest.mark.parametrize(
    ("text", "head", "number", "count"),
    [
        (CHAIN, "elif zzz", "PK203", 4),
        (CHAIN, "elif ...", "PK204", 2),
        (CHAIN, "if b", "PK203", 4),
        (CHAIN, "finally", "PK203", 4),
        (TRY, "except A", "PK203", 6),
        (TRY, "except (A, B)", "PK203", 6),
        (TRY, "except ...", "PK204", 2),
        (MATCH, "case [p, *q]", "PK203", 4),
        (MATCH, "case ...", "PK204", 4),
        ("x = 1", "else", "PK203", 0),
    ],
)
def test_no_or_several_clauses(text, head, number, count):
    stmt, file = load(text)
    with pytest.raises(DeltaError) as caught:
        find_clause(stmt, code(head), file, entry="e", delta="d")
    (finding,) = caught.value.findings
    assert (finding.code, len(finding.details), finding.entry, finding.delta) == (number, count, "e", "d")
    assert finding.manifest == Position("m.yaml", 10, 7)


@pytest.mark.parametrize(
    "head", ["", "elif", "x", "else if", "except as e", "def f()", "elif a b", "case", ":", "async"]
)
def test_what_is_no_head(head):
    stmt, file = load(CHAIN)
    with pytest.raises(ManifestError) as caught:
        find_clause(stmt, code(head), file)
    assert caught.value.findings[0].code == "PK030"
