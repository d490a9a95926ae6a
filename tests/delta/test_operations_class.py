"""`member:` and `field:`, and other operations on classes and constants."""

from __future__ import annotations

import pytest

from tests.delta.deltas import refused


@pytest.mark.parametrize(
    ("upstream", "delta", "code", "message", "help_"),
    [
        ("def f(): pass\n", "member: {remove: m}", "PK215", "acme.m:f is not a class", "classes only"),
        ("class f:\n    a = 1\n", "member: {remove: a}", "PK201", "has no member 'a'", "It has: none."),
        ("class f:\n    a = 1\n    b: int\n", "field: {remove: c}", "PK201", "has no field 'c'", "It has: a, b."),
        ("class f:\n    a = 1\n", "field: {add: 'a = 2'}", "PK221", "has 'a' already", "absorbed"),
        (
            "class f:\n    def m(self): ...\n",
            "member: {add: 'def m(self): pass'}",
            "PK221",
            "has 'm' already",
            "absorbed",
        ),
        ("class f:\n    a = 1\n", "field: {add: 'b = 2', before: c}", "PK201", "has no field 'c'", "It has: a."),
        (
            "class f:\n    def m(self): ...\n    x = 1\n    def m(self, a): ...\n",
            "member: {remove: m}",
            "PK202",
            "defines member 'm' in several places (lines 2, 4)",
            "`replace` with a pattern",
        ),
        ("class f:\n    a = 1\n", "member: {add: 'b = 2'}", "PK215", "`member` takes functions and classes", "`field`"),
        ("class f:\n    a = 1\n", "field: {add: 'def m(): pass'}", "PK215", "`field` takes assignments", "`member`"),
    ],
)
def test_refused(upstream, delta, code, message, help_):
    found = refused(upstream, f"- {{name: d, {delta}}}\n")
    assert (found.code, found.delta, str(found.manifest)) == (code, "d", "m.yaml:9:9")
    assert message in found.message
    assert help_ in (found.help or "")
    assert str(found.upstream).startswith("acme/m.py:")
