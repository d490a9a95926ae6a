"""Deltas that meet: what is refused, what is not, and that order does not matter."""

from __future__ import annotations

import itertools

import pytest

from afd_patchkit.findings.errors import DeltaError
from tests.delta.deltas import apply, deltas_of, refused

UPSTREAM = """
def f(x):
    a(x, k=1)
    if x:
        b()
        c()
    return x
"""

PIECES = {
    "replace a": "replace: |\n    a(...)\n  with: |\n    p()",
    "remove a": "remove: |\n    a(...)",
    "range": "replace: {from: 'a(...)', to: 'if x: ...'}\n  with: |\n    p()",
    "wrap a": "replace: |\n    a(...)\n  with: |\n    with x:\n        __upstream__",
    "expr in a": "expr: |\n    1\n  with: |\n    2",
    "call a": "call: {match: 'a(...)', set: {k: '3'}}",
    "more of a": "call: {match: 'a(...)', set: {l: '4'}}",
    "callee of a": "call: {match: 'a(...)', callee: d}",
    "replace if": "replace: |\n    if x: ...\n  with: |\n    q()",
    "after b": "after: |\n    b()\n  insert: |\n    e()",
    "after c": "after: |\n    c()\n  insert: |\n    e()",
    "before b": "before: |\n    b()\n  insert: |\n    g()",
    "after if": "after: |\n    if x: ...\n  insert: |\n    h()",
    "before if": "before: |\n    if x: ...\n  insert: |\n    i()",
    "else": "clause: {of: 'if x: ...', add: 'else: j()'}",
    "first": "clause: {of: 'if x: ...', first: 'if y: k()'}",
    "head": "expr: |\n    x\n  within: |\n    if x: ...\n  with: |\n    y",
    "replace head": "clause: {of: 'if x: ...', replace: 'if x'}\n  with: |\n    if z:\n        __upstream__",
}
CLASHES = {
    ("replace a", "remove a"), ("replace a", "range"), ("remove a", "range"),
    ("replace a", "expr in a"), ("replace a", "call a"), ("replace a", "more of a"), ("replace a", "callee of a"),
    ("remove a", "expr in a"), ("remove a", "call a"), ("remove a", "more of a"), ("remove a", "callee of a"),
    ("range", "expr in a"), ("range", "call a"), ("range", "more of a"), ("range", "callee of a"),
    ("range", "replace if"), ("range", "after b"), ("range", "after c"), ("range", "before b"), ("range", "else"),
    ("range", "first"), ("range", "head"), ("range", "replace head"), ("range", "before if"), ("range", "wrap a"),
    ("expr in a", "call a"),
    ("replace if", "after b"), ("replace if", "after c"), ("replace if", "before b"), ("replace if", "else"),
    ("replace if", "first"), ("replace if", "head"), ("replace if", "replace head"),
    ("head", "replace head"),
    ("remove a", "wrap a"),
}  # fmt: skip


def text(*names: str) -> str:
    """A list of deltas."""
    return "".join(f"- name: {name}\n  {PIECES[name]}\n" for name in names)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(PIECES, 2)))
def test_every_pair_in_both_orders(one, other):
    clash = (one, other) in CLASHES or (other, one) in CLASHES
    for first, second in ((one, other), (other, one)):
        if clash:
            found = refused(UPSTREAM, text(first, second))
            assert (found.code, found.delta) == ("PK210", second)
            assert f"delta {first!r}" in found.message
            assert found.details[0].startswith(f"delta {first!r} is at m.yaml:9:")
            assert str(found.upstream).startswith("acme/m.py:")
            assert str(found.manifest).startswith("m.yaml:")
        else:
            applied = apply(UPSTREAM, text(first, second))
            assert {fence.delta for fence in applied.fences} == {one, other}


@pytest.mark.parametrize("names", list(itertools.permutations(["after b", "else", "after if", "first", "before b"])))
def test_order_in_the_manifest_does_not_matter_where_python_decides(names):
    assert apply(UPSTREAM, text(*names)).buffer.text == apply(UPSTREAM, text(*sorted(names))).buffer.text


def test_adjacent_deltas_do_not_meet():
    applied = apply(UPSTREAM, text("replace a", "replace if", "before if", "after if"))
    assert [(f.name, f.first, f.last) for f in applied.fences] == [
        ("replace a", 2, 2),
        ("before if", 3, 3),
        ("replace if", 4, 4),
        ("after if", 5, 5),
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("after: |\n    b()\n  insert: |\n    e()", "after: |\n    b()\n  insert: |\n    e()"),
        ("before: |\n    c()\n  insert: |\n    e()", "before: |\n    c()\n  insert: |\n    e()"),
        ("after: |\n    b()\n  insert: |\n    e()", "before: |\n    c()\n  insert: |\n    e()"),
        ("call: {match: 'a(...)', set: {m: '1'}}", "call: {match: 'a(...)', set: {m: '1'}}"),
    ],
)
def test_the_same_insertion_twice(one, other):
    found = refused(UPSTREAM, f"- name: one\n  {one}\n- name: two\n  {other}\n")
    assert (found.code, found.delta) == ("PK211", "two")
    assert "inserts the same text at the same place as delta 'one'" in found.message
    assert found.help == "Delete one of them."


