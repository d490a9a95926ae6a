"""`parameter:`, `returns:`, `decorator:`, `rebind:`."""

from __future__ import annotations

import pytest

from tests.delta.deltas import apply, refused


@pytest.mark.parametrize(
    ("upstream", "delta", "code", "message", "help_"),
    [
        ("def f(a): pass\n", "parameter: {add: 'a'}", "PK221", "has a parameter 'a' already", "absorbed"),
        ("def f(a): pass\n", "parameter: {add: 'b', before: c}", "PK219", "has no parameter 'c'", "It has: a."),
        ("def f(a, *, k): pass\n", "parameter: {remove: b}", "PK219", "has no parameter 'b'", "It has: a, k."),
        ("def f(a, b): pass\n", "parameter: {add: 'k', kind: keyword-only, after: a}", "PK219", "cannot go there", "Leave out"),
        ("def f(a, *, b): pass\n", "parameter: {add: 'k', kind: keyword-only, before: a}", "PK219", "cannot go there", "Leave out"),
        ("def f(a, *b): pass\n", "parameter: {add: 'k', kind: keyword-only, before: b}", "PK219", "cannot go there", "Leave out"),
        ("def f(a, **b): pass\n", "parameter: {add: 'k', kind: keyword-only, after: b}", "PK219", "cannot go there", "Leave out"),
        ("def f(a, b=1): pass\n", "parameter: {add: 'k'}", "PK222", "default", "Correct"),
        ("def f(a, **k): pass\n", "parameter: {add: 'b', after: k}", "PK222", "does not compile", "Correct"),
        ("f = 1\n", "parameter: {add: 'k'}", "PK215", "is not a function", "functions only"),
        ("class f: pass\n", "returns: 'int'", "PK215", "is not a function", "functions only"),
        ("def f(): pass\n", "returns: 'none'", "PK221", "no return annotation", "Delete the delta"),
        ("f = 1\n", "decorator: {add: 'd'}", "PK215", "takes no decorators", "functions and classes"),
        ("@a\ndef f(): pass\n", "decorator: {remove: 'b'}", "PK201", "no decorator of acme.m:f matches `b`", "It has: @a."),
        ("@a\n@a\ndef f(): pass\n", "decorator: {remove: 'a'}", "PK202", "2 decorators of acme.m:f match `a`", "It has: @a, @a."),
    ],
)  # fmt: skip
def test_refused(upstream, delta, code, message, help_):
    found = refused(upstream, f"- {{name: d, {delta}}}\n")
    assert (found.code, found.delta, str(found.manifest)) == (code, "d", "m.yaml:9:9")
    assert message in found.message
    assert help_ in (found.help or "")
    assert str(found.upstream).startswith("acme/m.py:")


def test_rebind_is_collected():
    applied = apply("def f(): g(h)\n", "- name: d\n  rebind: {g: 'mod.g2', h: 'k'}\n- name: e\n  rebind: {l: 'm'}\n")
    assert {name: code.text for name, code in applied.rebind.items()} == {"g": "mod.g2", "h": "k", "l": "m"}
    assert applied.buffer.text == "def f(): g(h)\n"
    assert applied.edits == applied.fences == ()


def test_rebind_twice_is_refused():
    found = refused("def f(): g()\n", "- name: d\n  rebind: {g: 'h'}\n- name: e\n  rebind: {g: 'i'}\n")
    assert (found.code, found.delta, found.message) == ("PK214", "e", "`g` is rebound twice: by 'd' and by 'e'")
