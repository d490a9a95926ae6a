"""`clause:`."""

from __future__ import annotations

import pytest

from tests.delta.deltas import apply, refused


def clause(of: str, change: str, name: str = "d") -> str:
    """A clause delta."""
    return f"- name: {name}\n  clause:\n    of: |\n      {of}\n    {change}\n"


TRY = "def f(x):\n    try:\n        a()\n    except A:\n        b()\n"


@pytest.mark.parametrize(
    ("upstream", "of", "change", "code", "message", "help_"),
    [
        ("def f(x):\n    a()\n", "a()", "add: 'else: b()'", "PK203", "no single compound statement", "Match the whole"),
        ("def f(x):\n    if x: a()\n", "if x: ...", "add: 'except A: b()'", "PK203", "`except` cannot be added to `if`", "`elif` and `else`"),
        ("def f(x):\n    if x: a()\n", "if x: ...", "add: 'if y: b()'", "PK203", "`if` cannot be added to `if`", "`elif` and `else`"),
        ("def f(x):\n    with x: a()\n", "with x: ...", "add: 'else: b()'", "PK203", "`else` cannot be added to `with`", "no further"),
        ("def f(x):\n    for i in x: a()\n", "for i in x: ...", "add: 'finally: b()'", "PK203", "to `for`", "It takes `else`"),
        ("def f(x):\n    if x: a()\n    else: b()\n", "if x: ...", "add: 'else: b()'", "PK221", "has `else` already", "absorbed"),
        ("def f(x):\n    if x: a()\n", "if x: ...", "first: 'elif y: b()'", "PK203", "`elif` clause cannot come first", "`first` takes"),
        ("def f(x):\n    if x: a()\n    else: b()\n", "if x: ...", "first: 'else: c()'", "PK203", "`else` clause cannot come first", "or `case`"),
        ("def f(x):\n    if x: a()\n", "if x: ...", "remove: 'else'", "PK203", "there is no clause `else`", ""),
        ("def f(x):\n    if x: a()\n    else: b()\n", "if x: ...", "remove: 'if x'", "PK203", "cannot stand without its `if`", "whole statement"),
        (TRY, "try: ...", "remove: 'except A'", "PK203", "cannot stand without its `except`", "whole statement"),
        (TRY + "    else:\n        c()\n    finally:\n        d()\n", "try: ...", "remove: 'except A'", "PK203", "without its `except`", ""),
        ("def f(x):\n    try: a()\n    finally: b()\n", "try: ...", "remove: 'finally'", "PK203", "without its `finally`", ""),
        ("def f(x):\n    match x:\n        case 1: a()\n", "match x: ...", "remove: 'case 1'", "PK203", "without its `case`", ""),
        ("def f(x):\n    try: a()\n    finally: b()\n", "try: ...", "add: 'else: c()'", "PK222", "does not compile", "Correct"),
    ],
)  # fmt: skip
def test_refused(upstream, of, change, code, message, help_):
    found = refused(upstream, clause(of, change))
    assert (found.code, found.delta) == (code, "d")
    assert message in found.message
    assert help_ in (found.help or "")
    assert str(found.manifest).startswith("m.yaml:")
    assert str(found.upstream).startswith("acme/m.py:")


def test_a_pattern_of_two_statements_is_no_compound_statement():
    found = refused(
        "def f(x):\n    if x: a()\n    b()\n",
        "- name: d\n  clause:\n    of: |\n      if x: ...\n      b()\n    add: |\n      else: c()\n",
    )
    assert (found.code, found.message) == ("PK203", "`clause.of` matches no single compound statement")


def test_two_deltas_cannot_both_add_else():
    found = refused(
        "def f(x):\n    if x: a()\n",
        clause("if x: ...", "add: 'else: b()'", "one") + clause("if x: ...", "add: 'else: c()'", "two"),
    )
    assert (found.code, found.delta, found.message) == ("PK210", "two", "delta 'one' adds `else` to the same statement")


def test_else_of_a_try_may_keep_the_suite():
    upstream = TRY + "    else:\n        c()\n"
    applied = apply(
        upstream,
        clause("try: ...", 'replace: "else"') + "  with: |\n    else:\n        if x:\n            __upstream__\n",
    )
    assert applied.buffer.text.endswith(
        "    # ### PATCH START: d\n    else:\n        if x:\n            c()\n    # ### PATCH END: d\n"
    )


def test_several_clauses_at_once():
    """`else` and `finally` parse together below a `try` only."""
    code = "add: |\n      else:\n          c()\n      finally:\n          d()"
    applied = apply(TRY, clause("try: ...", code))
    assert applied.buffer.text == (
        TRY + "    # ### PATCH START: d\n    else:\n        c()\n    finally:\n        d()\n    # ### PATCH END: d\n"
    )