def test_the_same_insertion_at_another_depth_is_not_the_same():
    applied = apply(UPSTREAM, text("after c") + "- name: two\n  after: |\n    if x: ...\n  insert: |\n    e()\n")
    assert len(applied.fences) == 2


def test_one_delta_that_meets_itself():
    found = refused("def f():\n    g(g(1))\n", "- name: d\n  expr: |\n    g(...)\n  count: 2\n  with: |\n    h()\n")
    assert (found.code, found.message) == ("PK210", "delta 'd' touches the same upstream text twice")
    assert found.details == ()


def test_a_fence_in_upstream_text_or_in_a_delta_is_refused():
    upstream = "def f():\n    a()  # ### PATCH START: x\n    b()\n"
    insert = "- name: d\n  after: |\n    b()\n  insert: |\n    c()\n"
    found = refused(upstream, insert)
    assert (found.code, found.delta, str(found.upstream)) == ("PK223", None, "acme/m.py:2:10")
    assert "upstream holds a comment that looks like a fence" in found.message
    inserted = insert.replace("c()", "# ### PATCH END: d\n    c()")
    found = refused("def f():\n    b()\n", inserted)
    assert (found.code, found.delta) == ("PK223", "d")
    assert "the code of a delta holds a comment" in found.message


def test_what_only_looks_like_a_fence_is_not_one():
    upstream = 'def f():\n    """\n    # ### PATCH START: d\n    """\n    a()  # PATCH START: d\n    b()\n'
    applied = apply(upstream, "- name: d\n  after: |\n    b()\n  insert: |\n    c('# ### PATCH END: d')\n")
    assert (
        applied.buffer.text
        == upstream + "    # ### PATCH START: d\n    c('# ### PATCH END: d')\n    # ### PATCH END: d\n"
    )


def test_without_deltas_nothing_is_looked_at():
    upstream = "def f():\n    # ### PATCH START: x\n    return 1\n"
    assert apply(upstream, "[]").buffer.text == upstream
    assert deltas_of("[]") == ()


GAPS = [  # what stands between two parts upstream, and in the output
    (b"", b"\n"),
    (b"\n", b"\n"),
    (b"  \n", b"  \n"),
    (b"\n\n", b"\n\n"),
    (b"# about it\n", b"\n"),
    (b"\n# about it\n\n", b"\n"),
]


@pytest.mark.parametrize(("upstream", "output"), GAPS)
def test_what_stands_between_the_parts_of_a_symbol(upstream, output):
    parts = [b"@overload\ndef f(a: int): ...\n", b"@overload\ndef f(a: str): ...\n", b"def f(a):\n    pass\n"]
    applied = apply(upstream.join(parts), "- name: d\n  insert: 'x()'\n  at: start\n")
    text = applied.buffer.text.encode()
    lines = [line for line in text.splitlines(keepends=True) if b"PATCH" not in line and b"x()" not in line]
    assert b"".join(lines) == output.join(parts)


def every(upstream: str, deltas: str) -> list[tuple[str, str | None]]:
    """Code and delta of each finding."""
    with pytest.raises(DeltaError) as caught:
        apply(upstream, deltas)
    return [(found.code, found.delta) for found in caught.value.findings]


def test_a_delta_is_told_of_the_first_one_that_is_in_its_way():
    many = "".join(f"- name: d{n}\n  after: |\n    b()\n  insert: |\n    e()\n" for n in range(200))
    assert every(UPSTREAM, many) == [("PK211", f"d{n}") for n in range(1, 200)]
    over = "".join(f"- name: d{n}\n  replace: |\n    a(...)\n  with: |\n    e({n})\n" for n in range(60))
    assert every(UPSTREAM, over) == [("PK210", f"d{n}") for n in range(1, 60)]


def test_many_deltas_in_one_place_of_a_function():
    upstream = "def f():\n" + "".join(f"    a{n}(x)\n" for n in range(300))
    wraps = "".join(
        f"- name: w{n}\n  replace: |\n    a{n}(x)\n  with: |\n    with y:\n        __upstream__\n" for n in range(300)
    )
    inside = "".join(f"- name: i{n}\n  call: {{match: 'a{n}(x)', set: {{k: '1'}}}}\n" for n in range(300))
    assert len(apply(upstream, wraps + inside).edits) == 600
    here = "".join(f"- name: d{n}\n  after: |\n    a0(x)\n  insert: |\n    b({n})\n" for n in range(300))
    assert len(apply(upstream, here).edits) == 300


def test_one_expression_is_changed_by_so_many_deltas_only():
    upstream = "def f(x):\n    return x\n"
    wraps = [f"- name: d{n}\n  expr: |\n    x\n  with: |\n    g{n}(__upstream__)\n" for n in range(32)]
    assert len(apply(upstream, "".join(wraps[:30])).edits) == 30
    with pytest.raises(DeltaError, match="changes an expression that 30 other deltas change already"):
        apply(upstream, "".join(wraps))
