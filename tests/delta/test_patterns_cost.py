"""Patterns whose number of ways to match grows fast: found, or not, without trying them all."""

from __future__ import annotations

import ast

from afd_patchkit.patterns.match import HOLE, equal


def _call(*arguments: str) -> ast.expr:
    return ast.parse(f"f({', '.join(arguments)})", mode="eval").body


def test_each_keyword_has_one_of_its_own():
    many = [f"**a{n}" for n in range(25)]
    assert equal(_call(HOLE, *reversed(many)), _call("1", *many))
    assert not equal(_call(HOLE, *many, "**b"), _call("1", *many, "**c"))
    # any value will do for most of them, so that all orders would have to be tried
    anything = [f"**{HOLE}"] * 25
    assert equal(_call(HOLE, *anything, "**b"), _call("1", "**b", *many))
    assert not equal(_call(HOLE, *anything, "**b"), _call("1", *many, "**c"))
    assert not equal(_call(HOLE, *anything, *anything), _call("1", *many))
