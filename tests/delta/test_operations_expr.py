"""`expr:` and `call:`."""

from __future__ import annotations

import pytest

from tests.delta.deltas import apply, refused


@pytest.mark.parametrize(
    ("upstream", "delta", "message"),
    [
        ("def f(x):\n    x.a = 1\n", "expr: |\n    x.a\n  with: |\n    x + 1", "cannot stand where the old one stood"),
        ('def f(x):\n    y = f"{x.a}"\n', 'expr: |\n    x.a\n  with: |\n    x["b"]', "quotes"),
        ("def f(x):\n    y = f'''{x.a}'''\n", "expr: |\n    x.a\n  with: |\n    '\\n'.join(x)", "backslash"),
        ('def f(x):\n    y = f"{x.a}"\n', "expr: |\n    x.a\n  with: |\n    (x.b +\n     1)", "line"),
        ('def f(x):\n    y = f"""{x.a}"""\n', "expr: |\n    x.a\n  with: |\n    x.b  # why", "comment"),
        ('def f(x):\n    y = f"{x=}"\n', "expr: |\n    x\n  with: |\n    y", "cannot stand"),
    ],
)
def test_expr_that_cannot_stand_there(upstream, delta, message):
    found = refused(upstream, f"- name: d\n  {delta}\n")
    assert found.code == "PK213"
    assert message in found.message
    assert str(found.manifest) == "m.yaml:13:11"
    assert str(found.upstream).startswith("acme/m.py:2:")
    assert "`replace:`" in (found.help or "")


@pytest.mark.parametrize(
    ("statement", "change", "code", "message", "help_"),
    [
        ("g(x)", "drop: [k]", "PK219", "no argument 'k'", "It has: 0."),
        ("g(*x, y)", "set: {1: 'z'}", "PK219", "no argument 1", "It has: *, 1."),
        ("g(**x)", "set: {0: 'z'}", "PK219", "no argument 0", "It has: **."),
        ("y = z = g(x)", "targets: 'a'", "PK218", "`targets` needs a statement", "replace"),
        ("y += g(x)", "targets: 'a'", "PK218", "`targets` needs a statement", "replace"),
        ("return g(x)", "targets: 'a'", "PK218", "`targets` needs a statement", "replace"),
        ("y = g(x) + 1", "targets: 'a'", "PK218", "`targets` needs a statement", "replace"),
        ("y = [g(x)]", "callee: h", "PK218", "not one call", "Match the call itself"),
    ],
)
def test_call_refused(statement, change, code, message, help_):
    match = "y = [...]" if "[" in statement else "g(...)"
    found = refused(f"def f(x):\n    {statement}\n", f"- name: d\n  call:\n    match: |\n      {match}\n    {change}\n")
    assert found.code == code
    assert message in found.message
    assert help_ in (found.help or "")
    assert (found.delta, str(found.manifest)) == ("d", "m.yaml:9:9")
    assert str(found.upstream).startswith("acme/m.py:2:")


def test_statements_around_are_untouched():
    applied = apply(
        "def f(x):\n    a = 1  # é\n    b = g(\n        x)\n", "- name: d\n  expr: |\n    x\n  with: |\n    y\n"
    )
    assert [(e.span.start, e.span.end, e.emitted) for e in applied.edits] == [(45, 46, "y")]
